//! Who removes pages from the page cache, as the kernel traces it.
//!
//! A page that was cached and is not any more was dropped by somebody or reclaimed by the kernel; once
//! it has been read again nothing is left to tell by. The tracepoint names the process each time.

use std::fs::{self, File};
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::skipped;

const TRACEPOINT: &str = "mm_filemap_delete_from_page_cache";

/// A CPU's; an event takes about 50 bytes.
const BUFFER_KB: &str = "8192";

/// A trace of its own of one device, which ends with this.
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
    /// Of the files on the device with this number, as stat(2) gives it; `None` where the kernel does not
    /// trace.
    pub(crate) fn on(device: u64) -> Option<Removals> {
        let mounted = tempfile::tempdir().expect("a folder");
        if let Err(error) = mount("none", mounted.path(), "tracefs", MountFlags::empty(), None) {
            return skipped(&format!("no tracefs: {error}"));
        }
        let instance =
            mounted.path().join(format!("instances/bowwave-test-{}", std::process::id()));
        let mut removals = Removals { pipe: None, instance, mounted };
        match removals.begin(device) {
            Ok(pipe) => removals.pipe = Some(pipe),
            Err(error) => return skipped(&format!("no trace of the page cache: {error}")),
        }
        Some(removals)
    }

    fn begin(&self, device: u64) -> std::io::Result<File> {
        fs::create_dir(&self.instance)?;
        let set = |file: &str, value: &str| fs::write(self.instance.join(file), value);
        set("buffer_size_kb", BUFFER_KB)?;
        set("options/record-tgid", "1")?;
        let event = Path::new("events/filemap").join(TRACEPOINT);
        let in_kernel = u64::from(libc::major(device)) << 20 | u64::from(libc::minor(device));
        fs::write(self.instance.join(&event).join("filter"), format!("s_dev == {in_kernel}"))?;
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
        // Nothing below is to be removed with the folder.
        let _ = unmount(self.mounted.path(), UnmountFlags::DETACH);
    }
}

impl Removal {
    pub(crate) fn is_by(&self, process: u32) -> bool {
        self.tgid.map_or(self.name.starts_with("bowwave"), |tgid| tgid == process)
    }

    pub(crate) fn who(&self) -> String {
        format!("{} of process {:?}", self.name, self.tgid)
    }
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
    let first = number("ofs=")? / super::PAGE_BYTES;
    let pages = first..first + (1 << number("order=")?);
    Some(Removal { tgid: tgid.trim().parse().ok(), name: name.into(), ino, pages })
}
