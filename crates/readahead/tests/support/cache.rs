//! The modelled page cache: which pages are cached, whether they were used, and where the marks are.

use std::collections::BTreeMap;

use readahead::{Action, CacheView, DeviceCost, GroupId, Mark, Page, Past, Plan};

/// The cached pages of one file.
#[derive(Clone, Debug)]
pub(crate) struct PageCache {
    /// The cached pages, and whether each was used.
    pages: BTreeMap<Page, bool>,
    marks: Vec<Mark>,
    /// Pages requested by a plan while they were cached.
    pub(crate) overlap_pages: u64,
    pub(crate) room_pages: u64,
    pub(crate) cost: DeviceCost,
    /// How absent pages left the cache.
    pub(crate) past: Past,
    /// The group of the readers.
    pub(crate) group: GroupId,
}

impl PageCache {
    pub(super) fn new() -> Self {
        PageCache {
            pages: BTreeMap::new(),
            marks: Vec::new(),
            overlap_pages: 0,
            room_pages: u64::MAX,
            cost: DeviceCost::DISK,
            past: Past::Unknown,
            group: GroupId::default(),
        }
    }

    pub(super) fn insert(&mut self, page: Page) {
        self.pages.entry(page).or_insert(false);
    }

    pub(super) fn touch(&mut self, page: Page) {
        if let Some(is_used) = self.pages.get_mut(&page) {
            *is_used = true;
        }
    }

    pub(super) fn take_mark(&mut self, page: Page) -> bool {
        let hit = |mark: &Mark| (mark.first..=mark.last).contains(&page);
        let index = self.marks.iter().position(hit);
        index.map(|index| self.marks.swap_remove(index)).is_some()
    }

    pub(super) fn carry_out(&mut self, plan: &Plan, file_pages: u64) {
        for action in plan.actions() {
            match *action {
                Action::Read { start, pages, .. } => {
                    assert!(start + pages <= file_pages, "{action:?} leaves the file");
                    self.overlap_pages += self.cached_in(start, pages);
                    (start..start + pages).for_each(|page| self.insert(page));
                }
                Action::Mark(mark) => self.marks.push(mark),
                Action::KernelWindow { .. } => {}
            }
        }
    }

    /// Reclaims a range: its pages and the marks on them.
    pub(crate) fn evict(&mut self, start: Page, end: Page) {
        self.pages.retain(|page, _| !(start..end).contains(page));
        self.marks.retain(|mark| mark.last < start || mark.first >= end);
    }

    /// Cached pages that were never used.
    pub(crate) fn unused_pages(&self) -> usize {
        self.pages.values().filter(|is_used| !**is_used).count()
    }
}

impl CacheView for PageCache {
    fn group(&self) -> GroupId {
        self.group
    }

    fn cached_in(&self, start: Page, pages: u64) -> u64 {
        self.pages.range(start..start + pages).count() as u64
    }

    fn cost(&self) -> DeviceCost {
        self.cost
    }

    fn room_pages(&self) -> u64 {
        self.room_pages
    }

    fn past(&self) -> Past {
        self.past
    }
}
