//! Measurements kept until reboot, one small JSON file a disk under the state folder.
//!
//! A disk is recognised by its name, number, size and diskseq, so that another disk in its place
//! is measured anew. A file that is damaged or cannot be written costs a new measurement, nothing
//! else.

use std::fs;
use std::path::{Path, PathBuf};

use linux::mounts::Disk;
use readahead::DeviceCost;
use serde::{Deserialize, Serialize};

/// Where a cost comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Origin {
    /// A measurement when the disk was met.
    Measured,
    /// A guess, corrected by the reads that went by.
    Learned,
}

#[derive(Serialize, Deserialize)]
struct Note {
    identity: String,
    origin: Origin,
    latency_us: f64,
    bandwidth_mb_s: f64,
    concurrency: f64,
}

fn identity(disk: &Disk) -> String {
    let attribute = |name| fs::read_to_string(disk.sysfs.join(name)).unwrap_or_default();
    format!("{} {} {}", disk.dev, attribute("size").trim(), attribute("diskseq").trim())
}

fn file_of(disk: &Disk, state: &Path) -> PathBuf {
    state.join("disks").join(format!("{}.json", disk.name))
}

/// What was found out about this very disk since boot.
pub(super) fn recall(disk: &Disk, state: &Path) -> Option<(DeviceCost, Origin)> {
    let (of, cost, origin) = in_note(&fs::read(file_of(disk, state)).ok()?)?;
    (of == identity(disk)).then_some((cost, origin))
}

/// Of which disk a note is, and what it says; `None` if that cannot be.
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
    (is_finite && is_sane).then_some((note.identity, cost, note.origin))
}

/// Keeps a measurement, if the state folder can be written.
pub(super) fn note(disk: &Disk, cost: &DeviceCost, origin: Origin, state: &Path) {
    let note = Note {
        identity: identity(disk),
        origin,
        latency_us: cost.latency_s * 1e6,
        bandwidth_mb_s: cost.bandwidth * 1e-6,
        concurrency: cost.concurrency,
    };
    if let Ok(text) = serde_json::to_string_pretty(&note) {
        // Without the note the next start measures again.
        let _ = linux::whole::write(&file_of(disk, state), text);
    }
}
