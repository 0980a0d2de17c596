//! The devices under file systems: what each one costs, and how much may be requested of it now.
//!
//! ```text
//!   room for one window = min(depth - (handed over, not submitted yet) - (in flight), depth / 8)
//! ```

use std::collections::BTreeMap;

use readahead::{DeviceCost, PAGE_BYTES};

use crate::Nanos;
use crate::command::{Command, Interest};
use crate::depth::{Depth, Readers};
use crate::ids::{BackingId, FileKey, Ticket};
use crate::input::{DeviceFacts, DiskStats, Origin};
use crate::learn::{FASTEST_DISK_S, Learner};
use crate::wide_windows::WideWindows;

/// With this many batches unanswered, a device is overloaded already and gets no more.
const MOST_BATCHES: usize = 16;

/// One device.
#[derive(Debug)]
pub(crate) struct Backing {
    id: BackingId,
    cost: DeviceCost,
    origin: Origin,
    depth: Depth,
    /// Corrects a cost that was not measured.
    learner: Option<Learner>,
    /// A measurement was requested, and has not come yet.
    is_probed: bool,
    /// The block layer can count its requests.
    is_counted: bool,
    /// It counts them now.
    counts: bool,
    stats: DiskStats,
    /// When these were reported; `None` if not yet since counting has begun.
    stats_at: Option<Nanos>,
    outstanding: Outstanding,
    /// Whether open files may have wider windows than their own, if some should.
    wide_windows: Option<WideWindows>,
}

/// Batches of reads that were handed to the body and not answered yet.
#[derive(Debug, Default)]
pub(crate) struct Outstanding {
    batches: BTreeMap<Ticket, Batch>,
    bytes: u64,
}

/// Reads of one file.
#[derive(Clone, Copy, Debug)]
struct Batch {
    file: FileKey,
    bytes: u64,
}

impl Outstanding {
    fn add(&mut self, ticket: Ticket, batch: Batch) {
        self.batches.insert(ticket, batch);
        self.bytes += batch.bytes;
    }

    /// Removes a batch. `None` if it is not there, so that a repeated answer counts once.
    fn remove(&mut self, ticket: Ticket) -> Option<Batch> {
        let batch = self.batches.remove(&ticket)?;
        self.bytes -= batch.bytes;
        Some(batch)
    }
}

impl Backing {
    fn new(id: BackingId, facts: DeviceFacts, out: &mut Vec<Command>) -> Self {
        let cost = if is_cost(&facts.cost) { facts.cost } else { DeviceCost::DISK };
        let is_guess = matches!(facts.origin, Origin::Guessed | Origin::Learned);
        let mut backing = Backing {
            id,
            cost,
            origin: facts.origin,
            depth: Depth::new(&cost),
            learner: is_guess.then(Learner::default),
            is_probed: is_guess,
            is_counted: facts.is_counted,
            counts: false,
            stats: DiskStats::default(),
            stats_at: None,
            outstanding: Outstanding::default(),
            wide_windows: None,
        };
        if backing.is_probed {
            out.push(Command::Probe(id));
        }
        backing.count(out);
        backing
    }

    /// What it costs.
    pub(crate) fn cost(&self) -> DeviceCost {
        self.cost
    }

    /// Where its cost comes from.
    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// Bytes that may be in flight.
    pub(crate) fn depth_bytes(&self) -> u64 {
        self.depth.limit_bytes()
    }

    /// What the eBPF programs should report of its files.
    pub(crate) fn interest(&self) -> Interest {
        if !self.cost.outpaces_user_space() {
            return Interest::All;
        }
        // Nothing less than twice the window is worth a change. Whom a wider one delays must be seen.
        let most_window = if self.is_counted { self.cost.ample_pages() / 2 } else { 0 };
        Interest::NotForward { most_window: u32::try_from(most_window).unwrap_or(u32::MAX) }
    }

    /// An open file should have a wider window. If that is the first one, the device's reads are counted from now on,
    /// so that it shows who else reads.
    pub(crate) fn expect_wide_windows(&mut self, now: Nanos, out: &mut Vec<Command>) {
        if self.is_counted && self.wide_windows.is_none() {
            self.wide_windows = Some(WideWindows::new(now));
            self.count(out);
        }
    }

    /// Whether some open files have, or should have, wider windows.
    pub(crate) fn has_wide_windows(&self) -> bool {
        self.wide_windows.is_some()
    }

    /// Whether windows may be wider now, by what is known of other readers.
    pub(crate) fn may_widen(&mut self, now: Nanos) -> bool {
        let reads = self.stats_at.map(|_| self.stats.foreground_reads);
        self.wide_windows.as_mut().is_some_and(|wide| wide.look(now, reads))
    }

    /// No open file should have a wider window any more. If others have waited too long, that is not forgotten.
    pub(crate) fn expect_no_wide_windows(&mut self, now: Nanos, out: &mut Vec<Command>) {
        if self.wide_windows.as_ref().is_some_and(|wide| !wide.are_banned(now)) {
            self.wide_windows = None;
            self.count(out);
        }
    }

    /// Whether a head must move between the places that it reads and writes.
    pub(crate) fn has_head(&self) -> bool {
        self.cost.is_serial() && self.cost.latency_s >= FASTEST_DISK_S
    }

    /// Bytes that the device would transfer in the time of one access, while foreground readers hold its depth down:
    /// what a small file costs them. Otherwise 0, as nobody waits.
    pub(crate) fn access_bytes(&self) -> u64 {
        let access_s = self.cost.latency_s / self.cost.concurrency.max(1.0);
        if self.depth.is_held_down() { (access_s * self.cost.bandwidth) as u64 } else { 0 }
    }

    /// Bytes that were requested and have not arrived.
    pub(crate) fn in_flight_bytes(&self) -> u64 {
        self.outstanding.bytes.saturating_add(self.stats.our_bytes_in_flight)
    }

    /// Most pages of one window now.
    pub(crate) fn room_pages(&self) -> u64 {
        if self.outstanding.batches.len() >= MOST_BATCHES {
            return 0;
        }
        let room = self.depth.limit_bytes().saturating_sub(self.in_flight_bytes());
        room.min(self.depth.share_bytes()) / PAGE_BYTES
    }

    /// A batch was handed over.
    pub(crate) fn hand_over(&mut self, ticket: Ticket, file: FileKey, bytes: u64) {
        self.outstanding.add(ticket, Batch { file, bytes });
    }

    /// Adjusts the depth to how long other readers waited, and a guessed cost to how long reads took. `readers` counts
    /// the managed ones. Returns whether [`interest`](Self::interest) has changed.
    pub(crate) fn steer(
        &mut self,
        now: Nanos,
        readers: impl FnOnce() -> Readers,
        out: &mut Vec<Command>,
    ) -> bool {
        if self.depth.is_due(now) {
            let is_late = self.depth.steer(now, &self.stats, readers(), &self.cost);
            if let Some(wide) = self.wide_windows.as_mut().filter(|_| is_late) {
                wide.end(now);
            }
        }
        let before = self.interest();
        if let Some(cost) = self.learned().filter(is_cost) {
            self.cost = cost;
            self.origin = Origin::Learned;
            self.depth.fit(&cost);
            out.push(Command::Remember(self.id, cost));
            self.count(out);
        }
        self.interest() != before
    }

    /// The cost, corrected by what was reported since the last correction.
    fn learned(&mut self) -> Option<DeviceCost> {
        let (learner, at) = (self.learner.as_mut()?, self.stats_at?);
        learner.correct(at, &self.cost, &self.stats)
    }

    /// The block layer's counters cost each request some time. They stay off where the device answers before user space
    /// can help, unless windows are wider there.
    fn count(&mut self, out: &mut Vec<Command>) {
        let is_of_use = self.interest() == Interest::All || self.has_wide_windows();
        let counts = self.is_counted && is_of_use;
        if counts != self.counts {
            self.counts = counts;
            // The counters will begin at zero again.
            self.stats = DiskStats::default();
            self.stats_at = None;
            self.depth.count_anew();
            self.learner = self.learner.take().map(|_| Learner::default());
            out.push(Command::Count(self.id, counts));
        }
    }

    fn measured(&mut self, cost: DeviceCost, out: &mut Vec<Command>) {
        self.cost = cost;
        self.origin = Origin::Measured;
        self.depth.fit(&cost);
        self.learner = None;
        self.count(out);
    }
}

/// Whether a device with this cost is possible. No other numbers are used, NaN included.
fn is_cost(cost: &DeviceCost) -> bool {
    (1e-9..=3600.0).contains(&cost.latency_s)
        && (1.0..=1e15).contains(&cost.bandwidth)
        && (1e-3..=1e6).contains(&cost.concurrency)
}

/// All devices under managed file systems.
#[derive(Debug, Default)]
pub(crate) struct Backings {
    all: BTreeMap<BackingId, Backing>,
}

impl Backings {
    /// A file system is on this device.
    pub(crate) fn meet(&mut self, id: BackingId, facts: DeviceFacts, out: &mut Vec<Command>) {
        self.all.entry(id).or_insert_with(|| Backing::new(id, facts, out));
    }

    /// Forgets devices without file systems.
    pub(crate) fn keep(&mut self, is_used: impl Fn(BackingId) -> bool, out: &mut Vec<Command>) {
        self.all.retain(|id, backing| {
            let keep = is_used(*id);
            if !keep && backing.counts {
                out.push(Command::Count(*id, false));
            }
            keep
        });
    }

    pub(crate) fn get(&self, id: BackingId) -> Option<&Backing> {
        self.all.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: BackingId) -> Option<&mut Backing> {
        self.all.get_mut(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (BackingId, &Backing)> {
        self.all.iter().map(|(id, backing)| (*id, backing))
    }

    /// Notes the counters of a device. They only grow, so smaller ones have come late.
    pub(crate) fn note_stats(&mut self, now: Nanos, id: BackingId, stats: DiskStats) {
        let Some(backing) = self.all.get_mut(&id).filter(|backing| backing.counts) else { return };
        if stats.our_reads >= backing.stats.our_reads {
            backing.stats = stats;
            backing.stats_at = Some(now);
        }
    }

    /// A batch was answered. Returns its file if the batch was under way.
    pub(crate) fn answered(&mut self, ticket: Ticket) -> Option<FileKey> {
        self.all.values_mut().find_map(|backing| Some(backing.outstanding.remove(ticket)?.file))
    }

    /// A device was measured, or cannot be. Returns whether its cost is new.
    pub(crate) fn measured(
        &mut self,
        id: BackingId,
        cost: Option<DeviceCost>,
        out: &mut Vec<Command>,
    ) -> bool {
        let Some(backing) = self.all.get_mut(&id) else { return false };
        backing.is_probed = false;
        cost.filter(is_cost).map(|cost| backing.measured(cost, out)).is_some()
    }

    /// When to look again who reads beside wider windows; `None` if there are none.
    pub(crate) fn next_look(&self) -> Option<Nanos> {
        self.all
            .values()
            .filter_map(|backing| Some(backing.wide_windows.as_ref()?.next_look()))
            .min()
    }

    /// Whether a measurement is under way.
    pub(crate) fn are_measured(&self) -> bool {
        self.all.values().any(|backing| backing.is_probed)
    }
}
