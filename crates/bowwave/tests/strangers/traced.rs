//! The requests that a disk is given, with the I/O priority of each, as the kernel traces them (since Linux 6.11).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use tempfile::TempDir;

use crate::stage::skipped;

const EVENT: &str = "events/block/block_rq_issue";

/// Bytes read by I/O class and level, such as `be,4` or `idle,7`.
pub(crate) type Bytes = BTreeMap<String, u64>;

/// A trace of a test's own.
pub(crate) struct Traced {
    tracefs: TempDir,
}

impl Traced {
    /// Of this block device; `None` where the kernel does not trace priorities.
    pub(crate) fn of(device: &Path) -> Option<Self> {
        let tracefs = tempfile::tempdir().expect("a folder");
        if let Err(error) = mount("none", tracefs.path(), "tracefs", MountFlags::empty(), None) {
            return skipped(&format!("no tracefs can be mounted: {error}"));
        }
        let traced = Traced { tracefs };
        fs::create_dir(traced.instance()).expect("a trace of its own");
        let format = fs::read_to_string(traced.file(EVENT).join("format")).unwrap_or_default();
        if !format.contains("ioprio") {
            return skipped("this kernel does not trace the priority of requests");
        }
        let device = fs::metadata(device).expect("it is there").rdev();
        // As the kernel itself keeps a device's number.
        let number = major(device) << 20 | minor(device);
        traced.write("filter", &format!("dev == {number}"));
        traced.write("enable", "1");
        Some(traced)
    }

    /// What has been read since then.
    pub(crate) fn during(&self, work: impl FnOnce()) -> Bytes {
        fs::write(self.file("trace"), "").expect("emptied");
        work();
        let text = fs::read_to_string(self.file("trace")).expect("a trace");
        let mut bytes = Bytes::new();
        for (priority, more) in text.lines().filter_map(read_request) {
            *bytes.entry(priority).or_default() += more;
        }
        bytes
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.file(EVENT).join(name), text).expect("the kernel takes it");
    }

    fn instance(&self) -> PathBuf {
        self.tracefs.path().join(format!("instances/bowwave-test-{}", std::process::id()))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.instance().join(name)
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        let _ = fs::remove_dir(self.instance());
        let _ = unmount(self.tracefs.path(), UnmountFlags::DETACH);
    }
}

/// The class with the level, and the bytes, of a line
/// `... block_rq_issue: 7,0 RA 65536 () 17032 + 128 be,0,4 [tac]`; `None` of a write.
fn read_request(line: &str) -> Option<(String, u64)> {
    let (_, request) = line.split_once("block_rq_issue: ")?;
    let (request, _) = request.rsplit_once(" [")?;
    let (before, priority) = request.rsplit_once(' ')?;
    let mut words = before.split(' ').skip(1);
    let bytes = words.next()?.starts_with('R').then(|| words.next()?.parse().ok())??;
    let (class, level) = (priority.split(',').next()?, priority.rsplit(',').next()?);
    Some((format!("{class},{level}"), bytes))
}
