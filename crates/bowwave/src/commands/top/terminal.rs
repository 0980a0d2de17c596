//! The terminal, for as long as `bowwave top` draws on it.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::{panic, thread};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};

use crate::print::{self, PrintError};

/// The alternate screen, without cursor and line wrapping; and back.
const BEGIN: &str = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l";
const END: &str = "\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l";
/// To the first line.
const HOME: &str = "\u{1b}[H";
/// Clears from the cursor to the end of the line, and of the screen.
const CLEAR_LINE: &str = "\u{1b}[K";
const CLEAR_BELOW: &str = "\u{1b}[J";

/// Columns and lines of a terminal that does not tell them.
const USUAL_SIZE: (usize, usize) = (80, 24);

/// Restored when this is dropped.
pub(super) struct Terminal {
    before: Termios,
}

impl Terminal {
    /// Shows the alternate screen. Keys arrive at once and are not echoed; Ctrl-C still sends its signal.
    pub(super) fn enter() -> anyhow::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut modes = before.clone();
        modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        // Ctrl-Z and Ctrl-\ would leave the terminal like this.
        modes.special_codes[SpecialCodeIndex::VSUSP] = 0;
        modes.special_codes[SpecialCodeIndex::VQUIT] = 0;
        tcsetattr(io::stdin(), OptionalActions::Now, &modes)?;
        let terminal = Terminal { before };
        terminal.restore_before_panic();
        write(BEGIN)?;
        Ok(terminal)
    }

    /// Has a panic restore the terminal first: its message would vanish with the alternate screen.
    fn restore_before_panic(&self) {
        let before = self.before.clone();
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |message| {
            restore(&before);
            print(message);
        }));
    }

    /// Columns and lines.
    pub(super) fn size(&self) -> (usize, usize) {
        match tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                (size.ws_col.into(), size.ws_row.into())
            }
            _ => USUAL_SIZE,
        }
    }

    /// Shows these lines, and nothing else.
    pub(super) fn draw(&mut self, lines: &[String]) -> Result<(), PrintError> {
        // Clears before it writes: after a line as wide as the screen, the cursor is on its last character.
        let Some((last, others)) = lines.split_last() else { return Ok(()) };
        let others: String = others.iter().map(|line| format!("{CLEAR_LINE}{line}\r\n")).collect();
        write(&format!("{HOME}{others}{CLEAR_BELOW}{last}"))
    }

    /// What the user has typed; `None` at the end of the input.
    pub(super) fn typed(&self) -> Option<String> {
        let mut bytes = [0; 256];
        match rustix::io::read(io::stdin(), &mut bytes) {
            Ok(0) | Err(_) => None,
            Ok(count) => Some(String::from_utf8_lossy(&bytes[..count]).into_owned()),
        }
    }
}

impl AsFd for Terminal {
    /// Readable when the user has typed something.
    fn as_fd(&self) -> BorrowedFd<'_> {
        rustix::stdio::stdin()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if !thread::panicking() {
            restore(&self.before);
        }
    }
}

/// Gives the terminal back as it was. Drops keys that were typed too late, or the shell would take them for a command.
fn restore(before: &Termios) {
    // These fail only if the terminal is gone.
    let _ = write(END);
    let _ = tcsetattr(io::stdin(), OptionalActions::Flush, before);
}

fn write(text: &str) -> Result<(), PrintError> {
    print::all(|output: &mut dyn Write| output.write_all(text.as_bytes()))
}
