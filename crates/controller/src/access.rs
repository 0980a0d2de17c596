//! One access: from the report of the eBPF programs to the pages requested.
//!
//! ```text
//!   Access --> question? --> room of device and memory --> policy --> plan --> Read, Mark, windows
//! ```

use readahead::behind::Span;
use readahead::{Action, CacheView, DeviceCost, GroupId, Hint, PAGE_BYTES, Page, Past};

use crate::Nanos;
use crate::backings::Backing;
use crate::command::Command;
use crate::controller::{Charge, Controller};
use crate::depth::Readers;
use crate::ids::BackingId;
use crate::input::{Access, Kind};
use crate::memory::Room;
use crate::metrics::Reason;
use crate::windows::Bound;

/// What was done about an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decided {
    /// Pages were requested.
    Read,
    /// The kernel reads the pages, in a window set for that.
    LeftToKernel,
    /// Nothing was requested.
    Nothing(Reason),
}

/// What the policy may know of the device and of memory.
struct Facts {
    cost: DeviceCost,
    room: Room,
    past: Past,
    group: GroupId,
}

impl CacheView for Facts {
    /// Nobody looks into the page cache. What is known of it comes with the access.
    fn cached_in(&self, _start: Page, pages: u64) -> u64 {
        pages
    }

    fn past(&self) -> Past {
        self.past
    }

    fn group(&self) -> GroupId {
        self.group
    }

    fn cost(&self) -> DeviceCost {
        self.cost
    }

    fn room_pages(&self) -> u64 {
        self.room.pages
    }

    fn ahead_pages(&self) -> u64 {
        self.room.all_pages
    }
}

impl Controller {
    /// An access was reported. Walks and remembered starts look at it first; the touch of a mark of theirs tells the
    /// policy nothing.
    pub(crate) fn on_access(&mut self, now: Nanos, access: &Access, out: &mut Vec<Command>) {
        self.metrics.events += 1;
        let Some(backing) = self.volumes.backing(access.of.file.dev) else { return };
        self.steer(now, backing, out);
        let is_only_remembered = self.on_starting_access(now, access, out);
        if self.on_walkers_access(now, access, out) || is_only_remembered {
            return;
        }
        self.decide(now, access, out);
    }

    /// Adjusts the depth of a device, before anybody asks how much of it is left.
    fn steer(&mut self, now: Nanos, id: BackingId, out: &mut Vec<Command>) {
        let (files, walks, volumes) = (&self.files, &self.walks, &self.volumes);
        let is_there = |dev| volumes.backing(dev) == Some(id);
        let readers = || Readers {
            streams: files.streams(now, is_there),
            walkers: walks.walkers_at(now, is_there),
        };
        let Some(backing) = self.backings.get_mut(id) else { return };
        if backing.steer(now, readers, out) {
            self.watch_volumes_on(id, out);
        }
    }

    /// Asks the policy what to do about an access, and issues the commands.
    fn decide(&mut self, now: Nanos, access: &Access, out: &mut Vec<Command>) {
        let Some(id) = self.volumes.backing(access.of.file.dev) else { return };
        let (room, lack) = self.room_for(now, access);
        let Some(backing) = self.backings.get(id) else { return };
        let (cost, past, group) = (backing.cost(), access.past, access.cgroup.group());
        let facts = Facts { cost, room, past, group };
        let interest = backing.interest();
        let seen = self.as_policy_sees(now, access);
        self.plan.clear();
        self.policy.on_access(&seen, &facts, &mut self.plan);
        self.note_ahead();
        self.set_windows(now, access, id, room.kernel_pages);
        let decided = self.ask(now, access, lack, seen.hint, out);
        self.account(now, access, interest, decided, out);
        self.reconcile_windows(now, out);
    }

    /// Room that device and memory leave to a reader, and the reason if there is none.
    fn room_for(&mut self, now: Nanos, access: &Access) -> (Room, Reason) {
        let ahead = self.ahead_bytes() / PAGE_BYTES;
        let memory = self.memory.room(now, access.cgroup, access.of.file, ahead);
        let is_held_back = self.behind.as_ref().is_some_and(|b| b.holds_back(access.of.tgid))
            || self.windows.is_copied_by(access);
        let backing = self.volumes.backing(access.of.file.dev);
        let device = backing.and_then(|id| self.backings.get(id)).map_or(0, Backing::room_pages);
        let device = if is_held_back { 0 } else { device };
        let lack = match () {
            () if is_held_back => Reason::WritesTooFast,
            () if device == 0 => Reason::DeviceBusy,
            () if memory.pages == 0 => Reason::MemoryFull,
            () => Reason::NothingToGain,
        };
        (Room { pages: memory.pages.min(device), ..memory }, lack)
    }

    /// Decides which windows the kernel should have after this access.
    fn set_windows(
        &mut self,
        now: Nanos,
        access: &Access,
        backing: BackingId,
        kernel_pages: Option<u32>,
    ) {
        let bound = self.policy.window_bound(access.cgroup.group());
        let window = self.windows.window_of(access);
        let wanted = self.plan.actions().iter().find_map(|action| match action {
            Action::KernelWindow { pages } => Some(*pages),
            _ => None,
        });
        // A wanted window that equals the group's bound is the bound itself: `note_access` below sets it. It is passed
        // on here only if it widens a narrow window.
        if let Some(pages) = wanted.filter(|pages| Some(*pages) != bound || *pages > window) {
            self.windows.narrow(now, access, pages);
        }
        self.windows.note_access(
            now,
            access,
            backing,
            Bound { limit: kernel_pages, thrashing: bound },
        );
        if access.kind == Kind::Miss && !self.plan.is_recognised() {
            self.windows.narrow_again(now, access);
        }
        if let Some(pages) = self.plan.whole_request() {
            self.windows.note_long_request(access, pages);
        }
    }

    /// Requests the plan's pages: by a command, or from the kernel through a larger window.
    fn ask(
        &mut self,
        now: Nanos,
        access: &Access,
        lack: Reason,
        hint: Hint,
        out: &mut Vec<Command>,
    ) -> Decided {
        let pages = self.plan.pages();
        if pages == 0 && self.widens(now, access, out) {
            return Decided::LeftToKernel;
        }
        if pages == 0 {
            return Decided::Nothing(if hint == Hint::Random { Reason::Advised } else { lack });
        }
        if self.is_left_to_kernel(now, access) {
            return Decided::LeftToKernel;
        }
        let ticket = self.tickets.next();
        for action in self.plan.actions() {
            if let Action::Read { start, pages, cause } = *action {
                let span = Span { start, end: start + pages };
                out.push(Command::Read { ticket, of: access.of, span, why: cause });
                if let Some(start) = self.starts.of_mut(access.of.tgid) {
                    start.note_read_ahead(now, access.of.file, span);
                }
            }
        }
        let backing = self.volumes.backing(access.of.file.dev);
        if let Some(backing) = backing.and_then(|id| self.backings.get_mut(id)) {
            backing.hand_over(ticket, access.of.file, pages * PAGE_BYTES);
        }
        Decided::Read
    }

    /// Whether the kernel can be made to read the plan: one range ahead of a plain reader, where the reader's cgroup is
    /// to be charged.
    fn is_left_to_kernel(&mut self, now: Nanos, access: &Access) -> bool {
        if self.options.charge != Charge::Reader
            || self.policy.window_bound(access.cgroup.group()).is_some()
        {
            return false;
        }
        let mut reads = self.plan.actions().iter().filter_map(|action| match action {
            Action::Read { start, pages, .. } => Some((*start, *pages)),
            _ => None,
        });
        let (Some((start, pages)), None) = (reads.next(), reads.next()) else { return false };
        let is_ahead = start > access.page && !access.mapped && access.kind != Kind::Fault;
        let pages = u32::try_from(pages).unwrap_or(u32::MAX);
        is_ahead && pages > access.kernel_window && self.windows.enlarge(now, access, pages)
    }

    /// Whether the kernel gets a wider window for the open file now, as the plan asks.
    fn widens(&mut self, now: Nanos, access: &Access, out: &mut Vec<Command>) -> bool {
        let Some(pages) = self.plan.wider_window() else { return false };
        let Some(id) = self.volumes.backing(access.of.file.dev) else { return false };
        if !self.windows.widen(now, access, pages) {
            return false;
        }
        if let Some(backing) = self.backings.get_mut(id) {
            backing.expect_wide_windows(now, out);
        }
        self.look_after_wide_windows_on(now, id);
        self.windows.is_larger(now, access)
    }

    /// Adjusts wider windows to who else reads.
    pub(crate) fn look_after_wide_windows(&mut self, now: Nanos, out: &mut Vec<Command>) {
        let wide = self.backings.iter().filter(|(_, backing)| backing.has_wide_windows());
        for id in wide.map(|(id, _)| id).collect::<Vec<_>>() {
            self.steer(now, id, out);
            self.look_after_wide_windows_on(now, id);
            let are_wide = self.volumes.on(id).any(|dev| self.windows.are_wide_on(dev));
            if let Some(backing) = self.backings.get_mut(id).filter(|_| !are_wide) {
                backing.expect_no_wide_windows(now, out);
            }
        }
    }

    fn look_after_wide_windows_on(&mut self, now: Nanos, id: BackingId) {
        let Some(backing) = self.backings.get_mut(id) else { return };
        let may_widen = backing.may_widen(now);
        for dev in self.volumes.on(id) {
            self.windows.allow_wide(dev, may_widen);
        }
    }

    /// Bytes read ahead and not used yet, within files, across them and from lists.
    pub(crate) fn ahead_bytes(&self) -> u64 {
        self.policy.tally().ahead_pages() * PAGE_BYTES
            + self.walks.ahead_bytes()
            + self.starts.ahead_bytes()
    }

    fn note_ahead(&mut self) {
        let ahead = self.ahead_bytes();
        self.metrics.most_ahead_bytes = self.metrics.most_ahead_bytes.max(ahead);
    }

    /// The access in the policy's terms, without random advice that bowwave itself has set.
    fn as_policy_sees(&self, now: Nanos, access: &Access) -> readahead::Access {
        let advised_random = access.advice.random && !self.windows.is_our_advice(now, access);
        let hint = match (advised_random, access.advice.sequential) {
            (true, _) => Hint::Random,
            (false, true) => Hint::Sequential,
            (false, false) => Hint::Normal,
        };
        access.for_policy(now, hint, self.windows.window_of(access))
    }
}
