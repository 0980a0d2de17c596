//! Who removes pages from the page cache, as the kernel traces it.
//!
//! A page that was cached and is gone was dropped by somebody or reclaimed by the kernel. Once it has been
//! read again, nothing on the page tells which. The tracepoint names the process each time.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::fs::{self, File};
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::stage::skipped;

pub(crate) const PAGE_BYTES: u64 = 4096;

const TRACEPOINT: &str = "mm_filemap_delete_from_page_cache";

/// The trace buffer of each CPU, in KiB: room for 160,000 events of about 50 bytes.
const BUFFER_KB: &str = "8192";

/// What the tests run. In a memory cgroup that is full, a program itself has to reclaim pages; that is no doing
/// of the machine.
const PROGRAMS: [&str; 9] = ["cat", "cp", "dd", "head", "perl", "python3", "sh", "tac", "tar"];

/// A trace of the files of one device, or of one file. It ends when this is dropped.
pub(crate) struct Removals {
    pipe: Option<File>,
    instance: PathBuf,
    mounted: tempfile::TempDir,
}

/// Neighbouring pages that went at once.
pub(crate) struct Removal {
    /// The process, if the kernel had seen it before.
    tgid: Option<u32>,
    /// The thread's name.
    name: String,
    pub(crate) ino: u64,
    pub(crate) pages: Range<u64>,
}

impl Removals {
    /// Of all files on the device of `path`; `None` where the kernel does not trace.
    pub(crate) fn on_device_of(path: &Path) -> Option<Removals> {
        let about = fs::metadata(path).expect("it is there");
        Removals::matching(&format!("s_dev == {}", device_in_kernel(about.dev())))
    }

    fn matching(filter: &str) -> Option<Removals> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mounted = tempfile::tempdir().expect("a folder");
        if let Err(error) = mount("none", mounted.path(), "tracefs", MountFlags::empty(), None) {
            return skipped(&format!("no tracefs: {error}"));
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("instances/bowwave-test-{}-{number}", std::process::id());
        let instance = mounted.path().join(name);
        let mut removals = Removals { pipe: None, instance, mounted };
        match removals.begin(filter) {
            Ok(pipe) => removals.pipe = Some(pipe),
            Err(error) => return skipped(&format!("no trace of the page cache: {error}")),
        }
        Some(removals)
    }

    fn begin(&self, filter: &str) -> std::io::Result<File> {
        fs::create_dir(&self.instance)?;
        let set = |file: &str, value: &str| fs::write(self.instance.join(file), value);
        set("buffer_size_kb", BUFFER_KB)?;
        set("options/record-tgid", "1")?;
        let event = Path::new("events/filemap").join(TRACEPOINT);
        fs::write(self.instance.join(&event).join("filter"), filter)?;
        fs::write(self.instance.join(&event).join("enable"), "1")?;
        let pipe = self.instance.join("trace_pipe");
        File::options().read(true).custom_flags(libc::O_NONBLOCK).open(pipe)
    }

    /// All since the last time, in their order.
    pub(crate) fn since_last_look(&mut self) -> Vec<Removal> {
        let pipe = self.pipe.as_mut().expect("it has begun");
        let mut lines = Vec::new();
        let ended = pipe.read_to_end(&mut lines).expect_err("nonblocking");
        assert_eq!(ended.kind(), std::io::ErrorKind::WouldBlock, "{ended}");
        let lines = String::from_utf8_lossy(&lines);
        assert!(!lines.contains("LOST"), "the trace was too short");
        lines.lines().map(|line| parsed(line).unwrap_or_else(|| panic!("{line}"))).collect()
    }
}

impl Drop for Removals {
    fn drop(&mut self) {
        self.pipe = None;
        let _ = fs::remove_dir(&self.instance);
        // Detached, so that nothing below is removed with the folder.
        let _ = unmount(self.mounted.path(), UnmountFlags::DETACH);
    }
}

impl Removal {
    pub(crate) fn is_by(&self, process: u32) -> bool {
        self.tgid.map_or(self.is_by_bowwave(), |tgid| tgid == process)
    }

    /// All threads of bowwave have such names.
    fn is_by_bowwave(&self) -> bool {
        self.name.starts_with("bowwave")
    }

    /// Whether no program of the test did it. Virtual machines reclaim cold pages in many ways: DAMON, a balloon, an
    /// agent that writes to `memory.reclaim`.
    fn is_by_machine(&self) -> bool {
        let is_by_test = self.is_by_bowwave() || self.is_by(std::process::id());
        !is_by_test && !PROGRAMS.contains(&&*self.name)
    }

    pub(crate) fn who(&self) -> String {
        format!("{} of process {:?}", self.name, self.tgid)
    }
}

/// What becomes of one file's pages. Pages that the machine itself reclaims (memory is short, or the pages
/// are cold and DAMON is on) are told from those that go because of a program.
pub(crate) struct Watched {
    path: PathBuf,
    removals: Removals,
    /// Pages that the machine has reclaimed since the beginning. Nothing follows from what became of them later: who
    /// read them again found them cold, so that bowwave might drop them.
    reclaimed: Vec<bool>,
    /// Who else removed which pages since the beginning.
    by_others: Vec<String>,
    /// Bytes of these pages that bowwave removed.
    dropped_by_bowwave: u64,
}

impl Watched {
    /// From now on; `None` where the kernel does not trace.
    pub(crate) fn new(path: &Path) -> Option<Watched> {
        let about = fs::metadata(path).expect("it is there");
        let (device, ino) = (device_in_kernel(about.dev()), about.ino());
        let removals = Removals::matching(&format!("s_dev == {device} && i_ino == {ino}"))?;
        let reclaimed = vec![false; about.len().div_ceil(PAGE_BYTES) as usize];
        Some(Watched {
            path: path.to_owned(),
            removals,
            reclaimed,
            by_others: Vec::new(),
            dropped_by_bowwave: 0,
        })
    }

    /// Bytes of the pages `[start, start + pages)` that are cached, or would be if the machine had not
    /// reclaimed them.
    pub(crate) fn kept_within(&mut self, start: u64, pages: u64) -> u64 {
        let cached = self.look();
        let range = start as usize..(start + pages) as usize;
        let is_kept = |page: &usize| cached[*page] || self.reclaimed[*page];
        range.filter(is_kept).count() as u64 * PAGE_BYTES
    }

    /// The same of the whole file.
    pub(crate) fn kept(&mut self) -> u64 {
        self.kept_within(0, self.reclaimed.len() as u64)
    }

    /// Bytes of the pages that the machine has reclaimed.
    pub(crate) fn reclaimed(&mut self) -> u64 {
        self.look();
        self.reclaimed.iter().filter(|is| **is).count() as u64 * PAGE_BYTES
    }

    /// Bytes that bowwave has dropped, of pages that the machine has never reclaimed.
    pub(crate) fn dropped_by_bowwave(&mut self) -> u64 {
        self.look();
        self.dropped_by_bowwave
    }

    /// For messages: how each page went that the machine did not reclaim.
    pub(crate) fn story(&self) -> String {
        self.by_others.join("; ")
    }

    /// Takes note of what was removed since the last look; returns which pages are cached.
    fn look(&mut self) -> Vec<bool> {
        let file = File::open(&self.path).expect("it is there");
        // Before the trace is read: what goes in between counts as cached.
        let cached = demo::resident(&file).expect("the kernel tells");
        for removal in self.removals.since_last_look() {
            let pages = removal.pages.start as usize..removal.pages.end as usize;
            if removal.is_by_machine() {
                self.reclaimed
                    .iter_mut()
                    .take(pages.end)
                    .skip(pages.start)
                    .for_each(|is| *is = true);
                continue;
            }
            if removal.is_by_bowwave() {
                let is_ours = |page: &usize| !self.reclaimed.get(*page).is_some_and(|is| *is);
                self.dropped_by_bowwave +=
                    pages.clone().filter(is_ours).count() as u64 * PAGE_BYTES;
            }
            self.by_others.push(format!("{pages:?} by {}", removal.who()));
        }
        cached
    }
}

/// A device number of stat(2), as the kernel has it.
fn device_in_kernel(device: u64) -> u64 {
    u64::from(libc::major(device)) << 20 | u64::from(libc::minor(device))
}

/// `rm-16216 (  16216) [001] d..2. 55761.9: mm_filemap_…: dev 254:0 ino 9882ad pfn=0x13a ofs=8192 order=1`
fn parsed(line: &str) -> Option<Removal> {
    let (by, what) = line.split_once(&format!(" {TRACEPOINT}: "))?;
    let (thread, _) = by.split_once(") [")?;
    let (thread, tgid) = thread.rsplit_once('(')?;
    let (name, _) = thread.trim().rsplit_once('-')?;
    let mut fields = what.split_ascii_whitespace().skip(3);
    let ino = u64::from_str_radix(fields.next()?, 16).ok()?;
    let mut number = |name: &str| {
        fields.find_map(|field| field.strip_prefix(name)).and_then(|n| n.parse::<u64>().ok())
    };
    let first = number("ofs=")? / PAGE_BYTES;
    let pages = first..first + (1 << number("order=")?);
    Some(Removal { tgid: tgid.trim().parse().ok(), name: name.into(), ino, pages })
}
