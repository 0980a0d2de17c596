//! The kernel's own read-ahead window of single open files: what it should be, and what it is.
//!
//! ```text
//!   accesses, memory, policy ---> desired(target) --.
//!                                                    +--> differ? --> SetWindow, one a millisecond,
//!   answers to SetWindow     ---> actual(target) ---'                 one at a time on each device
//! ```
//!
//! [`desired`](Windows::desired) states the precedence. [`reconcile`](Windows::reconcile) is the only place that asks
//! for a change. The body journals each change before it makes it, and gives everything back when it ends. A window
//! that an earlier run has left is a target as well; its own window is the desired one.

mod copies;
mod target;
mod turns;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::Nanos;
use crate::command::WindowSetting;
use crate::ids::{BackingId, CgroupId, DeviceNumber, FileKey, Target, Tgid, Ticket};
use crate::input::{Access, WindowOutcome};
use crate::orders::Orders;
use crate::shared::Shared;
use crate::volumes::Volumes;
use target::Entry;
use turns::Turns;

/// Least time between two changes. Each takes about 60 us, in which files that others open inherit the window.
const PAUSE_NS: Nanos = 1_000_000;

/// Room for targets. A further one waits for its next access. Once half of the room is taken, targets that are idle for
/// long get their windows back.
const MOST_TARGETS: usize = 4096;

/// A target that could not be set is left alone for this long. A target that is idle for this long is not being read.
const PATIENCE_NS: Nanos = 10_000_000_000;

/// Delay before giving a window back is retried.
const RETRY_NS: Nanos = 1_000_000_000;

/// Most times remembered at which the device's own window was changed. An event that is older than one of them arrives
/// at most a few changes later.
const MOST_MOMENTS: usize = 64;

/// 64 KiB. A program that reads less at a time would wait too often without look-ahead.
const LEAST_COPY_PAGES: u32 = 16;

/// After this long without an access, an open file may have been closed, and another one opened at its address.
const FRESH_NS: Nanos = 1_000_000_000;

/// All windows that differ, or may have to differ, from the kernel's own.
#[derive(Debug)]
pub(crate) struct Windows {
    entries: Shared<Target, Entry>,
    /// Targets whose desired window may differ from the actual one, and the changes under way.
    turns: Turns,
    bounds: BTreeMap<CgroupId, Bound>,
    /// Which process copies which file, on a disk that does not keep up.
    copies: BTreeSet<(Tgid, FileKey)>,
    /// File systems whose open files may have wider windows now.
    wide_on: BTreeSet<DeviceNumber>,
    /// From when to when a device's own window was changed.
    moments: VecDeque<(Nanos, Nanos)>,
    last_at: Nanos,
    /// A group that was told to give a window back, so that another one finds room, and when. It gets no new place
    /// before that.
    told: Option<(CgroupId, Nanos)>,
    set: u64,
    refused: u64,
}

impl Default for Windows {
    fn default() -> Self {
        Windows {
            entries: Shared::with_room(MOST_TARGETS),
            turns: Turns::default(),
            bounds: BTreeMap::new(),
            copies: BTreeSet::new(),
            wide_on: BTreeSet::new(),
            moments: VecDeque::new(),
            last_at: 0,
            told: None,
            set: 0,
            refused: 0,
        }
    }
}

/// Most pages for the open files of a cgroup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bound {
    /// Because it has a limit.
    pub(crate) limit: Option<u32>,
    /// Because it is thrashing.
    pub(crate) thrashing: Option<u32>,
}

impl Bound {
    fn pages(self) -> Option<u32> {
        [self.limit, self.thrashing].into_iter().flatten().min()
    }
}

impl Windows {
    /// The open or mapped file of an access; `None` if nothing tells.
    fn target_of(access: &Access) -> Option<Target> {
        match access.open_file {
            Some(open_file) => Some(Target::OpenFile(open_file)),
            None if access.mapped => Some(Target::Mapping(access.of.tgid, access.of.file)),
            None => None,
        }
    }

    /// The kernel's window of the open or mapped file of an access, in pages. Faults do not report it, but a window
    /// that was set here is known.
    pub(crate) fn window_of(&self, access: &Access) -> u32 {
        let mapping = Target::Mapping(access.of.tgid, access.of.file);
        let set = self.entries.get(&mapping).filter(|_| access.mapped);
        match set.map(|entry| entry.actual) {
            Some(WindowSetting::Bounded(pages)) => pages,
            _ => access.kernel_window,
        }
    }

    /// Whether the random advice that this access shows is bowwave's.
    pub(crate) fn is_our_advice(&self, now: Nanos, access: &Access) -> bool {
        let entry = Self::target_of(access).and_then(|target| self.entries.get(&target));
        entry.is_some_and(|entry| entry.has_our_advice(now))
    }

    /// Whether bowwave has taken away the look-ahead of the open file of this access.
    pub(crate) fn is_without_look_ahead(&self, access: &Access) -> bool {
        let entry = Self::target_of(access).and_then(|target| self.entries.get(&target));
        entry.is_some_and(|entry| {
            entry.is_without_look_ahead() && entry.access.of.file == access.of.file
        })
    }

    /// Whether the process reads the file without look-ahead, through any open file.
    pub(crate) fn is_copied_by(&self, access: &Access) -> bool {
        let reader = (access.of.tgid, access.of.file);
        self.copies.contains(&reader)
            && self
                .entries
                .values()
                .any(|entry| entry.is_without_look_ahead() && entry.reader() == reader)
    }

    /// Notes an access to a file on `backing`. `bound` is the bound of its cgroup.
    pub(crate) fn note_access(
        &mut self,
        now: Nanos,
        access: &Access,
        backing: BackingId,
        bound: Bound,
    ) {
        self.bound_cgroup(access.cgroup, bound);
        let Some(target) = Self::target_of(access) else { return };
        if let (Target::OpenFile(_), Some(entry)) =
            (target, self.entries.get_mut(&Target::Mapping(access.of.tgid, access.of.file)))
        {
            entry.heard_at = now;
        }
        let was_set = self.was_set(now, backing);
        if let Some(entry) = self.entries.get_mut(&target) {
            if entry.note_access(now, access, was_set) {
                self.entries.charge(&target, access.cgroup);
            }
        } else if !matches!(target, Target::Mapping(..)) && self.make_room(now, access.cgroup) {
            // A mapped file is remembered only once the policy wants a window for it.
            self.entries.insert(access.cgroup, 1, target, Entry::new(now, access, was_set));
        }
        self.turns.push(access.of.file.dev, target);
    }

    /// Makes room for a target of a group. A window that is changed must be given back first: its target makes room
    /// once it has its own.
    fn make_room(&mut self, now: Nanos, group: CgroupId) -> bool {
        let was_told = |since: Nanos| self.told.filter(|(_, at)| now.saturating_sub(*at) < since);
        if was_told(FRESH_NS).is_some_and(|(told, _)| told == group) {
            return false;
        }
        let largest = match self.entries.who_makes_room(group, 1) {
            Ok(()) => None,
            // Windows are changed no more often than that.
            Err(Some(largest)) if was_told(PAUSE_NS).is_none() => Some(largest),
            Err(_) => return false,
        };
        let age = |entry: &Entry| entry.may_be_forgotten().then_some(entry.heard_at);
        let has_room = self.entries.make_room(group, 1, age, |_, _| ());
        self.told = largest.filter(|_| !has_room).map(|largest| (largest, now));
        let stays = |entry: &Entry| (!entry.makes_room).then_some(entry.heard_at);
        if let Some((largest, _)) = self.told
            && let Some((target, entry)) = self.entries.oldest_mut(largest, stays)
        {
            entry.makes_room = true;
            self.turns.push(entry.dev(), *target);
        }
        has_room
    }

    /// The policy wants a window of `pages` for a mapped file. If that is not narrower than the file's own, a narrow
    /// one is given back.
    pub(crate) fn narrow(&mut self, now: Nanos, access: &Access, pages: u32) {
        let target = Target::Mapping(access.of.tgid, access.of.file);
        let is_narrow = access.mapped && pages < access.kernel_window;
        if !self.entries.contains_key(&target) {
            if !is_narrow || !self.make_room(now, access.cgroup) {
                return;
            }
            self.entries.insert(access.cgroup, 1, target, Entry::new(now, access, false));
        }
        let Some(entry) = self.entries.get_mut(&target) else { return };
        entry.narrow = is_narrow.then_some(pages);
        self.turns.push(access.of.file.dev, target);
    }

    /// Asks for a window of `pages`, so that the kernel reads ahead, in the reader's memory cgroup. Returns whether it
    /// will.
    pub(crate) fn enlarge(&mut self, now: Nanos, access: &Access, pages: u32) -> bool {
        let asked = self.ask_for_larger(now, access, |entry| {
            entry.larger = Some(entry.larger.unwrap_or(0).max(pages));
            true
        });
        asked && self.is_larger(now, access)
    }

    /// Asks for a wider window on a device that answers before user space could help. Returns whether that is news.
    pub(crate) fn widen(&mut self, now: Nanos, access: &Access, pages: u32) -> bool {
        self.ask_for_larger(now, access, |entry| entry.widen(now, pages))
    }

    /// Whether the open file of this access has, or will have, a larger window than its own.
    pub(crate) fn is_larger(&self, now: Nanos, access: &Access) -> bool {
        let target = Self::target_of(access);
        target.is_some_and(|it| matches!(self.desired(now, it), WindowSetting::Larger(_)))
    }

    /// The reader of this access does not read on, so what a wider window brings would be lost.
    pub(crate) fn narrow_again(&mut self, now: Nanos, access: &Access) {
        let Some(target) = Self::target_of(access) else { return };
        if let Some(entry) = self.entries.get_mut(&target)
            && entry.narrow_again(now)
        {
            self.turns.push(access.of.file.dev, target);
        }
    }

    /// Returns what `ask` does, if the window of this access may be set.
    fn ask_for_larger(
        &mut self,
        now: Nanos,
        access: &Access,
        ask: impl FnOnce(&mut Entry) -> bool,
    ) -> bool {
        let Some(target @ Target::OpenFile(_)) = Self::target_of(access) else { return false };
        let Some(entry) = self.entries.get_mut(&target) else { return false };
        let asked = !entry.is_advised(now) && !entry.has_failed(now) && ask(entry);
        if asked {
            self.turns.push(access.of.file.dev, target);
        }
        asked
    }

    /// Whether open files of this file system may have wider windows now.
    pub(crate) fn allow_wide(&mut self, dev: DeviceNumber, may: bool) {
        let is_news = if may { self.wide_on.insert(dev) } else { self.wide_on.remove(&dev) };
        if is_news {
            self.consider_those(|entry| entry.dev() == dev && entry.wide.is_some());
        }
    }

    /// Whether open files of this file system have wider windows, or may get them.
    pub(crate) fn are_wide_on(&self, dev: DeviceNumber) -> bool {
        self.entries.values().any(|entry| entry.dev() == dev && entry.wide.is_some())
    }

    /// The request of this access, of `pages` pages, is longer than the kernel's window and should be read whole.
    pub(crate) fn note_long_request(&mut self, access: &Access, pages: u32) {
        let Some(target @ Target::OpenFile(_)) = Self::target_of(access) else { return };
        let Some(entry) = self.entries.get_mut(&target) else { return };
        entry.note_long_request(pages);
        self.turns.push(access.of.file.dev, target);
    }

    fn bound_cgroup(&mut self, cgroup: CgroupId, bound: Bound) {
        let before = self.bounds.insert(cgroup, bound).unwrap_or_default();
        if bound != before {
            self.consider_those(|entry| entry.access.cgroup == cgroup);
        }
    }

    /// Updates the bounds of cgroups. `bound_of` returns the new bound, given the old one.
    pub(crate) fn bound_cgroups(&mut self, bound_of: impl Fn(CgroupId, Bound) -> Bound) {
        let bounds = self.bounds.iter().map(|(cgroup, known)| (*cgroup, bound_of(*cgroup, *known)));
        for (cgroup, bound) in bounds.collect::<Vec<_>>() {
            self.bound_cgroup(cgroup, bound);
        }
    }

    /// Takes look-ahead away from these processes on these files, and from no others.
    pub(crate) fn stop_look_ahead(&mut self, copies: &BTreeSet<(Tgid, FileKey)>) {
        if self.copies == *copies {
            return;
        }
        let before = std::mem::replace(&mut self.copies, copies.clone());
        self.consider_those(|entry| {
            copies.contains(&entry.reader()) != before.contains(&entry.reader())
        });
    }

    /// A file system was unmounted, so its open files are closed.
    pub(crate) fn forget_volume(&mut self, dev: DeviceNumber) {
        self.entries.retain(|_, entry| entry.dev() != dev);
        self.wide_on.remove(&dev);
        self.turns.forget(dev);
    }

    /// An earlier run has left this entry in its journal.
    pub(crate) fn recovered(&mut self, now: Nanos, entry: u32, file: FileKey) {
        let target = Target::Recovered(entry);
        if !self.entries.contains_key(&target) {
            let left = Entry::left_behind(now, file);
            self.entries.insert(CgroupId::default(), 1, target, left);
        }
        self.turns.push(file.dev, target);
    }

    /// A change was made, or has failed. Without a ticket, the reader has closed the file or ended. Of several commands
    /// for one target, only the answer to the newest counts.
    pub(crate) fn answered(
        &mut self,
        now: Nanos,
        ticket: Option<Ticket>,
        target: Target,
        outcome: WindowOutcome,
        during: (Nanos, Nanos),
    ) {
        if self.moments.len() == MOST_MOMENTS {
            self.moments.pop_front();
        }
        self.moments.push_back(during);
        let Some(ticket) = ticket else { return self.closed(now, target) };
        self.turns.end(ticket);
        let Some(entry) = self.entries.get_mut(&target) else { return };
        if !entry.is_answer(ticket) {
            return;
        }
        let is_new_bound = entry.answered(now, outcome);
        self.set += u64::from(is_new_bound);
        self.refused += u64::from(outcome == WindowOutcome::Failed);
        let is_over = matches!(target, Target::Recovered(_)) || entry.makes_room;
        if is_over && outcome == WindowOutcome::Own {
            self.entries.remove(&target);
            return;
        }
        self.turns.push(entry.dev(), target);
    }

    /// Forgets a closed open file, since its address may be reused.
    fn closed(&mut self, now: Nanos, target: Target) {
        let Some(entry) = self.entries.get_mut(&target) else { return };
        if entry.is_awaited() {
            entry.is_own_again(now);
        } else if entry.is_set() {
            self.entries.remove(&target);
        }
    }

    /// Whether the window of a device was changed at that moment, or may have been. A window of twice the size, the
    /// sign of sequential advice, then says nothing.
    fn was_set(&self, at: Nanos, backing: BackingId) -> bool {
        self.turns.is_under_way(backing)
            || self.moments.iter().any(|(from, to)| (*from..=*to).contains(&at))
    }

    /// What a target's window should be. In this order:
    ///
    /// 1. a program's own advice stands, even if it comes after our change;
    /// 2. a copy on a disk that does not keep up is read without look-ahead;
    /// 3. a mapping that is read at random has the window that the policy wants;
    /// 4. while memory is short, no window exceeds the bound; a bounded window stays bounded until it may have its
    ///    whole size again;
    /// 5. a reader whose requests exceed its window gets one as large as they are; with `--charge reader`, a forward
    ///    reader gets a window so large that the kernel reads ahead in bowwave's place; so does a forward reader on a
    ///    device that answers before user space could help, while others do not wait for that device too long;
    /// 6. otherwise each target has its own window.
    fn desired(&self, now: Nanos, target: Target) -> WindowSetting {
        let Some(entry) = self.entries.get(&target) else { return WindowSetting::Own };
        if entry.is_left_behind {
            return WindowSetting::Own;
        }
        if entry.is_advised(now) {
            return if entry.is_set() { WindowSetting::Abandoned } else { WindowSetting::Own };
        }
        if entry.is_over || entry.makes_room {
            return WindowSetting::Own;
        }
        if self.shall_be_without_look_ahead(now, target, entry) {
            return WindowSetting::NoLookAhead;
        }
        if let Some(pages) = entry.narrow {
            return WindowSetting::Bounded(pages);
        }
        if let Some(pages) = self.bound_for(entry) {
            return WindowSetting::Bounded(pages);
        }
        let bound = self.bounds.get(&entry.access.cgroup).copied().unwrap_or_default();
        let is_allowed = |pages: &u32| {
            bound.thrashing.is_none() && bound.limit.is_none_or(|most| *pages <= most)
        };
        let wide = entry.wide.filter(|_| self.wide_on.contains(&entry.dev()));
        let larger = entry.larger().max(wide).filter(is_allowed);
        larger.map_or(WindowSetting::Own, WindowSetting::Larger)
    }

    /// The bound of an open file, if its own window is larger.
    fn bound_for(&self, entry: &Entry) -> Option<u32> {
        let most = self.bounds.get(&entry.access.cgroup)?.pages()?;
        let is_wider = entry.own_pages > most && !entry.access.advice.sequential;
        let is_open_file = entry.access.open_file.is_some();
        // Never widen it by a little: each change alters the device's window for a moment.
        let narrowed = match entry.actual {
            WindowSetting::Bounded(pages) => pages.min(most),
            _ => most,
        };
        (is_wider && is_open_file).then_some(narrowed)
    }

    /// Makes [`reconcile`](Self::reconcile) consider some targets.
    fn consider_those(&mut self, which: impl Fn(&Entry) -> bool) {
        let those = self.entries.iter().filter(|(_, entry)| which(entry));
        those.for_each(|(target, entry)| self.turns.push(entry.dev(), *target));
    }

    /// Whether [`reconcile`](Self::reconcile) has a target to consider whose device is free.
    pub(crate) fn is_busy(&self, volumes: &Volumes) -> bool {
        self.turns.are_waiting(volumes)
    }

    /// Asks for the next change, if it is time. A device must first answer its last change.
    pub(crate) fn reconcile(&mut self, volumes: &Volumes, orders: &mut Orders<'_>) {
        let now = orders.now;
        if now.saturating_sub(self.last_at) < PAUSE_NS {
            return;
        }
        while let Some((dev, target)) = self.turns.next(volumes) {
            let desired = self.desired(now, target);
            let Some(entry) = self.entries.get_mut(&target) else { continue };
            let is_elsewhere = entry.dev() != dev;
            if is_elsewhere || entry.actual == desired || !entry.may_be_tried(now, desired) {
                continue;
            }
            let ticket = orders.tickets.next();
            self.last_at = now;
            self.turns.begin(volumes.backing(dev), now, ticket, target);
            orders.out.push(entry.command(ticket, target, desired));
            entry.asked_for(now, ticket, desired);
            return;
        }
    }

    /// Forgets targets that are over, about once a second.
    pub(crate) fn tidy(&mut self, now: Nanos) {
        // An overdue answer must not block its device for ever.
        for (ticket, target) in self.turns.give_up(now) {
            if let Some(entry) = self.entries.get_mut(&target) {
                entry.mark_overdue(now, ticket);
                self.turns.push(entry.dev(), target);
            }
        }
        let is_fresh = |at: Nanos| now.saturating_sub(at) < PATIENCE_NS;
        let is_crowded = self.entries.len() > MOST_TARGETS / 2;
        for (target, entry) in self.entries.iter_mut() {
            let is_idle = !is_fresh(entry.heard_at);
            if (is_idle && entry.settle_idle(is_crowded)) || entry.is_restore_pending(now) {
                self.turns.push(entry.dev(), *target);
            }
        }
        self.entries
            .retain(|_, entry| entry.is_set() || entry.is_awaited() || is_fresh(entry.heard_at));
        let reading: BTreeSet<CgroupId> = self.entries.values().map(|e| e.access.cgroup).collect();
        self.bounds.retain(|cgroup, _| reading.contains(cgroup));
    }

    /// Number of windows narrowed so far.
    pub(crate) fn bounded(&self) -> u64 {
        self.set
    }

    /// Number of changes that have failed so far.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    /// Number of targets whose window is changed.
    pub(crate) fn changed(&self) -> usize {
        self.entries.values().filter(|entry| entry.is_set()).count()
    }
}
