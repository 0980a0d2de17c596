//! The entries of a directory, in every order in which programs read them.

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

/// One name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its inode number.
    pub ino: u64,
    /// Its position among all entries sorted by name.
    pub name_rank: u32,
    /// A hash of its suffix, after the last dot; 0 without a dot.
    pub suffix: u32,
    /// What it is.
    pub kind: EntryKind,
}

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Anything else; never opened.
    Other,
}

/// All entries of a directory, in the order of `readdir(3)`. Whoever lists it also sorts it, so that nobody else waits for
/// that. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Vec<Entry>")]
pub struct Entries(Arc<Sorted>);

#[derive(Debug, PartialEq, Eq)]
struct Sorted {
    entries: Vec<Entry>,
    /// Indices of entries by inode number.
    by_ino: Vec<u32>,
    /// Indices of entries by name.
    by_name: Vec<u32>,
}

impl Entries {
    /// The entries, given each name with its inode number and kind in the order of `readdir(3)`.
    pub fn named<'a>(names: impl Iterator<Item = (&'a [u8], u64, EntryKind)>) -> Self {
        let names: Vec<_> = names.collect();
        let entry = |&(name, ino, kind): &(&[u8], u64, EntryKind)| Entry {
            ino,
            name_rank: 0,
            suffix: suffix(name),
            kind,
        };
        let entries = names.iter().map(entry).collect();
        let by_name = sorted(names.len(), |at| names[at].0);
        Entries::in_order(entries, by_name)
    }

    /// With the indices of the entries by name.
    fn in_order(mut entries: Vec<Entry>, by_name: Vec<u32>) -> Self {
        for (rank, at) in (0..).zip(&by_name) {
            entries[*at as usize].name_rank = rank;
        }
        let by_ino = sorted(entries.len(), |at| (entries[at].ino, at));
        Entries(Arc::new(Sorted { entries, by_ino, by_name }))
    }

    /// The index of the entry at that position by name.
    pub(crate) fn by_name(&self, place: u32) -> Option<u32> {
        self.0.by_name.get(place as usize).copied()
    }

    /// The index of the entry at that position by inode number.
    pub(crate) fn by_ino(&self, place: u32) -> Option<u32> {
        self.0.by_ino.get(place as usize).copied()
    }

    /// The position by inode number of the first entry with that number.
    pub(crate) fn place_by_ino(&self, ino: u64) -> Option<u32> {
        let Sorted { entries, by_ino, .. } = &*self.0;
        let place = by_ino.partition_point(|at| entries[*at as usize].ino < ino);
        let found = by_ino.get(place).is_some_and(|at| entries[*at as usize].ino == ino);
        found.then_some(place as u32)
    }
}

/// Numbers below `count`, sorted by their keys.
fn sorted<K: Ord>(count: usize, key: impl Fn(usize) -> K) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..count as u32).collect();
    numbers.sort_unstable_by_key(|number| key(*number as usize));
    numbers
}

/// Makes positions by name of their ranks, whatever these are.
impl From<Vec<Entry>> for Entries {
    fn from(entries: Vec<Entry>) -> Self {
        let by_name = sorted(entries.len(), |at| (entries[at].name_rank, at));
        Entries::in_order(entries, by_name)
    }
}

impl Deref for Entries {
    type Target = [Entry];

    fn deref(&self) -> &[Entry] {
        &self.0.entries
    }
}

impl Serialize for Entries {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.entries.serialize(serializer)
    }
}

/// A hash of the name's suffix: 0 without a dot, 1 for hidden files.
fn suffix(name: &[u8]) -> u32 {
    match name.iter().rposition(|byte| *byte == b'.') {
        None => 0,
        Some(_) if name[0] == b'.' => 1,
        Some(dot) => {
            // FNV-1a, 32 bits.
            let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
            name[dot + 1..].iter().fold(0x811c_9dc5, mix).max(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_the_same_ending_share_a_suffix() {
        assert_eq!(suffix(b"a.c"), suffix(b"b.x.c"));
        assert_ne!(suffix(b"a.c"), suffix(b"a.h"));
        assert_eq!(suffix(b"Makefile"), 0);
        assert_eq!(suffix(b".gitignore"), suffix(b".config.old"));
    }

    #[test]
    fn entries_keep_their_order_and_are_ranked_by_name() {
        let names: [&[u8]; 3] = [b"b.c", b"a.h", b"c"];
        let named = names.into_iter().zip(7..).map(|(name, ino)| (name, ino, EntryKind::File));
        let told: Vec<_> =
            Entries::named(named).iter().map(|entry| (entry.ino, entry.name_rank)).collect();
        assert_eq!(told, [(7, 1), (8, 0), (9, 2)]);
    }

    #[test]
    fn entries_are_found_by_name_and_by_inode_whatever_ranks_a_recording_gives() {
        let entry = |(ino, name_rank)| Entry { ino, name_rank, suffix: 0, kind: EntryKind::File };
        let entries = Entries::from([(9, 7), (3, 7), (3, 2)].map(entry).to_vec());
        let ranks: Vec<_> = entries.iter().map(|entry| entry.name_rank).collect();
        assert_eq!(ranks, [1, 2, 0]);
        assert_eq!(
            [0, 1, 2, 3].map(|place| entries.by_name(place)),
            [Some(2), Some(0), Some(1), None]
        );
        assert_eq!(
            [0, 1, 2, 3].map(|place| entries.by_ino(place)),
            [Some(1), Some(2), Some(0), None]
        );
        assert_eq!([3, 9, 5].map(|ino| entries.place_by_ino(ino)), [Some(0), Some(2), None]);
    }
}
