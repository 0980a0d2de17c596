//! A minimal driver for policies: one file, in a cache that evicts nothing.

use std::collections::HashSet;

use historical::{KernelView, Trigger};
use readahead::{
    Access, Action, CacheView, DeviceCost, FileId, Hint, Mark, OpenFileId, Page, Plan, Via,
    VolumeId,
};

/// Time between two reads of pages that are cached. An absent page takes an access of the device more.
const READ_NS: u64 = 2_000;

/// Larger than any place that is read.
const FILE_PAGES: u64 = 1 << 32;

/// Pages that may be requested at once: 2 MiB.
const ROOM_PAGES: u64 = 512;

/// A view that gives the same answer each time: every page is cached.
pub(crate) struct View {
    pub(crate) cost: DeviceCost,
}

impl CacheView for View {
    fn cached_in(&self, _start: Page, pages: u64) -> u64 {
        pages
    }

    fn cost(&self) -> DeviceCost {
        self.cost
    }

    fn room_pages(&self) -> u64 {
        ROOM_PAGES
    }
}

impl KernelView for View {}

/// A policy as the driver calls it: a kernel's or one in user space.
pub(crate) trait Driven {
    /// The accesses that it is told about.
    type Access;

    /// Tells the policy about an access and returns its plan.
    fn ask(&mut self, access: &Self::Access, view: &View) -> &Plan;

    fn wants_calls(&self) -> bool {
        false
    }

    /// The access, if this policy is told about accesses with this trigger.
    fn heard(access: Access<Trigger>) -> Option<Self::Access>;
}

/// Reads these pages in turn and executes the policy's plans. Returns every access that it was told
/// about.
pub(crate) fn told<D: Driven>(
    mut policy: D,
    pages: impl Iterator<Item = Page>,
    view: &View,
) -> Vec<D::Access> {
    let mut body = Body { told: Vec::new(), cached: HashSet::new(), marks: Vec::new() };
    let latency_ns = (view.cost.latency_s * 1e9) as u64;
    let (mut previous, mut now) = (None, 0);
    for page in pages {
        let access = |trigger, now| Access {
            file: FileId(1),
            volume: VolumeId(1),
            open_file: OpenFileId(1),
            page,
            request: 1,
            previous,
            trigger,
            via: Via::Read,
            hint: Hint::Normal,
            file_pages: FILE_PAGES,
            kernel_window: 32,
            now,
        };
        if policy.wants_calls() {
            body.tell(&mut policy, access(Trigger::Call, now), view);
        }
        if !body.cached.contains(&page) {
            body.tell(&mut policy, access(Trigger::Absent, now), view);
            body.cached.insert(page);
            now += latency_ns;
        }
        if body.take_mark(page) {
            body.tell(&mut policy, access(Trigger::Mark, now), view);
        }
        previous = Some(page);
        now += READ_NS;
    }
    body.told
}

struct Body<A> {
    told: Vec<A>,
    cached: HashSet<Page>,
    marks: Vec<Mark>,
}

impl<A> Body<A> {
    fn take_mark(&mut self, page: Page) -> bool {
        let hit = self.marks.iter().position(|mark| (mark.first..=mark.last).contains(&page));
        hit.map(|index| self.marks.swap_remove(index)).is_some()
    }

    fn tell<D: Driven<Access = A>>(
        &mut self,
        policy: &mut D,
        access: Access<Trigger>,
        view: &View,
    ) {
        let Some(access) = D::heard(access) else { return };
        for action in policy.ask(&access, view).actions() {
            match *action {
                Action::Read { start, pages, .. } => self.cached.extend(start..start + pages),
                Action::Mark(mark) => self.marks.push(mark),
                Action::KernelWindow { .. } => {}
            }
        }
        self.told.push(access);
    }
}
