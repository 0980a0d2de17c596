//! A lab without delays, files on it, and small memory cgroups.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lab::LabGuard;
use rustix::fs::{Advice, fadvise};
use rustix::process::{Pid, Signal, kill_process};

use crate::managed;
use crate::own::Own;
use crate::removals::PAGE_BYTES;
use crate::stage::{self, Alone, BOWWAVE, skipped};

pub(crate) const MB: u64 = 1 << 20;

pub(crate) struct Bench {
    pub(crate) lab: LabGuard,
    pub(crate) state: tempfile::TempDir,
    _alone: Alone,
}

/// `None` where labs or eBPF do not work, unless BOWWAVE_REQUIRE_LIVE makes that a failure.
pub(crate) fn bench() -> Option<Bench> {
    bench_with("net", "ext4")
}

/// On that device, with that file system; `None` also where the machine lacks another one than ext4.
pub(crate) fn bench_with(device: &str, fs_type: &str) -> Option<Bench> {
    managed::possible()?;
    if let Some(reason) = lacks(fs_type) {
        if fs_type == "ext4" {
            return skipped(&reason);
        }
        eprintln!("skipped: {reason}");
        return None;
    }
    let (alone, lab) = stage::lab("behind", device, 1536 * MB, fs_type);
    lab.set_fast(true).expect("fast");
    Some(Bench { lab, state: stage::state(), _alone: alone })
}

/// What keeps this machine from having such a file system.
fn lacks(fs_type: &str) -> Option<String> {
    if let Err(error) = Command::new(format!("mkfs.{fs_type}")).arg("-V").output() {
        return Some(format!("mkfs.{fs_type}: {error}; `scripts/setup tests` installs it"));
    }
    // It may be a module that nothing has asked for yet; without modules there is no modprobe either.
    let _ = Command::new("modprobe").arg(fs_type).output();
    let known = fs::read_to_string("/proc/filesystems").expect("/proc is mounted");
    let is_known = known.split_ascii_whitespace().any(|word| word == fs_type);
    (!is_known).then(|| format!("this kernel does not know {fs_type}"))
}

impl Bench {
    /// A file that is not cached.
    pub(crate) fn cold(&self, name: &str, bytes: u64) -> PathBuf {
        let path = self.lab.mount_point().join(name);
        stage::write_lines(&path, bytes);
        evict(&path);
        path
    }

    /// Bytes read from the device so far.
    pub(crate) fn device_bytes(&self) -> u64 {
        self.lab.status().expect("counters").bytes_read
    }

    /// Has bowwave measure the disk, so that no later run reads it for that.
    pub(crate) fn measure_disk(&self, file: &Path) {
        let note = managed::disk_note(&self.lab, self.state.path());
        let is_measured = || {
            summary_of(self.run(&[], &["head", "-c", "4096", text(file)]));
            note.exists()
        };
        assert!(comes_true(is_measured), "there is no {}", note.display());
        evict(file);
    }

    /// `bowwave run --json --strict` with these options and this command, its standard output thrown away. Without
    /// `--strict` a command as fast as this lab could end before its reads are managed.
    pub(crate) fn run(&self, options: &[&str], command: &[&str]) -> Command {
        let mut run = Command::new(BOWWAVE);
        run.args(["run", "--json", "--strict", "--state"]).arg(self.state.path()).args(options);
        run.arg("--").args(command).stdout(Stdio::null());
        run
    }
}

impl Bench {
    /// A daemon that manages reads of this lab's files from now on.
    pub(crate) fn daemon(&self, options: &[&str]) -> Own {
        let daemon = &mut managed::daemon(&self.lab, self.state.path(), options);
        let (mut daemon, output) = managed::begin(daemon);
        daemon.stdout = Some(output.into_inner());
        daemon
    }
}

/// Ends a daemon; gives its summary.
pub(crate) fn end(mut daemon: Own) -> serde_json::Value {
    kill_process(Pid::from_child(&daemon), Signal::TERM).expect("it runs");
    let mut said = String::new();
    let mut output = daemon.stdout.take().expect("piped");
    output.read_to_string(&mut said).expect("it ends");
    assert!(daemon.wait().expect("it ended").success());
    serde_json::from_str(&said).expect("JSON")
}

/// Runs it to its end; gives the summary.
pub(crate) fn summary_of(mut run: Command) -> serde_json::Value {
    let output = run.stderr(Stdio::piped()).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let line = said.lines().find(|line| line.starts_with('{'));
    serde_json::from_str(line.unwrap_or_else(|| panic!("no summary: {said}"))).expect("JSON")
}

/// A figure of a summary.
pub(crate) fn bytes(summary: &serde_json::Value, field: &str) -> u64 {
    summary[field].as_u64().unwrap_or_else(|| panic!("no {field}: {summary}"))
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("plain names")
}

/// Writes what is dirty and drops the file's pages. What is being read just now goes when that is done.
pub(crate) fn evict(path: &Path) {
    let file = File::open(path).expect("it is there");
    file.sync_all().expect("written");
    let is_cold = || {
        fadvise(&file, 0, None, Advice::DontNeed).expect("advised");
        resident(path) == 0
    };
    assert!(comes_true(is_cold), "{} bytes stay cached", resident(path));
}

/// Whether this comes true within a time that is long for any machine.
pub(crate) fn comes_true(mut is_true: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(60);
    while !is_true() {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// The most bytes of other files that are dropped as well: of the program's own binary and its libraries, where these
/// were cold.
pub(crate) const OTHER_FILES_BYTES: u64 = 8 * MB;

/// Whether so many bytes are those of the file, and perhaps of the [other files](OTHER_FILES_BYTES).
pub(crate) fn is_about(bytes: u64, file_bytes: u64) -> bool {
    (file_bytes * 99 / 100..file_bytes + OTHER_FILES_BYTES).contains(&bytes)
}

/// Whether nothing of a file of so many bytes is left, but for a page or two.
pub(crate) fn is_gone(path: &Path) -> bool {
    resident(path) <= fs::metadata(path).expect("it is there").len() / 100
}

/// Bytes of the file that are cached; this is no use of them.
pub(crate) fn resident(path: &Path) -> u64 {
    let file = File::open(path).expect("it is there");
    if file.metadata().expect("it is there").len() == 0 {
        return 0;
    }
    let pages = demo::resident(&file).expect("the kernel tells");
    pages.iter().filter(|is_cached| **is_cached).count() as u64 * PAGE_BYTES
}

/// Bytes that the file system may read of its own.
pub(crate) const METADATA_BYTES: u64 = MB / 4;

/// A reader that has the kernel read nothing ahead for it.
pub(crate) fn open_random(path: &Path) -> File {
    let file = File::open(path).expect("it is there");
    fadvise(&file, 0, None, Advice::Random).expect("advised");
    file
}

/// Reads `[from, to)` of it.
pub(crate) fn read(file: &File, from: u64, to: u64) {
    let mut bytes = vec![0; (to - from) as usize];
    file.read_exact_at(&mut bytes, from).expect("it can be read");
}
