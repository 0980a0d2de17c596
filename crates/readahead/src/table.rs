//! A table of fixed capacity that forgets what was used longest ago.
//!
//! Policies keep state per file or per open file, but must never allocate while deciding and never
//! grow with the number of files on the machine. All room is taken when the table is built;
//! inserting into a full table evicts the entry whose last use is oldest among a few neighbours of
//! the slot the key hashes to (a set-associative cache, like a processor's).

use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};

/// Entries per set: enough that a set rarely overflows before the table is nearly full.
const WAYS: usize = 8;

#[derive(Debug)]
struct Entry<K, V> {
    key: K,
    used: u64,
    value: V,
}

/// A fixed-capacity map from `K` to `V`.
#[derive(Debug)]
pub(crate) struct Table<K, V> {
    slots: Vec<Option<Entry<K, V>>>,
    hasher: BuildHasherDefault<Mix>,
}

/// Mixes a key's few words. A set overflows at the worst, so keys need not be kept from whoever would
/// choose them to collide.
#[derive(Clone, Copy, Debug, Default)]
struct Mix(u64);

/// An odd number near `2^64` over the golden ratio, whose multiples scatter.
const SCATTER: u64 = 0x9e37_79b9_7f4a_7c15;

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
    pub(crate) fn new(capacity: usize) -> Self {
        let size = capacity.next_power_of_two().max(WAYS);
        Table { slots: (0..size).map(|_| None).collect(), hasher: Default::default() }
    }

    fn set(&self, key: &K) -> std::ops::Range<usize> {
        // A power of two, as the size is.
        let sets = self.slots.len() / WAYS;
        let set = self.hasher.hash_one(key) as usize & (sets - 1);
        set * WAYS..(set + 1) * WAYS
    }

    /// The value of `key`, if remembered.
    pub(crate) fn get_mut(&mut self, key: &K, now: u64) -> Option<&mut V> {
        let set = self.set(key);
        let entry = self.slots[set].iter_mut().flatten().find(|entry| entry.key == *key)?;
        entry.used = now;
        Some(&mut entry.value)
    }

    /// The value of `key`, made by `fresh` if not remembered. What had to be forgotten for it is
    /// given to `forget`.
    pub(crate) fn get_or_insert_with(
        &mut self,
        key: K,
        now: u64,
        fresh: impl FnOnce() -> V,
        forget: impl FnOnce(V),
    ) -> &mut V {
        let set = self.set(&key);
        let slots = &mut self.slots[set];
        let found = slots.iter().position(|slot| slot.as_ref().is_some_and(|e| e.key == key));
        let index = found.unwrap_or_else(|| {
            let age = |i: &usize| slots[*i].as_ref().map_or(0, |e| e.used.saturating_add(1));
            let oldest = (0..WAYS).min_by_key(age).unwrap_or(0);
            let fresh = Entry { key, used: now, value: fresh() };
            if let Some(evicted) = slots[oldest].replace(fresh) {
                forget(evicted.value);
            }
            oldest
        });
        let entry = slots[index].as_mut().expect("the slot was found or filled above");
        entry.used = now;
        &mut entry.value
    }

    /// Every value remembered.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.slots.iter_mut().flatten().map(|entry| &mut entry.value)
    }

    /// Forgets every entry last used before `moment`, giving each to `forget`.
    pub(crate) fn forget_before(&mut self, moment: u64, mut forget: impl FnMut(V)) {
        for slot in &mut self.slots {
            if let Some(entry) = slot.take_if(|entry| entry.used < moment) {
                forget(entry.value);
            }
        }
    }

    /// Entries remembered.
    pub(crate) fn len(&self) -> usize {
        self.slots.iter().flatten().count()
    }
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
    fn idle_entries_are_forgotten() {
        let mut table = Table::new(64);
        table.get_or_insert_with(1u64, 10, || (), drop);
        table.get_or_insert_with(2u64, 20, || (), drop);
        table.forget_before(15, drop);
        assert!(table.get_mut(&1, 30).is_none());
        assert!(table.get_mut(&2, 30).is_some());
        assert_eq!(table.len(), 1);
    }
}
