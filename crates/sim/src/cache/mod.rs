//! The page cache: files' pages in frames, on an inactive and an active list.
//!
//! ```text
//!                  second use                 young end
//!   read --> [ inactive list ] <----------- [ active list ]
//!      head ^                | tail  refill      ^       |
//!           |  used again,   v                   |       v
//!           +-- mapped -- reclaim ---------------+    refilled when reclaim scans
//!                            |
//!                            v   free, leaving a note in the file where the page was
//! ```
//!
//! A page's first use sets its referenced bit, the second moves it to the active list. Reclaim (`reclaim`) starts when
//! free frames fall below the low watermark, and stops at the high one. The pages that it examines on the inactive list
//! are the ageing clock of some policies.

mod asked;
mod evicted;
mod folio;
mod frame;
mod marks;
mod reclaim;
mod table;
mod zone;

pub(crate) use asked::Terms;
pub(crate) use frame::{Flags, Frame, FrameId, NOBODY};
pub(crate) use marks::UserMark;
pub use reclaim::Reclaim;
pub(crate) use table::Evicted;

use frame::Frames;
use historical::{Ageing, PageState};
use readahead::{Cause, Page};
use table::PageTable;
use zone::Zone;

/// One file: where its pages are, in memory and on the device.
#[derive(Debug)]
pub(crate) struct File {
    table: PageTable,
    /// First byte on the device.
    pub(crate) offset: u64,
    /// It has no blocks on the device.
    pub(crate) is_sparse: bool,
    /// Marks of the policy on top of the kernel. They belong to the file, not to cached pages.
    marks: marks::Marks,
    /// [`PageCache::age`] when each page was last evicted; empty before the first one.
    evicted_at: Vec<u64>,
}

impl File {
    pub(crate) fn pages(&self) -> u64 {
        self.table.pages()
    }
}

/// Counters of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Pages evicted.
    pub evicted: u64,
    /// Of these, pages read ahead and never used.
    pub evicted_unused: u64,
    /// Pages read again that had been evicted unused: thrashing.
    pub read_again: u64,
    /// Pages read again that had been evicted after they were used, or written: refaults.
    pub refaulted: u64,
}

/// The page cache.
#[derive(Debug)]
pub(crate) struct PageCache {
    frames: Frames,
    files: Vec<File>,
    /// The first one is all of memory, unless it was divided.
    zones: [Zone; 2],
    /// The second zone's share of taken frames, and how many of its frames are due.
    second_share: f64,
    second_due: f64,
    /// Pages in page tables.
    mapped: u64,
    dirty: u64,
    /// Inactive pages that reclaim has examined so far.
    scanned: u64,
    /// The clock of the kernel's `workingset.c`: pages that became active and, under [`Reclaim::WholeFolios`], pages
    /// evicted. How far it went since a page's eviction tells how much longer a list would have kept the page.
    age: u64,
    /// A refaulted page has become active since reclaim last ran.
    has_refaulted: bool,
    rules: Reclaim,
    counters: CacheCounters,
}

impl PageCache {
    /// A cache of `pages` frames, all free.
    pub(crate) fn new(pages: u64, rules: Reclaim) -> Self {
        PageCache {
            frames: Frames::new(pages as usize),
            files: Vec::new(),
            zones: [Zone::new(0..pages as FrameId, 0), Zone::new(0..0, 1)],
            second_share: 0.0,
            second_due: 0.0,
            mapped: 0,
            dirty: 0,
            scanned: 0,
            age: 0,
            has_refaulted: false,
            rules,
            counters: CacheCounters::default(),
        }
    }

    /// Makes `share` of the frames, all of them free, a zone with separate lists. Each turn of reclaim examines some
    /// pages of both, rounded up, so pages of the smaller zone age faster.
    pub(crate) fn divide(&mut self, share: f64) {
        let pages = self.size() as FrameId;
        let first = pages - (f64::from(pages) * share.clamp(0.0, 1.0)) as FrameId;
        self.zones = [Zone::new(0..first, 0), Zone::new(first..pages, 1)];
        let [first, second] = [0, 1].map(|zone| self.zones[zone].scanned_a_turn() as f64);
        self.second_share = second / (first + second);
    }

    /// Adds a file of `pages` pages that begins at byte `offset` of the device.
    pub(crate) fn add_file(&mut self, pages: u64, offset: u64) -> u32 {
        let table = PageTable::new(pages);
        let marks = marks::Marks::default();
        self.files.push(File { table, offset, is_sparse: false, marks, evicted_at: Vec::new() });
        (self.files.len() - 1) as u32
    }

    /// Adds a file of `pages` pages without blocks on the device.
    pub(crate) fn add_sparse_file(&mut self, pages: u64) -> u32 {
        let file = self.add_file(pages, 0);
        self.files[file as usize].is_sparse = true;
        file
    }

    pub(crate) fn has_file(&self, file: u64) -> bool {
        file < self.files.len() as u64
    }

    pub(crate) fn file(&self, file: u32) -> &File {
        &self.files[file as usize]
    }

    pub(crate) fn counters(&self) -> CacheCounters {
        self.counters
    }

    pub(crate) fn frame(&self, id: FrameId) -> &Frame {
        &self.frames[id]
    }

    pub(crate) fn frame_mut(&mut self, id: FrameId) -> &mut Frame {
        &mut self.frames[id]
    }

    /// The frame of a page, if cached or in flight.
    #[inline]
    pub(crate) fn lookup(&self, file: u32, page: Page) -> Option<FrameId> {
        self.files[file as usize].table.frame(page)
    }

    /// How many pages of a range are cached or in flight.
    pub(crate) fn cached_in(&self, file: u32, start: Page, pages: u64) -> u64 {
        let table = &self.files[file as usize].table;
        table.frames_in(start..start.saturating_add(pages)).count() as u64
    }

    pub(crate) fn state(&self, file: u32, page: Page) -> PageState {
        let Some(id) = self.lookup(file, page) else {
            return PageState::Absent;
        };
        let flags = self.frames[id].flags;
        match (flags.has(Flags::ACTIVE), flags.has(Flags::REFERENCED)) {
            (false, false) => PageState::Fresh,
            (false, true) => PageState::Referenced,
            (true, false) => PageState::Active,
            (true, true) => PageState::ActiveReferenced,
        }
    }

    pub(crate) fn ageing(&self) -> Ageing {
        let reachable =
            |zone: &Zone| (zone.inactive.len() + zone.free()).saturating_sub(zone.low_watermark);
        Ageing {
            scanned_pages: self.scanned,
            inactive_and_free_pages: self.zones.iter().map(reachable).sum(),
        }
    }

    /// Dirty pages, those being written included.
    pub(crate) fn dirty(&self) -> u64 {
        self.dirty
    }

    /// Frames of the machine.
    pub(crate) fn size(&self) -> u64 {
        self.zones.iter().map(Zone::size).sum()
    }

    /// The zone of a frame.
    fn zone_mut(&mut self, id: FrameId) -> (&mut Zone, &mut Frames) {
        let number = self.frames[id].zone;
        (&mut self.zones[usize::from(number)], &mut self.frames)
    }

    /// The zone that gives the next frame.
    fn choose_zone(&mut self) -> usize {
        self.second_due += self.second_share;
        let second = self.second_due >= 1.0;
        self.second_due -= f64::from(u8::from(second));
        usize::from(second)
    }

    /// Takes a frame for an absent page that will be read or written. `None` if every frame is locked or dirty.
    pub(crate) fn insert(&mut self, file: u32, page: Page, cause: Cause) -> Option<FrameId> {
        let chosen = self.choose_zone();
        let id = [chosen, 1 - chosen].into_iter().find_map(|zone| self.take_frame(zone))?;
        self.files[file as usize].table.enter(page, id);
        let frame = &mut self.frames[id];
        frame.file = file;
        frame.page = page as u32;
        frame.flags = Flags::default();
        frame.owner = NOBODY;
        frame.cause = cause as u8;
        frame.order = 0;
        self.add_inactive(id);
        Some(id)
    }

    /// A free frame of a zone.
    fn take_frame(&mut self, zone: usize) -> Option<FrameId> {
        let Zone { low_watermark, is_exhausted, .. } = self.zones[zone];
        if self.zones[zone].free() <= low_watermark && !is_exhausted {
            self.reclaim(zone);
        }
        self.zones[zone].take(&mut self.frames)
    }

    /// Puts a frame at the young end of its inactive list.
    fn add_inactive(&mut self, id: FrameId) {
        let (zone, frames) = self.zone_mut(id);
        zone.inactive.push_head(frames, id);
    }

    fn remove_inactive(&mut self, id: FrameId) {
        let (zone, frames) = self.zone_mut(id);
        zone.inactive.remove(frames, id);
    }

    /// Notes a use of a cached page, like `folio_mark_accessed`.
    #[inline]
    pub(crate) fn mark_accessed(&mut self, id: FrameId) {
        let frame = &mut self.frames[id];
        frame.flags.clear(Flags::AHEAD);
        if frame.order == 0 {
            self.note_access(id);
        } else {
            self.each_of_folio(id, Self::note_access);
        }
    }

    #[inline]
    fn note_access(&mut self, id: FrameId) {
        let flags = &mut self.frames[id].flags;
        if !flags.has(Flags::REFERENCED) {
            flags.set(Flags::REFERENCED);
        } else if !flags.has(Flags::ACTIVE) {
            flags.clear(Flags::REFERENCED);
            flags.set(Flags::ACTIVE);
            self.age += 1;
            let (zone, frames) = self.zone_mut(id);
            zone.inactive.remove(frames, id);
            zone.active.push_head(frames, id);
        }
    }

    /// Maps a page into page tables.
    pub(crate) fn map(&mut self, id: FrameId) {
        let flags = &mut self.frames[id].flags;
        flags.set(Flags::YOUNG);
        if !flags.has(Flags::MAPPED) {
            flags.set(Flags::MAPPED);
            self.mapped += 1;
        }
    }

    /// Removes all of a file's pages from the page tables. Pages used through them since the last check count as used
    /// once more.
    pub(crate) fn unmap_file(&mut self, file: u32) {
        for page in 0..self.files[file as usize].pages() {
            let Some(id) = self.lookup(file, page) else { continue };
            let flags = &mut self.frames[id].flags;
            if flags.take(Flags::MAPPED) {
                let is_young = flags.take(Flags::YOUNG);
                self.mapped -= 1;
                if is_young {
                    self.mark_accessed(id);
                }
            }
        }
    }

    /// A page's contents have arrived.
    pub(crate) fn arrived(&mut self, id: FrameId) {
        self.zone_mut(id).0.is_exhausted = false;
        let flags = &mut self.frames[id].flags;
        flags.clear(Flags::LOCKED);
        flags.set(Flags::UP_TO_DATE);
    }

    /// Lets reclaim try again where it fell short, although nothing has arrived or been written since.
    pub(crate) fn retry_reclaim(&mut self) {
        self.zones.iter_mut().for_each(|zone| zone.is_exhausted = false);
    }

    pub(crate) fn set_dirty(&mut self, id: FrameId) {
        let flags = &mut self.frames[id].flags;
        if !flags.has(Flags::DIRTY) {
            flags.set(Flags::DIRTY);
            self.dirty += 1;
        }
    }

    pub(crate) fn clear_dirty(&mut self, id: FrameId) {
        if self.frames[id].flags.take(Flags::DIRTY) {
            self.zone_mut(id).0.is_exhausted = false;
            self.dirty -= 1;
        }
    }

    /// Cached pages of a file that have arrived.
    pub(crate) fn resident(&self, file: u32) -> u64 {
        let table = &self.files[file as usize].table;
        let arrived = |id: &FrameId| self.frames[*id].flags.has(Flags::UP_TO_DATE);
        table.frames_in(0..table.pages()).filter(arrived).count() as u64
    }

    /// Frees a frame that is on no list, and evicts its page.
    fn evict(&mut self, id: FrameId) {
        let Frame { file, page, flags, cause, .. } = self.frames[id];
        let unused = flags.has(Flags::AHEAD);
        self.counters.evicted += 1;
        let of = &mut self.files[file as usize];
        if self.rules == Reclaim::WholeFolios {
            self.age += 1;
            if of.evicted_at.is_empty() {
                // Pages that are never evicted take no memory.
                of.evicted_at = vec![0; of.table.pages() as usize];
            }
            of.evicted_at[page as usize] = self.age;
        }
        self.counters.evicted_unused += u64::from(unused);
        let evicted = if unused { Evicted::Unused { cause } } else { Evicted::Used };
        of.table.evict(u64::from(page), evicted);
        self.frames[id].flags = Flags::default();
        let (zone, frames) = self.zone_mut(id);
        zone.free_up(frames, id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_the_smaller_zone_go_sooner() {
        let mut cache = PageCache::new(1024, Reclaim::Linux26);
        cache.divide(0.25);
        cache.add_file(4096, 0);
        for page in 0..4096 {
            let id = cache.insert(0, page, Cause::Random).expect("a frame");
            cache.arrived(id);
        }
        let oldest = |zone: u8| {
            let pages = (0..4096).filter(|page| {
                cache.lookup(0, *page).is_some_and(|id| cache.frames[id].zone == zone)
            });
            4096 - pages.min().expect("each zone has pages")
        };
        let times = oldest(0) as f64 / oldest(1) as f64;
        assert!((2.7..3.3).contains(&times), "{times}");
    }
}
