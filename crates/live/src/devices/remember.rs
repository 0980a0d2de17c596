//! Keeps measurements until reboot: a small JSON file for each disk in the state folder.
//!
//! A file counts only for a disk with the same name, number, size and diskseq, so another disk in its place is
//! measured. If a file is damaged or cannot be written, the disk is measured again.

use std::fs;
use std::path::{Path, PathBuf};

use controller::Origin;
use linux::mounts::Disk;
use readahead::DeviceCost;
use serde::{Deserialize, Serialize};

/// The contents of a file.
#[derive(Serialize, Deserialize)]
struct Note {
    identity: String,
    origin: Origin,
    latency_us: f64,
    bandwidth_mb_s: f64,
    concurrency: f64,
}

fn identity(disk: &Disk) -> String {
    format!("{} {} {}", disk.dev, disk.bytes().unwrap_or(0), disk.sequence.trim())
}

fn file_of(disk: &Disk, state: &Path) -> PathBuf {
    state.join("disks").join(format!("{}.json", disk.name))
}

/// What was found out about this disk since boot.
pub(super) fn recall(disk: &Disk, state: &Path) -> Option<(DeviceCost, Origin)> {
    let (of, cost, origin) = in_note(&fs::read(file_of(disk, state)).ok()?)?;
    (of == identity(disk)).then_some((cost, origin))
}

/// Parses a note into the disk's identity and cost; `None` if it is invalid.
pub(super) fn in_note(text: &[u8]) -> Option<(String, DeviceCost, Origin)> {
    let note: Note = serde_json::from_slice(text).ok()?;
    let cost = DeviceCost {
        latency_s: note.latency_us * 1e-6,
        bandwidth: note.bandwidth_mb_s * 1e6,
        concurrency: note.concurrency,
    };
    let is_finite =
        [cost.latency_s, cost.bandwidth, cost.concurrency].into_iter().all(f64::is_finite);
    let is_sane = cost.latency_s > 0.0 && cost.bandwidth > 0.0 && cost.concurrency >= 1.0;
    let is_found = matches!(note.origin, Origin::Measured | Origin::Learned);
    (is_finite && is_sane && is_found).then_some((note.identity, cost, note.origin))
}

/// Writes a note, if the state folder can be written.
pub(crate) fn note(disk: &Disk, cost: &DeviceCost, origin: Origin, state: &Path) {
    // What was learned may be written down late.
    if origin == Origin::Learned && matches!(recall(disk, state), Some((_, Origin::Measured))) {
        return;
    }
    let note = Note {
        identity: identity(disk),
        origin,
        latency_us: cost.latency_s * 1e6,
        bandwidth_mb_s: cost.bandwidth * 1e-6,
        concurrency: cost.concurrency,
    };
    if let Ok(text) = serde_json::to_string_pretty(&note) {
        // Without the note, the next start measures again.
        let _ = linux::whole::write(&file_of(disk, state), text);
    }
}
