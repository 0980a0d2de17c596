//! A table of limited room that groups of readers share.
//!
//! ```text
//!   room     |------ A ------|------ A ------|------ A ------|-- B --|   a newcomer of B's finds no room
//!   room     |------ A ------|------ A ------|-- B --|-- B --|           A has the most: its oldest entry goes
//! ```
//!
//! A group that is alone may use all of the room. If there is none left, the group that has the most makes room for one
//! that would have no more than that. So no group loses an entry to others while it has at most its share: the room
//! divided by the number of groups. A group that has the most itself finds no room.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::RangeInclusive;

use crate::Nanos;
use crate::ids::CgroupId;

#[derive(Debug)]
struct Entry<V> {
    group: CgroupId,
    size: usize,
    value: V,
}

/// See the [module](self). Each entry belongs to the group that has brought it.
#[derive(Debug)]
pub(crate) struct Shared<K, V> {
    entries: BTreeMap<K, Entry<V>>,
    room: usize,
    used: usize,
    used_by: BTreeMap<CgroupId, usize>,
}

impl<K: Copy + Ord, V> Shared<K, V> {
    /// An empty table with room for entries of that size together.
    pub(crate) fn with_room(room: usize) -> Self {
        Shared { entries: BTreeMap::new(), room, used: 0, used_by: BTreeMap::new() }
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|entry| &entry.value)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key).map(|entry| &mut entry.value)
    }

    pub(crate) fn contains_key(&self, key: &K) -> bool {
        self.entries.contains_key(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, entry)| (key, &entry.value))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        self.entries.iter_mut().map(|(key, entry)| (key, &mut entry.value))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.values().map(|entry| &entry.value)
    }

    /// Entries with a key in this range.
    pub(crate) fn range(&self, keys: RangeInclusive<K>) -> impl Iterator<Item = (&K, &V)> {
        self.entries.range(keys).map(|(key, entry)| (key, &entry.value))
    }

    /// Adds an entry of that size, or replaces one, whether there is room or not: see [`make_room`](Self::make_room).
    pub(crate) fn insert(&mut self, group: CgroupId, size: usize, key: K, value: V) -> Option<V> {
        let old = self.remove(&key);
        self.used += size;
        *self.used_by.entry(group).or_default() += size;
        self.entries.insert(key, Entry { group, size, value });
        old
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let Entry { group, size, value } = self.entries.remove(key)?;
        give_back(&mut self.used, &mut self.used_by, group, size);
        Some(value)
    }

    /// The entry belongs to that group from now on.
    pub(crate) fn charge(&mut self, key: &K, group: CgroupId) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        give_back(&mut self.used, &mut self.used_by, entry.group, entry.size);
        self.used += entry.size;
        *self.used_by.entry(group).or_default() += entry.size;
        entry.group = group;
    }

    /// Passes each entry to `keep`, and forgets those that it rejects.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        let (used, used_by) = (&mut self.used, &mut self.used_by);
        self.entries.retain(|key, entry| {
            let stays = keep(key, &mut entry.value);
            if !stays {
                give_back(used, used_by, entry.group, entry.size);
            }
            stays
        });
    }

    fn used_by(&self, group: CgroupId) -> usize {
        self.used_by.get(&group).copied().unwrap_or(0)
    }

    /// The group that has the most.
    fn largest(&self) -> Option<(CgroupId, usize)> {
        let largest = self.used_by.iter().max_by_key(|(_, used)| **used);
        largest.map(|(group, used)| (*group, *used))
    }

    /// Whether there is room for an entry of that group, or another group has to make some: then that group.
    pub(crate) fn who_makes_room(
        &self,
        group: CgroupId,
        size: usize,
    ) -> Result<(), Option<CgroupId>> {
        if self.used + size <= self.room {
            return Ok(());
        }
        let largest = self.largest().filter(|(largest, used)| {
            *largest != group && *used >= self.used_by(group).saturating_add(size)
        });
        Err(largest.map(|(largest, _)| largest))
    }

    /// Makes room for an entry of a group, if it may have some. Forgets entries of others for that, those with the
    /// least age first, and passes them to `gone`. An entry without an age stays.
    pub(crate) fn make_room(
        &mut self,
        group: CgroupId,
        size: usize,
        age: impl Fn(&V) -> Option<Nanos>,
        mut gone: impl FnMut(K, V),
    ) -> bool {
        let mut oldest = None;
        loop {
            let largest = match self.who_makes_room(group, size) {
                Ok(()) => return true,
                Err(None) => return false,
                Err(Some(largest)) => largest,
            };
            let of_groups = oldest.get_or_insert_with(|| self.oldest_of_each(&age));
            let next = of_groups.get_mut(&largest).and_then(BinaryHeap::pop);
            let Some(Reverse((_, key))) = next else { return false };
            let Some(value) = self.remove(&key) else { return false };
            gone(key, value);
        }
    }

    /// The entries of each group, the one with the least age on top.
    fn oldest_of_each(
        &self,
        age: impl Fn(&V) -> Option<Nanos>,
    ) -> BTreeMap<CgroupId, BinaryHeap<Reverse<(Nanos, K)>>> {
        let mut of_groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (key, entry) in &self.entries {
            if let Some(age) = age(&entry.value) {
                of_groups.entry(entry.group).or_default().push(Reverse((age, *key)));
            }
        }
        // A heap of all at once takes fewer steps than one that grows.
        of_groups.into_iter().map(|(group, entries)| (group, entries.into())).collect()
    }

    /// Forgets the entry of a group with the least age.
    pub(crate) fn forget_oldest(
        &mut self,
        group: CgroupId,
        age: impl Fn(&V) -> Option<Nanos>,
    ) -> Option<(K, V)> {
        let key = *self.oldest_mut(group, age)?.0;
        Some((key, self.remove(&key)?))
    }

    /// The entry of a group with the least age.
    pub(crate) fn oldest_mut(
        &mut self,
        group: CgroupId,
        age: impl Fn(&V) -> Option<Nanos>,
    ) -> Option<(&K, &mut V)> {
        let of_group = self.entries.iter_mut().filter(|(_, entry)| entry.group == group);
        let aged = of_group.filter_map(|(key, entry)| Some((age(&entry.value)?, key, entry)));
        let (_, key, entry) = aged.min_by_key(|(age, ..)| *age)?;
        Some((key, &mut entry.value))
    }

    /// If there is no room for an entry, forgets a quarter of them: each group keeps its newest ones, and all that lose
    /// some keep as many as each other. All entries have size 1.
    pub(crate) fn make_much_room(&mut self, age: impl Fn(&V) -> Nanos, mut gone: impl FnMut(K, V)) {
        if self.used < self.room {
            return;
        }
        let mut entries: Vec<_> = (self.entries.iter())
            .map(|(key, entry)| (entry.group, Reverse(age(&entry.value)), *key))
            .collect();
        entries.sort_unstable();
        // What has most newer ones of its own group goes first; of several, the oldest.
        let mut of_last = (None, 0);
        let mut ranks: Vec<_> = (entries.into_iter())
            .map(|(group, age, key)| {
                let newer = if of_last.0 == Some(group) { of_last.1 + 1 } else { 0 };
                of_last = (Some(group), newer);
                (newer, age, key)
            })
            .collect();
        let stay = ranks.len() - ranks.len().div_ceil(4);
        ranks.select_nth_unstable(stay);
        for (.., key) in ranks.drain(stay..) {
            if let Some(value) = self.remove(&key) {
                gone(key, value);
            }
        }
    }
}

fn give_back(
    used: &mut usize,
    used_by: &mut BTreeMap<CgroupId, usize>,
    group: CgroupId,
    size: usize,
) {
    *used -= size;
    if let Some(of_group) = used_by.get_mut(&group) {
        *of_group -= size;
        if *of_group == 0 {
            used_by.remove(&group);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const VICTIM: CgroupId = CgroupId(0);
    const ROOM: usize = 100;

    fn table() -> Shared<u32, Nanos> {
        Shared::with_room(ROOM)
    }

    fn bring(table: &mut Shared<u32, Nanos>, group: CgroupId, size: usize, key: u32) -> bool {
        let has_room = table.make_room(group, size, |at| Some(*at), |_, _| ());
        if has_room {
            table.insert(group, size, key, key.into());
        }
        has_room
    }

    #[test]
    fn who_is_alone_has_all_of_the_room_and_keeps_what_came_first() {
        let mut table = table();
        for key in 0..ROOM as u32 {
            assert!(bring(&mut table, VICTIM, 1, key));
        }
        assert!(!bring(&mut table, VICTIM, 1, 1000));
        assert!(table.contains_key(&0) && table.len() == ROOM);
    }

    #[test]
    fn what_another_group_takes_over_counts_as_its_own() {
        let mut table = table();
        for key in 0..ROOM as u32 {
            assert!(bring(&mut table, VICTIM, 1, key));
        }
        (0..60).for_each(|key| table.charge(&key, CgroupId(1)));
        assert_eq!((table.used_by(VICTIM), table.used_by(CgroupId(1)), table.used), (40, 60, ROOM));
        assert!(bring(&mut table, VICTIM, 1, 1000), "the other one has more");
        assert!(!table.contains_key(&0) && table.contains_key(&60));
    }

    #[test]
    fn who_has_the_most_makes_room_until_both_have_the_same() {
        let mut table = table();
        let brought = (0..200).filter(|key| bring(&mut table, CgroupId(1), 1, *key)).count();
        assert_eq!(brought, ROOM);
        let brought = (200..400).filter(|key| bring(&mut table, VICTIM, 1, *key)).count();
        assert_eq!(brought, ROOM / 2);
        assert!(!table.contains_key(&0) && table.contains_key(&99), "the oldest have gone");
    }

    #[test]
    fn what_may_not_go_stays() {
        let mut table = table();
        (0..ROOM as u32).for_each(|key| assert!(bring(&mut table, CgroupId(1), 1, key)));
        let is_odd = |at: &Nanos| (at % 2 == 1).then_some(*at);
        let mut gone = Vec::new();
        assert!(table.make_room(VICTIM, 2, is_odd, |key, _| gone.push(key)));
        assert_eq!(gone, [1, 3]);
        assert!(!table.make_room(VICTIM, 2 + ROOM, |_| None, |_, _| panic!("it may not go")));
    }

    /// A full table, of whose entries some belong to [`VICTIM`], and the others to as many groups.
    fn full(of_victim: u32, groups: u32) -> Shared<u32, Nanos> {
        let mut table = table();
        (0..ROOM as u32).for_each(|key| {
            let group = if key < of_victim { VICTIM } else { CgroupId(1 + key % groups) };
            table.insert(group, 1, key, Nanos::from(key));
        });
        table
    }

    /// The keys that go, in ascending order.
    fn thin(table: &mut Shared<u32, Nanos>) -> Vec<u32> {
        let mut gone = Vec::new();
        table.make_much_room(|at| *at, |key, _| gone.push(key));
        gone.sort_unstable();
        gone
    }

    #[test]
    fn the_oldest_quarter_of_who_is_alone_goes() {
        let mut table = full(0, 1);
        assert_eq!(thin(&mut table), (0..25).collect::<Vec<_>>());
        assert_eq!(thin(&mut table), [], "there is room");
    }

    #[test]
    fn who_has_the_most_loses_the_oldest() {
        assert_eq!(thin(&mut full(37, 1)), (37..62).collect::<Vec<_>>());
        // 40 of 75 would be more than a half: 37 of the one group and 38 of the other stay.
        assert_eq!(thin(&mut full(40, 1)), [vec![0, 1, 2], (40..62).collect()].concat());
    }

    #[test]
    fn many_groups_with_one_entry_or_two_make_as_much_room_as_one_with_all() {
        for groups in [50, 100] {
            let gone = thin(&mut full(0, groups));
            assert_eq!(gone, (0..25).collect::<Vec<_>>(), "{groups}");
        }
    }

    proptest! {
        /// Whatever others do, a group finds room for all that it brings up to its share, and keeps it.
        #[test]
        fn a_group_finds_and_keeps_its_share(
            groups in 2..5u32,
            steps in proptest::collection::vec((0..5u32, 1..30usize), 1..200),
        ) {
            let mut table = table();
            let share = ROOM / groups as usize;
            let mut kept = BTreeSet::new();
            let mut has = 0;
            for (key, (group, size)) in (0..).zip(steps) {
                let group = CgroupId(group % groups);
                if group == VICTIM && has + size > share {
                    continue;
                }
                let found = bring(&mut table, group, size, key);
                if group == VICTIM {
                    prop_assert!(found);
                    has += size;
                    kept.insert(key);
                }
                prop_assert!(table.used <= ROOM);
                prop_assert!(kept.iter().all(|key| table.contains_key(key)));
            }
            let used: usize = table.used_by.values().sum();
            prop_assert_eq!(used, table.used);
        }
    }
}
