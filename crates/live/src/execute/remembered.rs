//! Reads ranges of files ahead that a command has read at an earlier start.
//!
//! It opens only regular files that have not changed since. Before it opens a file, it compares inode, generation, size
//! and time of the last change, and looks for leases.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use controller::ids::{Tgid, Ticket};
use controller::{Completed, FilePages, Found};
use linux::handles::{Known, is_gone};
use linux::io_priority::take_priority_of;
use linux::mounts::Mount;
use linux::sys;
use readahead::behind::Span;

use super::opening;
use super::readers::read_ahead;
use crate::mounted::Volume;

/// Ranges to be read ahead.
pub(super) struct ReadRemembered {
    pub(super) ticket: Ticket,
    /// The process for which it is done.
    pub(super) tgid: Tgid,
    pub(super) files: Vec<FilePages>,
}

impl ReadRemembered {
    /// Reads the ranges ahead. On a device that serves one access at a time, in the order of their places on it.
    pub(super) fn run(&self, volume: &Volume, is_serial: bool) -> Completed {
        take_priority_of(self.tgid);
        let mut reader = Reader { job: self, volume, opened: None };
        let ranges = self.ranges();
        let mut found = vec![Found::Gone; ranges.len()];
        if is_serial {
            reader.read_in_disk_order(&ranges, &mut found);
        } else {
            for (found, (file, span)) in found.iter_mut().zip(ranges) {
                *found = reader.read(file, span);
            }
        }
        Completed::RememberedRead { ticket: self.ticket, found }
    }

    /// Each range, with the index of its file.
    fn ranges(&self) -> Vec<(usize, Span)> {
        let of_file = |(at, file): (usize, &FilePages)| {
            file.spans.iter().map(move |span| (at, *span)).collect::<Vec<_>>()
        };
        self.files.iter().enumerate().flat_map(of_file).collect()
    }

    /// The answer if nobody does it.
    pub(super) fn refused(&self) -> Completed {
        let found = vec![Found::Cached; self.ranges().len()];
        Completed::RememberedRead { ticket: self.ticket, found }
    }
}

struct Reader<'a> {
    job: &'a ReadRemembered,
    volume: &'a Volume,
    /// The file that was opened last.
    opened: Option<(usize, OwnedFd)>,
}

impl Reader<'_> {
    /// Looks up all places first, in the order of the inodes, which lie on the disk in that order.
    fn read_in_disk_order(&mut self, ranges: &[(usize, Span)], found: &mut [Found]) {
        let mut turns: Vec<usize> = (0..ranges.len()).collect();
        turns.sort_by_key(|turn| self.job.files[ranges[*turn].0].file.ino);
        let place = |turn: usize| {
            let (file, span) = ranges[turn];
            let place = self.open(file).ok().and_then(|file| sys::place_of(file, span.start));
            (place.unwrap_or_default(), turn)
        };
        let mut places: Vec<(u64, usize)> = turns.into_iter().map(place).collect();
        places.sort_unstable();
        for (_, turn) in places {
            let (file, span) = ranges[turn];
            found[turn] = self.read(file, span);
        }
    }

    fn read(&mut self, file: usize, span: Span) -> Found {
        let volume = self.volume;
        let file = match self.open(file) {
            Ok(file) => file,
            Err(found) => return found,
        };
        if sys::cached_pages(file, span.start, span.pages())
            .is_ok_and(|cached| cached == span.pages())
        {
            return Found::Cached;
        }
        // It fails for a file without a page cache.
        match read_ahead(file.as_fd(), span, volume) {
            Ok(()) => Found::Read,
            Err(_) => Found::Cached,
        }
    }

    /// Opens a file.
    ///
    /// # Errors
    /// What to report of its ranges if it is not opened.
    fn open(&mut self, at: usize) -> Result<&OwnedFd, Found> {
        match self.opened.take() {
            Some(opened) if opened.0 == at => Ok(&self.opened.insert(opened).1),
            _ => {
                let file = open(&self.job.files[at], &self.volume.mount)?;
                Ok(&self.opened.insert((at, file)).1)
            }
        }
    }
}

fn open(pages: &FilePages, mount: &Mount) -> Result<OwnedFd, Found> {
    let FilePages { file, generation, version, .. } = *pages;
    let reached = Known { file, generation }.reach(mount).map_err(|error| found_after(&error))?;
    if reached.bytes != version.bytes || reached.changed_ns != version.changed_ns {
        return Err(Found::Gone);
    }
    opening::open(&reached).map_err(|error| found_after(&error))
}

/// What to report after a failure. Most failures have nothing to do with the file.
fn found_after(error: &io::Error) -> Found {
    if is_gone(error) { Found::Gone } else { Found::Cached }
}

// Without eBPF no file is opened.
#[cfg(all(test, feature = "bpf"))]
mod tests {
    use std::fs;
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::MetadataExt;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};
    use std::thread;
    use std::time::{Duration, Instant};

    use controller::Version;
    use controller::ids::{BackingId, DeviceNumber, FileKey};
    use linux::mounts;

    use super::*;
    use crate::pieces::PieceLimit;

    /// A closed file and the file system that it is on.
    struct Bench {
        path: tempfile::TempPath,
        pages: FilePages,
        mount: Mount,
    }

    impl Bench {
        /// `None` where this user cannot open files by their inode, or eBPF does not work.
        fn new() -> Option<Self> {
            let file = tempfile::NamedTempFile::new_in("/var/tmp").expect("a file");
            fs::write(&file, [7; 9000]).expect("written");
            let about = file.as_file().metadata().expect("there");
            let dev = DeviceNumber::from_stat(about.dev());
            let changed_ns = about.mtime() * 1_000_000_000 + about.mtime_nsec();
            let pages = FilePages {
                file: FileKey { dev, ino: about.ino() },
                generation: sys::generation(file.as_file()).ok()?,
                version: Version { bytes: about.len(), changed_ns },
                spans: vec![Span { start: 0, end: 2 }],
            };
            let mount = mounts::of_number(dev).expect("a table")?;
            let known = Known { file: pages.file, generation: pages.generation };
            ebpf::open_file::look_at(known.reach(&mount).ok()?)?;
            Some(Bench { path: file.into_temp_path(), pages, mount })
        }

        fn skipped() -> Option<Self> {
            eprintln!("skipped: files cannot be opened by their inode here, or eBPF does not work");
            None
        }

        fn open(&self, pages: &FilePages) -> Result<OwnedFd, Found> {
            open(pages, &self.mount)
        }

        /// What a disk is asked for.
        fn read(&self) -> Vec<Found> {
            let job = ReadRemembered {
                ticket: Ticket(1),
                tgid: std::process::id(),
                files: vec![self.pages.clone()],
            };
            let volume = Volume {
                mount: self.mount.clone(),
                disk: None,
                knob: PathBuf::new(),
                piece_limit: PieceLimit::of(None, PathBuf::new()),
                backing: BackingId(0),
                history_file: None,
            };
            match job.run(&volume, true) {
                Completed::RememberedRead { found, .. } => found,
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_file_is_opened_only_if_it_is_what_it_was() {
        let Some(bench) = Bench::new().or_else(Bench::skipped) else { return };
        let pages = &bench.pages;
        assert!(bench.open(pages).is_ok());
        let other = FilePages { generation: pages.generation.wrapping_add(1), ..pages.clone() };
        assert_eq!(bench.open(&other).err(), Some(Found::Gone));
        let version = Version { bytes: 1, ..pages.version };
        assert_eq!(bench.open(&FilePages { version, ..pages.clone() }).err(), Some(Found::Gone));
        let far = FilePages { file: FileKey { ino: 1 << 40, ..pages.file }, ..pages.clone() };
        assert_eq!(bench.open(&far).err(), Some(Found::Cached), "no handle has so large a number");
        fs::remove_file(&bench.path).expect("ours");
        // Programs that other tests are about to start have this process's descriptors for a moment.
        let end = Instant::now() + Duration::from_secs(10);
        while bench.open(pages).err() != Some(Found::Gone) {
            assert!(Instant::now() < end, "a removed file is still found");
            thread::yield_now();
        }
    }

    /// Holds a write lease until it is told to go on, and then says whether it still has it.
    const LEASE: &str = "
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, lambda *_: None)
file = os.open(sys.argv[1], os.O_RDONLY)
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print('held', flush=True)
sys.stdin.readline()
print(fcntl.fcntl(file, fcntl.F_GETLEASE) == fcntl.F_WRLCK, flush=True)";

    #[test]
    fn on_a_disk_a_file_under_a_lease_is_not_opened_to_see_where_it_lies() {
        let Some(bench) = Bench::new().or_else(Bench::skipped) else { return };
        let mut holder = Command::new("python3")
            .args(["-c", LEASE])
            .arg(&bench.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut said = BufReader::new(holder.stdout.take().expect("piped")).lines();
        assert_eq!(said.next().expect("a line").expect("text"), "held");
        let found = bench.read();
        drop(holder.stdin.take());
        assert_eq!(said.next().expect("a line").expect("text"), "True", "the lease was broken");
        assert_eq!(found, [Found::Cached]);
        holder.wait().expect("it ends");
        assert_ne!(bench.read(), [Found::Gone]);
    }

    #[test]
    fn what_has_nothing_to_do_with_the_file_says_nothing_of_it() {
        for error in [libc::EMFILE, libc::EIO, libc::EAGAIN, libc::EPERM, libc::ENOMEM] {
            assert_eq!(found_after(&io::Error::from_raw_os_error(error)), Found::Cached, "{error}");
        }
        for error in [libc::ESTALE, libc::ENOENT] {
            assert_eq!(found_after(&io::Error::from_raw_os_error(error)), Found::Gone, "{error}");
        }
    }
}
