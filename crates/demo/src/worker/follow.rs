//! Two readers of one file, the second a distance behind the first.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::mapping;
use patterns::PAGE_BYTES;

/// Bytes of each read of both.
const READ_BYTES: u64 = 64 << 10;

/// How often the follower checks the leader's position: in a millisecond, a disk delivers only 100 KB.
const LOOK: Duration = Duration::from_millis(1);

/// Reads the file twice. Returns the share of the follower's pages that were cached when it came.
pub(super) fn follow(path: &Path, behind: u64) -> io::Result<f64> {
    let (leader, follower) = (File::open(path)?, File::open(path)?);
    let bytes = leader.metadata()?.len();
    let done = AtomicU64::new(0);
    thread::scope(|scope| {
        let leading = scope.spawn(|| lead(&leader, bytes, &done));
        let cached = come_after(&follower, bytes, || {
            if leading.is_finished() {
                u64::MAX
            } else {
                done.load(Ordering::Relaxed).saturating_sub(behind)
            }
        })?;
        leading.join().unwrap_or_else(|_| Err(io::Error::other("the leader panicked")))?;
        Ok(cached as f64 / bytes.div_ceil(PAGE_BYTES) as f64)
    })
}

fn lead(file: &File, bytes: u64, done: &AtomicU64) -> io::Result<()> {
    let mut buffer = vec![0; READ_BYTES as usize];
    for offset in (0..bytes).step_by(buffer.len()) {
        let part = READ_BYTES.min(bytes - offset);
        file.read_exact_at(&mut buffer[..part as usize], offset)?;
        done.store(offset + part, Ordering::Relaxed);
    }
    Ok(())
}

/// Reads to the end, never beyond what `limit` says. Returns the number of pages that were cached.
fn come_after(file: &File, bytes: u64, limit: impl Fn() -> u64) -> io::Result<u64> {
    // The mapping is never touched. It only serves to ask which pages are cached.
    let map = mapping::map(file)?;
    let mut buffer = vec![0; READ_BYTES as usize];
    let mut cached = 0;
    for offset in (0..bytes).step_by(buffer.len()) {
        let part = READ_BYTES.min(bytes - offset);
        while limit() < offset + part {
            thread::sleep(LOOK);
        }
        let wanted = &map[offset as usize..(offset + part) as usize];
        cached +=
            mapping::resident_in(wanted)?.iter().filter(|is_cached| **is_cached).count() as u64;
        file.read_exact_at(&mut buffer[..part as usize], offset)?;
    }
    Ok(cached)
}
