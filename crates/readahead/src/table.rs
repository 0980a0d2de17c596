//! A table of fixed capacity that forgets what was used longest ago.
//!
//! Policies keep state per file or per open file, but must never allocate while deciding and never
//! grow with the number of files on the machine. All room is taken when the table is built;
//! inserting into a full table evicts the entry whose last use is oldest among a few neighbours of
//! the slot the key hashes to (a set-associative cache, like a processor's).
//!
//! Groups of readers share a table. Among these neighbours, an entry of the group goes that has the most of them. So
//! whatever others do, a group's only entry in a set stays, as long as fewer than eight groups meet there.

use std::cmp::Reverse;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};

use crate::access::GroupId;

/// Entries per set: enough that a set rarely overflows before the table is nearly full.
const WAYS: usize = 8;

/// The part of a set that a look-up reads first: 104 bytes, much less than eight entries.
#[derive(Clone, Copy, Debug, Default)]
struct Set {
    /// A byte of each key's hash, so that all are compared at once.
    tags: [u8; WAYS],
    /// One more than the time of each entry's last use; zero if there is no entry.
    ages: [u64; WAYS],
    /// Whose readers have brought each entry.
    groups: [GroupId; WAYS],
}

impl Set {
    /// The entry that makes room for one of that group: of the group that has the most entries, the one with the least
    /// age. If several have the most, the group's own goes, or the oldest.
    fn makes_room(&self, group: GroupId) -> usize {
        let oldest = self.oldest();
        let has_room = self.ages[oldest] == NONE;
        // Nearly always, all entries are of one group.
        if has_room || self.groups.iter().all(|of| *of == self.groups[0]) {
            return oldest;
        }
        let makes_room = |way: &usize| {
            let of = self.groups[*way];
            let has = self.groups.iter().filter(|other| **other == of).count();
            (Reverse((has, of == group)), self.ages[*way])
        };
        (0..WAYS).min_by_key(makes_room).unwrap_or(0)
    }

    /// The entry with the least age. Where there is no entry, the age is less than all others.
    fn oldest(&self) -> usize {
        let older = |a: (u64, usize), b: (u64, usize)| if b.0 < a.0 { b } else { a };
        // In pairs, so that a processor compares several at once.
        let pair = |way: usize| older((self.ages[way], way), (self.ages[way + 1], way + 1));
        older(older(pair(0), pair(2)), older(pair(4), pair(6))).1
    }
}

/// A fixed-capacity map from `K` to `V`.
#[derive(Debug)]
pub struct Table<K, V> {
    sets: Vec<Set>,
    /// [`WAYS`] for each set.
    entries: Vec<Option<(K, V)>>,
    hasher: BuildHasherDefault<Mix>,
}

/// Where a key belongs.
#[derive(Clone, Copy)]
struct Place {
    set: usize,
    tag: u8,
}

/// Mixes the few words of a key. Keys that somebody chose to collide can at worst overflow a set.
#[derive(Clone, Copy, Debug, Default)]
struct Mix(u64);

/// The odd number nearest to `2^64` divided by the golden ratio. Its multiples spread evenly (Fibonacci hashing).
pub(crate) const SCATTER: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(SCATTER);
    }
}

impl<K: Copy + Eq + Hash, V> Table<K, V> {
    /// A table for at least `capacity` entries (rounded up to a power of two).
    pub fn new(capacity: usize) -> Self {
        let size = capacity.next_power_of_two().max(WAYS);
        Table {
            sets: vec![Set::default(); size / WAYS],
            entries: (0..size).map(|_| None).collect(),
            hasher: Default::default(),
        }
    }

    fn place(&self, key: &K) -> Place {
        let hash = self.hasher.hash_one(key);
        // The number of sets is a power of two, like the size.
        Place {
            set: hash as usize & (self.sets.len() - 1),
            tag: (hash >> (u64::BITS - u8::BITS)) as u8,
        }
    }

    /// The way of a key's entry within its set.
    #[inline]
    fn find(&self, key: &K, place: Place) -> Option<usize> {
        let entries = &self.entries[place.set * WAYS..][..WAYS];
        let mut alike = alike(self.sets[place.set].tags, place.tag);
        while alike != 0 {
            let way = alike.trailing_zeros() as usize / 8;
            if entries[way].as_ref().is_some_and(|(k, _)| k == key) {
                return Some(way);
            }
            alike &= alike - 1;
        }
        None
    }

    /// The value of `key`, if remembered. Does not count as a use.
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let place = self.place(key);
        let way = self.find(key, place)?;
        self.entries[place.set * WAYS + way].as_ref().map(|(_, value)| value)
    }

    /// The value of `key`, if remembered. Does not count as a use.
    pub(crate) fn peek_mut(&mut self, key: &K) -> Option<&mut V> {
        let place = self.place(key);
        let way = self.find(key, place)?;
        self.entries[place.set * WAYS + way].as_mut().map(|(_, value)| value)
    }

    /// The value of `key`, if remembered.
    pub fn get_mut(&mut self, key: &K, now: u64) -> Option<&mut V> {
        let place = self.place(key);
        let way = self.find(key, place)?;
        self.sets[place.set].ages[way] = age(now);
        self.entries[place.set * WAYS + way].as_mut().map(|(_, value)| value)
    }

    /// The value of `key`, created by `fresh` if not remembered. An evicted entry goes to `forget`.
    #[inline]
    pub fn get_or_insert_with(
        &mut self,
        key: K,
        now: u64,
        fresh: impl FnOnce() -> V,
        forget: impl FnOnce(V),
    ) -> &mut V {
        self.get_or_insert_for(GroupId::default(), key, now, fresh, forget)
    }

    /// The same for a reader of that group.
    #[inline]
    pub(crate) fn get_or_insert_for(
        &mut self,
        group: GroupId,
        key: K,
        now: u64,
        fresh: impl FnOnce() -> V,
        forget: impl FnOnce(V),
    ) -> &mut V {
        let place = self.place(&key);
        let found = self.find(&key, place);
        let set = &mut self.sets[place.set];
        let way = found.unwrap_or_else(|| set.makes_room(group));
        set.ages[way] = age(now);
        let entry = &mut self.entries[place.set * WAYS + way];
        if found.is_none() {
            set.tags[way] = place.tag;
            set.groups[way] = group;
            if let Some((_, evicted)) = entry.replace((key, fresh())) {
                forget(evicted);
            }
        }
        &mut entry.as_mut().expect("it was found or filled above").1
    }

    /// Copies the value of one key to another; `fresh` creates it if there is none.
    pub fn copy(&mut self, from: &K, to: K, now: u64, fresh: impl FnOnce() -> V)
    where
        V: Copy,
    {
        let known = self.get_mut(from, now).copied().unwrap_or_else(fresh);
        *self.get_or_insert_with(to, now, || known, drop) = known;
    }

    /// Every key remembered, with its value.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().flatten().map(|(key, value)| (key, value))
    }

    /// Every value remembered.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.entries.iter_mut().flatten().map(|(_, value)| value)
    }

    /// Forgets every entry last used before `moment`, and passes each to `forget`.
    pub fn forget_before(&mut self, moment: u64, mut forget: impl FnMut(V)) {
        let ages = self.sets.iter_mut().flat_map(|set| &mut set.ages);
        for (used, entry) in ages.zip(&mut self.entries) {
            if *used != NONE && *used < age(moment) {
                *used = NONE;
                if let Some((_, value)) = entry.take() {
                    forget(value);
                }
            }
        }
    }

    /// Forgets every entry whose key this holds for.
    pub(crate) fn forget_if(&mut self, is_over: impl Fn(&K) -> bool) {
        let ages = self.sets.iter_mut().flat_map(|set| &mut set.ages);
        for (used, entry) in ages.zip(&mut self.entries) {
            if entry.take_if(|(key, _)| is_over(key)).is_some() {
                *used = NONE;
            }
        }
    }

    /// Passes every value last used before `moment` to `change`, and remembers it.
    pub(crate) fn change_idle(&mut self, moment: u64, change: impl FnMut(&mut V)) {
        let ages = self.sets.iter().flat_map(|set| &set.ages);
        let entries = ages.zip(&mut self.entries).filter(|(used, _)| **used < age(moment));
        entries.filter_map(|(_, entry)| entry.as_mut()).map(|(_, value)| value).for_each(change);
    }

    /// Number of entries remembered.
    pub(crate) fn len(&self) -> usize {
        self.entries.iter().flatten().count()
    }
}

/// The age where there is no entry.
const NONE: u64 = 0;

fn age(used: u64) -> u64 {
    used.saturating_add(1)
}

/// Sets the highest bit of each byte that equals this tag. May also set it in other bytes, since the subtraction
/// borrows from the byte above one that is zero.
fn alike(tags: [u8; WAYS], tag: u8) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let others = u64::from_le_bytes(tags) ^ (ONES * u64::from(tag));
    others.wrapping_sub(ONES) & !others & (ONES << 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_forgets_what_was_used_longest_ago() {
        let mut table = Table::new(WAYS);
        for key in 0..WAYS as u64 {
            *table.get_or_insert_with(key, 10 + key, || 0, |_| panic!("there is room")) = key;
        }
        assert_eq!(table.get_mut(&0, 100), Some(&mut 0));
        let mut forgotten = None;
        table.get_or_insert_with(99, 101, || 99, |value| forgotten = Some(value));
        assert_eq!(forgotten, Some(1));
        assert_eq!(table.len(), WAYS);
        assert!(table.get_mut(&0, 102).is_some(), "used just now");
        assert!(table.get_mut(&1, 103).is_none(), "used longest ago");
    }

    #[test]
    fn whatever_others_bring_a_group_keeps_its_share() {
        let mut table = Table::new(WAYS);
        let mut bring = |group, key: u64| {
            let mut forgotten = None;
            let forget = |other| forgotten = Some(other);
            *table.get_or_insert_for(GroupId(group), key, key, || 0, forget) = key;
            forgotten
        };
        (0..8).for_each(|key| assert_eq!(bring(1, key), None));
        (8..12).for_each(|key| assert_eq!(bring(2, key), Some(key - 8)));
        (12..1000).for_each(|key| assert!(bring(1, key).is_some_and(|it| !(8..12).contains(&it))));
        assert_eq!(bring(2, 1000), Some(8), "it has its share");
        assert!(bring(3, 1001).is_some());
    }

    #[test]
    fn what_is_copied_replaces_what_was_known() {
        let mut table = Table::new(64);
        table.get_or_insert_with(1u64, 10, || 'a', drop);
        table.copy(&1, 2, 20, || 'z');
        assert_eq!(table.get_mut(&2, 20), Some(&mut 'a'));
        table.copy(&3, 2, 30, || 'z');
        assert_eq!(table.get_mut(&2, 30), Some(&mut 'z'), "of the third nothing is known");
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn idle_entries_are_forgotten() {
        let mut table = Table::new(64);
        table.get_or_insert_with(1u64, 10, || (), drop);
        table.get_or_insert_with(2u64, 20, || (), drop);
        table.forget_before(15, drop);
        assert!(table.get_mut(&1, 30).is_none());
        assert!(table.get_mut(&2, 30).is_some());
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn what_is_forgotten_by_its_key_makes_room() {
        let mut table = Table::new(WAYS);
        for key in 0..WAYS as u64 {
            table.get_or_insert_with(key, key, || (), |()| panic!("there is room"));
        }
        table.forget_if(|key| *key == 5);
        assert!(table.get_mut(&5, 100).is_none());
        table.get_or_insert_with(99, 101, || (), |()| panic!("there is room"));
        assert_eq!(table.len(), WAYS);
    }
}
