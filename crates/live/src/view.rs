//! The page cache as a policy sees it, through `cachestat(2)` on a descriptor of ours.

use std::cell::OnceCell;
use std::os::fd::{AsFd, OwnedFd};

use linux::mounts::Mount;
use linux::sys;
use readahead::{CacheView, DeviceCost, Page};

use crate::act::open_file;
use crate::memory::Room;
use crate::observe::Event;

/// The view for one event. The file is opened at the first question, or when pages are asked for.
pub(crate) struct LiveView<'a> {
    event: &'a Event,
    mount: &'a Mount,
    cost: DeviceCost,
    room: Room,
    file: OnceCell<Option<OwnedFd>>,
}

impl<'a> LiveView<'a> {
    pub(crate) fn new(event: &'a Event, mount: &'a Mount, cost: DeviceCost, room: Room) -> Self {
        LiveView { event, mount, cost, room, file: OnceCell::new() }
    }

    fn file(&self) -> Option<&OwnedFd> {
        self.file.get_or_init(|| open_file(self.event, self.mount).ok()).as_ref()
    }

    /// The file, opened; `None` if nothing leads to it any more.
    pub(crate) fn into_file(self) -> Option<OwnedFd> {
        self.file();
        self.file.into_inner().flatten()
    }
}

impl CacheView for LiveView<'_> {
    /// Where the kernel cannot tell (before 6.5), everything counts as cached: nothing is then
    /// taken for evicted, and windows only grow by what marks and misses show.
    fn cached_in(&self, start: Page, pages: u64) -> u64 {
        let Some(file) = self.file() else {
            return pages;
        };
        sys::cached_pages(file.as_fd(), start, pages).unwrap_or(pages)
    }

    /// The absent page itself is being read again by now; what followed it in the same window tells
    /// whether it went for want of memory.
    fn was_evicted_unused(&self) -> bool {
        let behind_it = u64::from(self.event.window_left).saturating_sub(1);
        let evicted = |file: &OwnedFd| {
            sys::evicted_pages(file.as_fd(), self.event.page + 1, behind_it).unwrap_or(0)
        };
        behind_it > 0 && self.file().is_some_and(|file| evicted(file) > 0)
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
