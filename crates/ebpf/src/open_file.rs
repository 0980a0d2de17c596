//! What only an eBPF program can see of an open file (`programs/open_file.bpf.c`).
//!
//! Setting a window clears advice, as the kernel has one call for both (`mm/fadvise.c`). To give it again one has to
//! know it. And opening a file makes whoever has a write lease on it give that up; one that was only reached (`O_PATH`)
//! can be asked about before.

use std::os::fd::AsFd;

/// Advice, window and leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFile {
    /// `POSIX_FADV_RANDOM`.
    pub random: bool,
    /// `POSIX_FADV_NOREUSE`.
    pub noreuse: bool,
    /// The window in pages, twice the device's after `POSIX_FADV_SEQUENTIAL`.
    pub window_pages: u32,
    /// Somebody holds a write lease on the file.
    pub is_leased: bool,
}

/// Looks at an open file; `None` where eBPF does not work. The first look takes some ten milliseconds, unless the program
/// [is loaded](load_meanwhile), later ones some microseconds.
#[cfg(feature = "bpf")]
pub fn look_at(file: impl AsFd) -> Option<OpenFile> {
    program::look_at(file.as_fd())
}

/// Without eBPF, nothing is known.
#[cfg(not(feature = "bpf"))]
pub fn look_at(_: impl AsFd) -> Option<OpenFile> {
    None
}

/// Has a thread load the program that looks, so that the first file to be read ahead does not wait for it.
#[cfg(feature = "bpf")]
pub(crate) fn load_meanwhile() {
    // Without this thread, the first look loads it.
    let _ = std::thread::Builder::new().name("bowwave-load".into()).spawn(program::loaded);
}

/// Whether the kernel takes the program that looks.
pub(crate) fn can_look() -> bool {
    #[cfg(feature = "bpf")]
    return program::loaded().is_some();
    #[cfg(not(feature = "bpf"))]
    false
}

#[cfg(feature = "bpf")]
mod program {
    use std::os::fd::{AsRawFd, BorrowedFd};
    use std::sync::OnceLock;

    use libbpf_rs::{Object, ObjectBuilder, ProgramInput};

    use super::OpenFile;
    use crate::warnings;

    const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/open_file.bpf.o"));

    // Flags of `struct file`.
    const FMODE_RANDOM: u32 = 0x1000;
    const FMODE_NOREUSE: u32 = 0x80_0000;

    pub(super) fn look_at(file: BorrowedFd<'_>) -> Option<OpenFile> {
        let program = loaded()?.progs_mut().next()?;
        // `struct open_file`.
        let mut words = [0; 20];
        words[..4].copy_from_slice(&file.as_raw_fd().to_ne_bytes());
        let input = ProgramInput { context_in: Some(&mut words), ..ProgramInput::default() };
        program.test_run(input).ok()?;
        let word = |at: usize| u32::from_ne_bytes(words[at..at + 4].try_into().expect("4 bytes"));
        let (mode, window_pages, was_found) = (word(4), word(8), word(12) == 1);
        let is_leased = word(16) == 1;
        let (random, noreuse) = (mode & FMODE_RANDOM != 0, mode & FMODE_NOREUSE != 0);
        was_found.then_some(OpenFile { random, noreuse, window_pages, is_leased })
    }

    pub(super) fn loaded() -> Option<&'static Object> {
        static LOADED: OnceLock<Option<Object>> = OnceLock::new();
        LOADED.get_or_init(load).as_ref()
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
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    use rustix::fs::{Advice, Mode, OFlags, fadvise, open};

    use super::*;

    #[test]
    fn advice_and_window_of_an_open_file_are_seen() {
        let file = tempfile::tempfile().expect("a file");
        let advised = |advice: Advice| {
            fadvise(&file, 0, None, advice).expect("advised");
            look_at(&file)
        };
        let Some(normal) = advised(Advice::Normal) else {
            return crate::skip("eBPF does not work here");
        };
        assert!(!normal.random && !normal.noreuse);
        assert_eq!(advised(Advice::NoReuse), Some(OpenFile { noreuse: true, ..normal }));
        assert_eq!(
            advised(Advice::Random),
            Some(OpenFile { random: true, noreuse: true, ..normal })
        );
        let doubled = 2 * normal.window_pages;
        assert_eq!(
            advised(Advice::Sequential),
            Some(OpenFile { noreuse: true, window_pages: doubled, ..normal })
        );
        assert_eq!(advised(Advice::Normal), Some(normal));
    }

    /// Takes a lease of the kind that it is told to, and says so; then says whether it still has it.
    const HOLDER: &str = "
import fcntl, signal, sys
signal.signal(signal.SIGIO, lambda *_: None)
file = open(sys.argv[1], 'rb')
for line in sys.stdin:
    kind = getattr(fcntl, line.strip())
    fcntl.fcntl(file, fcntl.F_SETLEASE, kind)
    print('taken', flush=True)
    sys.stdin.readline()
    print(fcntl.fcntl(file, fcntl.F_GETLEASE) == kind, flush=True)";

    #[test]
    fn a_write_lease_is_seen_and_stays() {
        let file = tempfile::NamedTempFile::new_in("/var/tmp").expect("a file");
        let (path, file) = (file.path().to_owned(), file.into_temp_path());
        let mut holder = Command::new("python3")
            .args(["-c", HOLDER])
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut orders = holder.stdin.take().expect("piped");
        let mut said = BufReader::new(holder.stdout.take().expect("piped")).lines();
        let mut next = move || said.next().expect("a line").expect("text");
        let reached = open(&path, OFlags::PATH, Mode::empty()).expect("it is there");
        let mut seen = Vec::new();
        for kind in ["F_WRLCK", "F_RDLCK", "F_UNLCK"] {
            writeln!(orders, "{kind}").expect("it listens");
            assert_eq!(next(), "taken", "{kind}");
            seen.push(look_at(&reached).map(|it| it.is_leased));
            writeln!(orders).expect("it listens");
            assert_eq!(next(), "True", "{kind}");
        }
        drop((orders, file));
        holder.wait().expect("it ends");
        if seen[0].is_none() {
            return crate::skip("eBPF does not work here");
        }
        // A read lease does not hinder who opens the file for reading.
        assert_eq!(seen, [Some(true), Some(false), Some(false)]);
    }
}
