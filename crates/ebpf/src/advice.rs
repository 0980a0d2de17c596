//! What programs have advised for an open file.
//!
//! Setting a window clears advice, as the kernel has one call for both (`mm/fadvise.c`). To give it again one has to
//! know it, and only an eBPF program can see it (`programs/advice.bpf.c`).

use std::os::fd::OwnedFd;

/// An open file's advice and window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advised {
    /// `POSIX_FADV_RANDOM`.
    pub random: bool,
    /// `POSIX_FADV_NOREUSE`.
    pub noreuse: bool,
    /// The window in pages, twice the device's after `POSIX_FADV_SEQUENTIAL`.
    pub window_pages: u32,
}

/// Looks at an open file; `None` where eBPF does not work. The first look takes some ten milliseconds, later ones some
/// microseconds.
#[cfg(feature = "bpf")]
pub fn of(file: &OwnedFd) -> Option<Advised> {
    program::look_at(file)
}

/// Without eBPF, nothing is known.
#[cfg(not(feature = "bpf"))]
pub fn of(_: &OwnedFd) -> Option<Advised> {
    None
}

#[cfg(feature = "bpf")]
mod program {
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::sync::OnceLock;

    use libbpf_rs::{Object, ObjectBuilder, ProgramInput};

    use super::Advised;
    use crate::warnings;

    const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/advice.bpf.o"));

    // Flags of `struct file`.
    const FMODE_RANDOM: u32 = 0x1000;
    const FMODE_NOREUSE: u32 = 0x80_0000;

    pub(super) fn look_at(file: &OwnedFd) -> Option<Advised> {
        static LOADED: OnceLock<Option<Object>> = OnceLock::new();
        let object = LOADED.get_or_init(load).as_ref()?;
        let program = object.progs_mut().next()?;
        // `struct open_file`.
        let mut words = [0; 16];
        words[..4].copy_from_slice(&file.as_raw_fd().to_ne_bytes());
        let input = ProgramInput { context_in: Some(&mut words), ..ProgramInput::default() };
        program.test_run(input).ok()?;
        let word = |at: usize| u32::from_ne_bytes(words[at..at + 4].try_into().expect("4 bytes"));
        let (mode, window_pages, was_found) = (word(4), word(8), word(12) == 1);
        let (random, noreuse) = (mode & FMODE_RANDOM != 0, mode & FMODE_NOREUSE != 0);
        was_found.then_some(Advised { random, noreuse, window_pages })
    }

    fn load() -> Option<Object> {
        warnings::capture();
        // libbpf wants it aligned.
        let object = OBJECT.to_vec();
        ObjectBuilder::default().open_memory(&object).ok()?.load().ok()
    }
}

#[cfg(all(test, feature = "bpf"))]
mod tests {
    use rustix::fs::{Advice, fadvise};

    use super::*;

    #[test]
    fn advice_and_window_of_an_open_file_are_seen() {
        let file = tempfile::tempfile().expect("a file").into();
        let advised = |advice: Advice| {
            fadvise(&file, 0, None, advice).expect("advised");
            of(&file)
        };
        let Some(normal) = advised(Advice::Normal) else {
            return crate::skip("eBPF does not work here");
        };
        assert!(!normal.random && !normal.noreuse);
        assert_eq!(advised(Advice::NoReuse), Some(Advised { noreuse: true, ..normal }));
        assert_eq!(
            advised(Advice::Random),
            Some(Advised { random: true, noreuse: true, ..normal })
        );
        let doubled = 2 * normal.window_pages;
        assert_eq!(
            advised(Advice::Sequential),
            Some(Advised { random: false, noreuse: true, window_pages: doubled })
        );
        assert_eq!(advised(Advice::Normal), Some(normal));
    }
}
