//! The least that can drive a policy: one file, in a cache from which nothing is evicted.

use std::collections::HashSet;

use readahead::{
    Access, Action, CacheView, DeviceCost, FileId, Hint, Mark, OpenFileId, Page, Plan, Policy,
    Trigger, Via, VolumeId,
};

/// All that a policy was told.
pub(crate) type Told = Vec<Access>;

/// From one read to the next.
const READ_NS: u64 = 2_000;

const FILE_PAGES: u64 = 1 << 32;

/// What may be asked for at once: 2 MiB.
const ROOM_PAGES: u64 = 512;

/// A view that answers at once, and the same each time: all is cached.
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

/// Reads these pages in turn, doing what the policy says; what it was told.
pub(crate) fn told(
    policy: &mut dyn Policy,
    pages: impl Iterator<Item = Page>,
    view: &View,
) -> Told {
    let mut body = Body { told: Vec::new(), cached: HashSet::new(), marks: Vec::new() };
    let mut previous = None;
    for (n, page) in pages.enumerate() {
        let access = |trigger| Access {
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
            now: n as u64 * READ_NS,
        };
        if policy.wants_calls() {
            body.tell(policy, access(Trigger::Call), view);
        }
        if !body.cached.contains(&page) {
            body.tell(policy, access(Trigger::Absent), view);
            body.cached.insert(page);
        }
        if body.take_mark(page) {
            body.tell(policy, access(Trigger::Mark), view);
        }
        previous = Some(page);
    }
    body.told
}

struct Body {
    told: Told,
    cached: HashSet<Page>,
    marks: Vec<Mark>,
}

impl Body {
    fn take_mark(&mut self, page: Page) -> bool {
        let hit = self.marks.iter().position(|mark| (mark.first..=mark.last).contains(&page));
        hit.map(|index| self.marks.swap_remove(index)).is_some()
    }

    fn tell(&mut self, policy: &mut dyn Policy, access: Access, view: &View) {
        let mut plan = Plan::new();
        policy.on_access(&access, view, &mut plan);
        for action in plan.actions() {
            match *action {
                Action::Read { start, pages, .. } => self.cached.extend(start..start + pages),
                Action::Mark(mark) => self.marks.push(mark),
                Action::Rescue { .. } | Action::KernelWindow { .. } | Action::Demote { .. } => {}
            }
        }
        self.told.push(access);
    }
}
