//! Reclaim: which pages are evicted when frames run short.
//!
//! Both eras keep two lists and scan the old end of the inactive one. They differ in what moves
//! from the active list to it:
//!
//! * [`Reclaim::Linux26`] (until 2.6.29): for every inactive page examined, `active / inactive`
//!   active pages are; unmapped ones move over whether or not they were referenced, mapped ones
//!   stay until reclaim is in distress. A referenced inactive page that nobody has mapped is freed.
//! * [`Reclaim::UseOnceFirst`] (since): active pages are left alone while the inactive list is the
//!   longer one.
//! * [`Reclaim::WholeFolios`] (file systems with large folios): the same, but all pages of a folio are used, moved
//!   and freed as one; and a page that is read again soon after its eviction becomes active at once.
//!
//! Generations are not modelled.

use super::zone::Zone;
use super::{Flags, FrameId, PageCache};

/// The rules of an era.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Reclaim {
    /// Both lists in proportion.
    Linux26,
    /// The inactive list first, while it is the longer one.
    #[default]
    UseOnceFirst,
    /// The same, folio by folio.
    WholeFolios,
}

/// Reclaim gives up after it has examined both lists this many times.
const ROUNDS: u64 = 2;

/// After this round, reclaim is in distress and also evicts mapped pages.
const DISTRESS_ROUND: u64 = 1;

impl PageCache {
    /// Frees clean pages of a zone, up to its high watermark.
    pub(super) fn reclaim(&mut self, zone: usize) {
        let has_refaulted = std::mem::take(&mut self.has_refaulted);
        for round in 0..ROUNDS {
            let distress = round >= DISTRESS_ROUND;
            let mut left = self.zones[zone].inactive.len() + self.zones[zone].active.len();
            while self.is_short(zone) && left > 0 {
                left -= 1;
                let share = self.active_share(zone, has_refaulted);
                self.zones[zone].refill_due += share;
                while self.zones[zone].refill_due >= 1.0 && self.zones[zone].active.len() > 0 {
                    self.zones[zone].refill_due -= 1.0;
                    self.deactivate_oldest(zone, distress);
                }
                self.scan_oldest(zone, distress);
            }
            if !self.is_short(zone) {
                return;
            }
        }
        self.zones[zone].is_exhausted = true;
    }

    fn is_short(&self, zone: usize) -> bool {
        self.zones[zone].free() < self.zones[zone].high_watermark
    }

    /// Active pages to examine for each inactive one.
    fn active_share(&self, zone: usize, has_refaulted: bool) -> f64 {
        let Zone { active, inactive, .. } = &self.zones[zone];
        let (active, inactive) = (active.len() as f64, inactive.len() as f64);
        match self.rules {
            Reclaim::Linux26 => active / (inactive + 1.0),
            Reclaim::WholeFolios if has_refaulted => active / (inactive + 1.0),
            Reclaim::UseOnceFirst | Reclaim::WholeFolios if inactive < active => 1.0,
            Reclaim::UseOnceFirst | Reclaim::WholeFolios => 0.0,
        }
    }

    fn deactivate_oldest(&mut self, zone: usize, distress: bool) {
        let Some(id) = self.zones[zone].active.oldest() else { return };
        let is_mapped = self.folio_has(id, &[Flags::MAPPED]);
        let stays = match self.rules {
            Reclaim::Linux26 => is_mapped && !distress,
            Reclaim::UseOnceFirst | Reclaim::WholeFolios => {
                self.take_young(id) && is_mapped && !distress
            }
        };
        self.each_of_folio(id, |cache, id| cache.move_to(id, stays));
    }

    fn scan_oldest(&mut self, zone: usize, distress: bool) {
        let Some(id) = self.zones[zone].inactive.oldest() else { return };
        self.scanned += 1;
        let is_in_use = self.folio_has(id, &[Flags::LOCKED, Flags::DIRTY, Flags::PINNED]);
        let is_mapped = self.folio_has(id, &[Flags::MAPPED]) && !distress;
        if is_mapped && self.take_young(id) {
            self.each_of_folio(id, |cache, id| cache.move_to(id, true));
        } else if is_in_use || is_mapped {
            self.each_of_folio(id, |cache, id| cache.move_to(id, false));
        } else {
            self.each_of_folio(id, |cache, id| {
                cache.remove_from_list(id);
                cache.forget_mapping(id);
                cache.evict(id);
            });
        }
    }

    /// Whether a folio was used through page tables since the last call.
    fn take_young(&mut self, id: FrameId) -> bool {
        let mut is_young = false;
        self.each_of_folio(id, |cache, id| is_young |= cache.frames[id].flags.take(Flags::YOUNG));
        is_young
    }

    /// Moves a page to the young end of the active or the inactive list.
    pub(super) fn move_to(&mut self, id: FrameId, active: bool) {
        self.remove_from_list(id);
        if active {
            self.frames[id].flags.set(Flags::ACTIVE);
        } else {
            self.frames[id].flags.clear(Flags::ACTIVE);
        }
        let (zone, frames) = self.zone_mut(id);
        let list = if active { &mut zone.active } else { &mut zone.inactive };
        list.push_head(frames, id);
    }

    pub(super) fn forget_mapping(&mut self, id: FrameId) {
        if self.frames[id].flags.take(Flags::MAPPED) {
            self.mapped -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use readahead::Cause;

    /// A cache of 256 frames with a file of 10 000 pages.
    fn cache(rules: Reclaim) -> PageCache {
        let mut cache = PageCache::new(256, rules);
        cache.add_file(10_000, 0);
        cache
    }

    fn read(cache: &mut PageCache, page: u64, uses: u32) {
        let id = cache
            .lookup(0, page)
            .or_else(|| cache.insert_read(0, page, Cause::Random).map(|(id, _)| id));
        let id = id.expect("a frame");
        cache.frame_mut(id).flags.set(Flags::UP_TO_DATE);
        (0..uses).for_each(|_| cache.mark_accessed(id));
    }

    #[test]
    fn the_page_read_longest_ago_goes_first() {
        let mut cache = cache(Reclaim::UseOnceFirst);
        (0..300).for_each(|page| read(&mut cache, page, 1));
        assert_eq!(cache.cached_in(0, 0, 40), 0);
        assert_eq!(cache.cached_in(0, 60, 240), 240);
    }

    #[test]
    fn a_scan_of_the_old_kernel_evicts_what_was_used_twice() {
        let mut cache = cache(Reclaim::Linux26);
        (0..100).for_each(|page| read(&mut cache, page, 2));
        (1000..4000).for_each(|page| read(&mut cache, page, 1));
        assert_eq!(cache.cached_in(0, 0, 100), 0);
    }

    #[test]
    fn a_scan_of_todays_kernel_leaves_what_was_used_twice() {
        let mut cache = cache(Reclaim::UseOnceFirst);
        (0..100).for_each(|page| read(&mut cache, page, 2));
        (1000..4000).for_each(|page| read(&mut cache, page, 1));
        assert_eq!(cache.cached_in(0, 0, 100), 100);
    }

    #[test]
    fn locked_and_dirty_pages_stay() {
        let mut cache = cache(Reclaim::Linux26);
        read(&mut cache, 0, 1);
        read(&mut cache, 1, 1);
        let (locked, dirty) = (cache.lookup(0, 0).unwrap(), cache.lookup(0, 1).unwrap());
        cache.frame_mut(locked).flags.set(Flags::LOCKED);
        cache.set_dirty(dirty);
        (1000..4000).for_each(|page| read(&mut cache, page, 1));
        assert_eq!(cache.cached_in(0, 0, 2), 2);
    }

    #[test]
    fn what_was_demoted_goes_first() {
        let mut cache = cache(Reclaim::UseOnceFirst);
        (0..200).for_each(|page| read(&mut cache, page, 1));
        cache.demote(0, 150, 50);
        (1000..1090).for_each(|page| read(&mut cache, page, 1));
        assert_eq!(cache.cached_in(0, 0, 150), 150);
        assert!(cache.cached_in(0, 150, 50) < 25);
    }

    #[test]
    fn a_page_evicted_unused_and_read_again_is_thrashing() {
        let mut cache = cache(Reclaim::UseOnceFirst);
        let ahead = cache.insert(0, 5, Cause::Initial).expect("a frame");
        cache.frame_mut(ahead).flags.set(Flags::AHEAD);
        (1000..1400).for_each(|page| read(&mut cache, page, 1));
        read(&mut cache, 5, 1);
        read(&mut cache, 1000, 1);
        let counters = cache.counters();
        assert_eq!((counters.evicted_unused, counters.read_again), (1, 1));
        assert_eq!(counters.refaulted, 1, "page 1000 had been used");
    }
}
