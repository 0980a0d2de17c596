//! What tests on the running kernel stand on: a lab disk of their own, one at a time.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lab::{LabGuard, Options};
use tempfile::TempDir;

pub(crate) const BOWWAVE: &str = env!("CARGO_BIN_EXE_bowwave");

/// Locked while there is a lab.
pub(crate) type Alone = MutexGuard<'static, ()>;

/// A lab, and the right to be the only one in this process. Drop the lab first: a struct holds it before [`Alone`].
/// Labs are loop devices and real-time threads, and tests look at what is cached, so two would disturb each other.
pub(crate) fn lab(
    purpose: &str,
    device: &str,
    size_bytes: u64,
    fs_type: &str,
) -> (Alone, LabGuard) {
    let alone = alone();
    let options = Options {
        name: format!("{purpose}-{}", std::process::id()),
        device: device.into(),
        size_bytes,
        fs_type: fs_type.into(),
        scheduler: None,
        server: Some(PathBuf::from(BOWWAVE)),
        inject_late_us: 0.0,
        faults: Vec::new(),
    };
    (alone, LabGuard::up(&options).expect("a lab"))
}

/// The right to be the only one in this process that makes labs.
pub(crate) fn alone() -> Alone {
    static ONE_LAB: Mutex<()> = Mutex::new(());
    ONE_LAB.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A state folder. It lies in memory, as the default one does: a disk that has much to write would keep the ledger of
/// windows waiting, and with it each change of a window.
pub(crate) fn state() -> TempDir {
    tempfile::tempdir_in("/run").or_else(|_| tempfile::tempdir()).expect("a folder")
}

/// Writes a file of short lines, no two blocks of which are equal.
#[allow(dead_code)]
pub(crate) fn write_lines(path: &Path, bytes: u64) {
    const BLOCK_BYTES: usize = 64 << 10;
    let mut file = File::create(path).expect("the file");
    let mut block = b"bowwave\n".repeat(BLOCK_BYTES / 8);
    for start in (0..bytes).step_by(BLOCK_BYTES) {
        block[..8].copy_from_slice(&start.to_le_bytes());
        let left = block.len().min((bytes - start) as usize);
        file.write_all(&block[..left]).expect("written");
    }
}

/// Says why a test is skipped; with BOWWAVE_REQUIRE_LIVE that is a failure.
pub(crate) fn skipped<T>(reason: &str) -> Option<T> {
    assert!(std::env::var_os("BOWWAVE_REQUIRE_LIVE").is_none(), "cannot test live:\n{reason}");
    eprintln!("skipped: {reason}");
    None
}

/// Waits for what happens within that time.
#[allow(dead_code)]
pub(crate) fn wait_until(what: &str, most: Duration, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < most, "it never comes to it that {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
