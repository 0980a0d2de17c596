//! The modelled page cache: which pages are cached, in which state, and where the marks are.

use std::collections::BTreeMap;

use historical::{Ageing, KernelView, PageState};
use readahead::{Action, CacheView, DeviceCost, Mark, Page, Plan};

/// List length with which `adaptive-v16` has a lower limit of 10 pages: 384 MiB.
pub(crate) const LIST_PAGES: u64 = 98_304;

/// The cached pages of one file.
#[derive(Clone, Debug)]
pub(crate) struct PageCache {
    pages: BTreeMap<Page, PageState>,
    marks: Vec<Mark>,
    /// Pages read since the start, including those read again after eviction.
    pub(crate) read_pages: u64,
    /// Pages requested by a plan while they were cached.
    pub(crate) overlap_pages: u64,
    pub(crate) ageing: Ageing,
    pub(crate) room_pages: u64,
    pub(crate) cost: DeviceCost,
}

impl PageCache {
    pub(super) fn new() -> Self {
        PageCache {
            pages: BTreeMap::new(),
            marks: Vec::new(),
            read_pages: 0,
            overlap_pages: 0,
            ageing: Ageing { scanned_pages: 0, inactive_and_free_pages: LIST_PAGES },
            room_pages: u64::MAX,
            cost: DeviceCost::DISK,
        }
    }

    pub(super) fn insert(&mut self, page: Page) {
        self.pages.entry(page).or_insert_with(|| {
            self.read_pages += 1;
            PageState::Fresh
        });
    }

    pub(super) fn touch(&mut self, page: Page) {
        if let Some(state) = self.pages.get_mut(&page) {
            *state = match *state {
                PageState::Absent | PageState::Fresh => PageState::Referenced,
                PageState::Referenced => PageState::Active,
                PageState::Active | PageState::ActiveReferenced => PageState::ActiveReferenced,
            };
        }
    }

    /// Whether a page carries a mark.
    pub(crate) fn is_marked(&self, page: Page) -> bool {
        let on_page = |mark: &Mark| (mark.first..=mark.last).contains(&page);
        self.marks.iter().any(on_page)
    }

    pub(super) fn take_mark(&mut self, page: Page) -> bool {
        let hit = |mark: &Mark| (mark.first..=mark.last).contains(&page);
        match self.marks.iter().position(hit) {
            Some(index) => {
                self.marks.swap_remove(index);
                true
            }
            None => false,
        }
    }

    pub(super) fn carry_out(&mut self, plan: &Plan, file_pages: u64) {
        for action in plan.actions() {
            match *action {
                Action::Read { start, pages, .. } => {
                    assert!(start + pages <= file_pages, "{action:?} leaves the file");
                    let cached = self.cached_in(start, pages);
                    self.overlap_pages += cached;
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
        let fresh = |state: &&PageState| **state == PageState::Fresh;
        self.pages.values().filter(fresh).count()
    }
}

impl CacheView for PageCache {
    fn cached_in(&self, start: Page, pages: u64) -> u64 {
        self.pages.range(start..start + pages).count() as u64
    }

    fn cost(&self) -> DeviceCost {
        self.cost
    }

    fn room_pages(&self) -> u64 {
        self.room_pages
    }
}

impl KernelView for PageCache {
    fn state(&self, page: Page) -> PageState {
        self.pages.get(&page).copied().unwrap_or(PageState::Absent)
    }

    fn ageing(&self) -> Ageing {
        self.ageing
    }
}
