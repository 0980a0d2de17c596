//! What is known of each disk: what it charges, and how much may be asked of it at once.

mod depth;
mod learn;
mod probe;
mod profile;
mod remember;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use linux::identity::Identity;
use linux::mounts::{Disk, Mount};
use linux::state;
use readahead::{DeviceCost, PAGE_BYTES};

use crate::observe::{DiskStats, Interest};
use depth::Depth;
use learn::Learner;
use remember::Origin;

/// What a network file system charges until measured: a millisecond's round trip on gigabit.
const NETWORK: DeviceCost = DeviceCost { latency_s: 0.001, bandwidth: 110e6, concurrency: 16.0 };

/// The disk under one or more file systems, or the far end of a network one.
pub(crate) struct Backing {
    pub(crate) cost: DeviceCost,
    /// Most pages one `readahead(2)` call reads.
    pub(crate) piece_pages: u64,
    /// Where the block layer counts its reads; `None` if nothing does or nobody needs it.
    pub(crate) slot: Option<usize>,
    /// Bytes handed to workers and not yet submitted.
    pub(crate) pending_bytes: Arc<AtomicU64>,
    /// Whose turn it is to submit; `None` where visits overlap anyway.
    pub(crate) turn: Option<Arc<Mutex<()>>>,
    pub(crate) disk: Option<Disk>,
    depth: Depth,
    /// Corrects a cost that was guessed.
    learner: Option<Learner>,
    state: PathBuf,
}

impl Backing {
    /// Finds out about the disk under `mount`: tuned, else remembered since
    /// boot, else measured, else guessed.
    pub(crate) fn of(mount: &Mount, disk: Option<Disk>, slot: Option<usize>, state: &Path) -> Self {
        let (cost, is_guess) = match &disk {
            Some(disk) => cost_of(disk, state),
            None => (cost_of_mount(mount), false),
        };
        let window = |attribute| disk.as_ref().and_then(|disk| disk.queue(attribute));
        let knob = linux::mounts::read_ahead_knob(mount);
        let read_ahead_kb =
            std::fs::read_to_string(knob).ok().and_then(|text| text.trim().parse().ok());
        // The kernel silently drops what exceeds the larger of the two.
        let piece_kb = window("max_sectors_kb").max(read_ahead_kb).unwrap_or(128).max(4);
        Backing {
            cost,
            piece_pages: piece_kb * 1024 / PAGE_BYTES,
            slot,
            pending_bytes: Arc::default(),
            turn: cost.is_serial().then(Arc::default),
            disk,
            depth: Depth::new(&cost),
            learner: is_guess.then(Learner::default),
            state: state.to_owned(),
        }
    }

    /// What is worth hearing of its files.
    pub(crate) fn interest(&self) -> Interest {
        if self.cost.outpaces_user_space() { Interest::NotForward } else { Interest::All }
    }

    /// Whether it has a head that goes to and fro between what it reads and what it writes.
    pub(crate) fn has_head(&self) -> bool {
        self.cost.is_serial() && self.cost.latency_s >= learn::FASTEST_DISK_S
    }

    /// Bytes asked for that have not arrived.
    fn in_flight(&self, stats: &DiskStats) -> u64 {
        self.pending_bytes.load(Ordering::Relaxed) + stats.our_bytes_in_flight
    }

    /// Pages that one window may ask for now.
    pub(crate) fn room_pages(&self, stats: &DiskStats) -> u64 {
        let room = self.depth.limit_bytes().saturating_sub(self.in_flight(stats));
        room.min(self.depth.share_bytes()) / PAGE_BYTES
    }

    /// Lets the depth follow what other readers have met with since the last call; gives whether
    /// something new was learned about the cost.
    pub(crate) fn steer(
        &mut self,
        now: u64,
        stats: &DiskStats,
        streams: impl FnOnce() -> u64,
    ) -> bool {
        self.depth.steer(now, stats, streams, &self.cost);
        let learnt = self.learner.as_mut().and_then(|learner| learner.correct(&self.cost, stats));
        let Some(cost) = learnt else {
            return false;
        };
        self.cost = cost;
        self.turn = cost.is_serial().then(Arc::default);
        if let Some(disk) = &self.disk {
            remember::note(disk, &cost, Origin::Learned, &self.state);
        }
        true
    }
}

#[cfg(any(test, fuzzing))]
pub(crate) fn read_any_note(bytes: &[u8]) {
    if let Some((_, cost, _)) = remember::in_note(bytes) {
        assert!(cost.latency_s > 0.0 && cost.bandwidth.is_finite() && cost.concurrency >= 1.0);
    }
}

/// What a network file system charges: as it was tuned, else a guess.
fn cost_of_mount(mount: &Mount) -> DeviceCost {
    profile::cost(&Identity::of(mount, None), Path::new(state::PROFILES)).unwrap_or(NETWORK)
}

/// What the disk charges, and whether that was guessed at first.
fn cost_of(disk: &Disk, state: &Path) -> (DeviceCost, bool) {
    if let Some(cost) = profile::cost(&Identity::of_disk(disk), Path::new(state::PROFILES)) {
        return (cost, false);
    }
    if let Some((cost, origin)) = remember::recall(disk, state) {
        return (cost, origin == Origin::Learned);
    }
    let guess = if disk.is_rotational() { DeviceCost::DISK } else { DeviceCost::FLASH };
    match probe::measure(disk, &guess) {
        Ok(cost) => {
            remember::note(disk, &cost, Origin::Measured, state);
            (cost, false)
        }
        Err(_) => (guess, true),
    }
}
