//! The controller: how it handles each input.

use readahead::{History, PAGE_BYTES, Plan, Policy};
use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::backings::Backings;
use crate::behind::{Behind, Mode, Rules};
use crate::command::Command;
use crate::files::FileTable;
use crate::ids::{BackingId, DeviceNumber};
use crate::input::{Completed, Input, Mounted, clipped};
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::orders::{Orders, Tickets};
use crate::remembered::Starts;
use crate::savings::Saved;
use crate::volumes::Volumes;
use crate::walks::Walks;
use crate::windows::{Bound, Windows};

/// What is managed, and how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// Which cgroup is charged for pages read ahead.
    pub charge: Charge,
    /// Rules of drop-behind; `None` if the body cannot drop pages.
    pub behind: Option<Rules>,
}

/// Which memory cgroup is charged for pages that are read ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Charge {
    /// Bowwave's own. Its limit bounds what is read ahead, and a reader in a small cgroup need not evict its own pages.
    #[default]
    Bowwave,
    /// The reader's, where the kernel can be made to read by itself: forward streams get a larger window. Backward,
    /// strided and dense reading is still charged to bowwave.
    Reader,
}

/// Streams and files that are idle for longer are forgotten.
pub(crate) const IDLE_NS: Nanos = 10_000_000_000;

/// Interval at which idle streams and files are forgotten.
const HOUSEKEEPING_NS: Nanos = 1_000_000_000;

/// Interval at which changes of windows are retried while any are waiting.
const WINDOWS_NS: Nanos = 1_000_000;

/// Decides what to read ahead and drop, and which windows to set. The [crate](crate) describes how it is driven.
pub struct Controller {
    pub(crate) options: Options,
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) plan: Plan,
    pub(crate) volumes: Volumes,
    pub(crate) backings: Backings,
    pub(crate) memory: Memory,
    pub(crate) files: FileTable,
    pub(crate) windows: Windows,
    pub(crate) behind: Option<Behind>,
    pub(crate) walks: Walks,
    /// The starts of commands that are remembered.
    pub(crate) starts: Starts,
    pub(crate) metrics: Metrics,
    /// What was saved and spent on file systems that are unmounted.
    saved_before: Saved,
    pub(crate) tickets: Tickets,
    tidied_at: Nanos,
}

impl Controller {
    /// A controller that knows nothing yet. Its first commands go to `out`.
    pub fn new(options: Options, policy: Box<dyn Policy>, out: &mut Vec<Command>) -> Self {
        let drops = |rules: &Rules| rules.may_be(Mode::Always) || rules.may_be(Mode::Auto);
        let behind = options.behind.clone().filter(drops).map(|rules| Behind::new(rules, out));
        Controller {
            options,
            policy,
            plan: Plan::new(),
            volumes: Volumes::default(),
            backings: Backings::default(),
            memory: Memory::new(),
            files: FileTable::default(),
            windows: Windows::default(),
            behind,
            walks: Walks::default(),
            starts: Starts::default(),
            metrics: Metrics::default(),
            saved_before: Saved::default(),
            tickets: Tickets::default(),
            tidied_at: 0,
        }
    }

    /// Handles one input, which happened at `now`. Appends commands to `out`.
    pub fn on(&mut self, now: Nanos, input: &Input, out: &mut Vec<Command>) {
        let before = out.len();
        self.handle(now, input, out);
        self.keep_watching_members(before, out);
    }

    fn handle(&mut self, now: Nanos, input: &Input, out: &mut Vec<Command>) {
        match input {
            Input::Access(access) => self.on_access(now, &access.clipped(), out),
            Input::FileMiss(miss) => self.on_file_miss(now, miss, out),
            Input::Passed(passed) => {
                self.metrics.events += 1;
                if self.volumes.backing(passed.of.file.dev).is_some()
                    && let Some(behind) = &mut self.behind
                {
                    let memory = self.memory.available_to(passed.cgroup);
                    let mut orders = Orders { now, tickets: &mut self.tickets, out };
                    behind.on_passed(&passed.clipped(), memory, &mut orders);
                }
            }
            Input::DiskStats(backing, stats) => self.backings.note_stats(now, *backing, *stats),
            Input::MemoryStats(stats) => self.memory.note(now, stats),
            Input::Completed(completed) => self.on_completed(now, completed, out),
            Input::Mounted(mounted) => self.on_mounted(now, mounted, out),
            Input::Unmounted(dev) => self.on_unmounted(now, *dev, out),
            Input::Exited(tgid) => {
                self.on_member_exited(*tgid);
                if let Some(behind) = &mut self.behind {
                    behind.on_exited(*tgid);
                }
            }
            Input::Tick => self.on_tick(now, out),
            Input::Remembered(list) => self.on_start(now, list),
            Input::Joined(start, tgid) => self.on_joined(now, *start, *tgid, out),
            Input::History(dev, history) if self.volumes.backing(*dev).is_some() => {
                self.policy.recall(now, dev.volume(), history);
            }
            // Nothing is remembered of a volume that is not managed.
            Input::History(..) => {}
        }
    }

    fn on_completed(&mut self, now: Nanos, completed: &Completed, out: &mut Vec<Command>) {
        match completed {
            Completed::Read { ticket, failed } => self.on_read(now, *ticket, *failed, out),
            Completed::Probed { backing, cost } => {
                if self.backings.measured(*backing, *cost, out) {
                    self.watch_volumes_on(*backing, out);
                }
            }
            Completed::WindowSet { ticket, target, outcome, during } => {
                self.windows.answered(now, *ticket, *target, *outcome, *during);
                self.reconcile_windows(now, out);
            }
            Completed::LeftBehind { entry, file } => {
                self.windows.recovered(now, *entry, *file);
                self.reconcile_windows(now, out);
            }
            Completed::Listed { ticket, listing } => {
                self.on_listed(now, *ticket, listing.as_ref(), out);
            }
            Completed::FilesRead { ticket, files, bytes } => {
                self.on_files_read(now, *ticket, *files, *bytes, out);
            }
            Completed::RememberedRead { ticket, found } => {
                self.on_remembered_read(now, *ticket, found, out);
            }
            Completed::Recalled { start, list } => self.on_recalled(*start, list, out),
            Completed::Released { .. }
            | Completed::WroteOut { .. }
            | Completed::Described { .. }
            | Completed::Touched { .. } => self.on_behind(now, completed, out),
        }
    }

    fn on_behind(&mut self, now: Nanos, completed: &Completed, out: &mut Vec<Command>) {
        let Some(behind) = &mut self.behind else { return };
        match completed {
            Completed::Released { ticket, dropped_pages, kept_pages, left } => {
                behind.on_released(now, *ticket, (*dropped_pages, *kept_pages), left);
            }
            Completed::WroteOut { ticket } => behind.on_wrote_out(*ticket),
            Completed::Described { stream, attributes } => {
                let mut orders = Orders { now, tickets: &mut self.tickets, out };
                behind.on_described(*stream, attributes, &mut orders);
            }
            Completed::Touched { stream, span } => {
                behind.on_touched(*stream, span.map(clipped), now);
            }
            _ => {}
        }
    }

    fn on_mounted(&mut self, now: Nanos, mounted: &Mounted, out: &mut Vec<Command>) {
        if self.volumes.backing(mounted.dev).is_some_and(|known| known != mounted.backing) {
            self.on_unmounted(now, mounted.dev, out);
        }
        self.backings.meet(mounted.backing, mounted.device, out);
        self.volumes.add(mounted.dev, mounted.backing);
        let interest = self.backings.get(mounted.backing).map(|backing| backing.interest());
        out.push(Command::Watch(mounted.dev, interest));
    }

    fn on_unmounted(&mut self, now: Nanos, dev: DeviceNumber, out: &mut Vec<Command>) {
        if !self.volumes.remove(dev) {
            return;
        }
        self.saved_before = self.saved_before.plus(self.saved_on(dev));
        self.policy.forget_volume(dev.volume());
        out.push(Command::Watch(dev, None));
        let volumes = &self.volumes;
        self.backings.keep(|backing| volumes.is_used(backing), out);
        self.walks.forget_volume(dev, &mut Orders { now, tickets: &mut self.tickets, out });
        self.forget_remembered_volume(dev);
        self.files.forget_volume(dev);
        self.windows.forget_volume(dev);
        if let Some(behind) = &mut self.behind {
            behind.forget_volume(dev, &mut Orders { now, tickets: &mut self.tickets, out });
        }
    }

    /// Tells the eBPF programs again what to report of the file systems on a device.
    pub(crate) fn watch_volumes_on(&mut self, backing: BackingId, out: &mut Vec<Command>) {
        let interest = self.backings.get(backing).map(|backing| backing.interest());
        for dev in self.volumes.on(backing) {
            out.push(Command::Watch(dev, interest));
        }
    }

    fn on_tick(&mut self, now: Nanos, out: &mut Vec<Command>) {
        if let Some(behind) = &mut self.behind {
            let (volumes, backings) = (&self.volumes, &self.backings);
            let has_head = |dev| {
                let backing = volumes.backing(dev).and_then(|id| backings.get(id));
                backing.is_some_and(|backing| backing.has_head())
            };
            behind.tick(&has_head, &mut Orders { now, tickets: &mut self.tickets, out });
            self.windows.stop_look_ahead(behind.copied());
        }
        self.look_after_wide_windows(now, out);
        self.reconcile_windows(now, out);
        if now.saturating_sub(self.tidied_at) >= HOUSEKEEPING_NS {
            self.tidied_at = now;
            self.tidy(now, out);
        }
    }

    /// Asks for the next change of a window, if one is due.
    pub(crate) fn reconcile_windows(&mut self, now: Nanos, out: &mut Vec<Command>) {
        let mut orders = Orders { now, tickets: &mut self.tickets, out };
        self.windows.reconcile(&self.volumes, &mut orders);
    }

    fn tidy(&mut self, now: Nanos, out: &mut Vec<Command>) {
        self.policy.forget_idle(now, IDLE_NS);
        self.forget_walks(now, now.saturating_sub(IDLE_NS), out);
        self.memory.forget_idle(now);
        self.windows.bound_cgroups(|cgroup, known| Bound {
            limit: self.memory.kernel_pages(cgroup).unwrap_or(known.limit),
            thrashing: self.policy.window_bound(cgroup.group()),
        });
        self.windows.tidy(now);
        self.let_go_of_starts(now, out);
        self.ask_for_remembered(now, out);
        self.keep_remembered_marks(now);
        self.files.forget_before(now.saturating_sub(IDLE_NS), |file| {
            out.push(Command::Listen(file, Default::default()));
        });
    }

    /// When [`Input::Tick`] is due next, if nothing else happens.
    pub fn next_tick(&self, now: Nanos) -> Nanos {
        let wait = match () {
            () if self.windows.is_busy(&self.volumes) => WINDOWS_NS,
            () if self.behind.as_ref().is_some_and(Behind::is_busy) => crate::behind::BUSY_NS,
            () => HOUSEKEEPING_NS,
        };
        let look = self.backings.next_look().unwrap_or(Nanos::MAX);
        now.saturating_add(wait).min(look.max(now.saturating_add(WINDOWS_NS)))
    }

    /// Whether a device is being measured. Until then, its cost is a guess.
    pub fn is_measuring(&self) -> bool {
        self.backings.are_measured()
    }

    /// Whether pages that programs have read or written so far may have to be dropped.
    pub fn may_drop(&self) -> bool {
        self.behind.as_ref().is_some_and(Behind::may_drop)
    }

    /// The managed processes have ended, and bowwave will end. The pages of ended streams are dropped, and writing is
    /// never given up from now on.
    pub fn finish(&mut self) {
        if let Some(behind) = &mut self.behind {
            behind.finish();
        }
    }

    /// Whether pages of an ended process are still to be dropped.
    pub fn has_left_overs(&self) -> bool {
        self.behind.as_ref().is_some_and(Behind::has_left_overs)
    }

    /// How the files of each managed file system were read of late. The next controller can begin with that:
    /// [`Input::History`].
    pub fn histories(&self) -> impl Iterator<Item = (DeviceNumber, &History)> {
        self.volumes.all().filter_map(|dev| Some((dev, self.policy.history(dev.volume())?)))
    }

    /// Totals so far, without those that the body counts.
    pub fn metrics(&self) -> Metrics {
        let (tally, walks) = (self.policy.tally(), self.walks.totals());
        let remembered = self.starts.totals();
        let behind = self.behind.as_ref().map(Behind::totals).unwrap_or_default();
        let saved = self.volumes.all().map(|dev| self.saved_on(dev));
        let settled = Saved::of(self.policy.settled());
        let Saved { earned_s, spent_s } = saved.fold(self.saved_before.plus(settled), Saved::plus);
        Metrics {
            earned_s,
            spent_s,
            used_bytes: tally.used_pages * PAGE_BYTES,
            wasted_bytes: tally.wasted_pages * PAGE_BYTES,
            dense_bytes: tally.dense_pages * PAGE_BYTES,
            stalls_saved: tally.stalls_saved,
            bounded_windows: self.windows.bounded(),
            refused_windows: self.windows.refused(),
            walk_files: walks.files,
            walk_files_used: walks.used_files,
            walk_bytes: walks.bytes,
            listings: walks.listings,
            remembered_ranges: remembered.ranges,
            remembered_used: remembered.used,
            remembered_bytes: remembered.bytes,
            dropped_bytes: behind.dropped_pages.saturating_mul(PAGE_BYTES),
            kept_bytes: behind.kept_pages.saturating_mul(PAGE_BYTES),
            left_bytes: behind.left_pages.saturating_mul(PAGE_BYTES),
            ..self.metrics
        }
    }
}
