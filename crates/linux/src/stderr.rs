//! Messages to the user, on standard error.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::LazyLock;

use rustix::fs::fstat;

/// Writes one message. Ignores errors: a closed standard error is no reason to stop.
pub fn note(text: impl Display) {
    let _ = io::stderr().write_all(line(&text, *IS_JOURNAL).as_bytes());
}

/// Whether systemd's journal reads standard error. It then understands a priority before each line.
static IS_JOURNAL: LazyLock<bool> = LazyLock::new(|| {
    let journal = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    fstat(io::stderr()).is_ok_and(|stat| journal == format!("{}:{}", stat.st_dev, stat.st_ino))
});

fn line(text: &impl Display, is_for_journal: bool) -> String {
    // A terminal would obey what somebody has put into the name of a file.
    let is_obeyed = |c: char| c.is_control() && c != '\n';
    let shown = |c: char| if is_obeyed(c) { c.escape_default().to_string() } else { c.into() };
    let text: String = text.to_string().chars().map(shown).collect();
    if is_for_journal {
        // A warning (sd-daemon(3)). The journal adds the program's name itself.
        text.lines().map(|line| format!("<4>{line}\n")).collect()
    } else {
        format!("bowwave: {text}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_in_the_journal_has_a_priority() {
        assert_eq!(line(&"a\nb", true), "<4>a\n<4>b\n");
        assert_eq!(line(&"a\nb", false), "bowwave: a\nb\n");
    }

    #[test]
    fn a_name_cannot_command_the_terminal() {
        let name = "\u{1b}[31m\u{9b}2J.csv: no trace";
        assert_eq!(line(&name, false), "bowwave: \\u{1b}[31m\\u{9b}2J.csv: no trace\n");
    }
}
