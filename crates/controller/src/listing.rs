//! Directories and their listings, and how commands name their entries.

use readahead::{FileKey, FileRef};
use serde::{Deserialize, Serialize};

use crate::ids::{CgroupId, Ticket};

/// Identifies a directory, so that it can be opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryRef {
    /// The directory's inode.
    pub key: FileKey,
    /// Its generation, since inode numbers are reused.
    pub generation: u32,
}

/// One entry of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EntryRef {
    /// The command that asked for the listing.
    pub listing: Ticket,
    /// The index in [`Listing::entries`].
    pub entry: u32,
}

/// Which directory to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// A directory with a known inode.
    Known(DirectoryRef),
    /// An entry of a listed directory.
    Below(FileKey, EntryRef),
}

impl Place {
    /// The directory's inode, for an entry according to the listing.
    pub fn key(&self) -> FileKey {
        match self {
            Place::Known(directory) => directory.key,
            Place::Below(key, _) => *key,
        }
    }
}

/// A process read the first page of a file, and that page was absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMiss {
    /// The file, and who reads it.
    pub of: FileRef,
    /// The memory cgroup of the process.
    pub cgroup: CgroupId,
    /// The directory through which it was opened.
    pub directory: DirectoryRef,
    /// Size of the file in bytes.
    pub file_bytes: u64,
    /// Pages of the request, at least 1.
    pub request_pages: u32,
}

/// The contents of a directory, as far as the reading process may list it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The directory itself.
    pub directory: DirectoryRef,
    /// The directory above it, if the process may list that as well and it lies on the same file system.
    pub parent: Option<DirectoryRef>,
    /// Its entries in the order of `readdir(3)`. The first 65,536 of a larger directory.
    pub entries: Vec<Entry>,
}

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

impl Entry {
    /// The entries of a directory, given each name with its inode number and kind in the order of `readdir(3)`.
    pub fn all<'a>(names: impl Iterator<Item = (&'a [u8], u64, EntryKind)>) -> Vec<Entry> {
        let names: Vec<_> = names.collect();
        let entry = |&(name, ino, kind): &(&[u8], u64, EntryKind)| Entry {
            ino,
            name_rank: 0,
            suffix: suffix(name),
            kind,
        };
        let mut entries: Vec<Entry> = names.iter().map(entry).collect();
        let mut by_name: Vec<usize> = (0..names.len()).collect();
        by_name.sort_unstable_by_key(|at| names[*at].0);
        for (rank, at) in by_name.into_iter().enumerate() {
            entries[at].name_rank = rank as u32;
        }
        entries
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
            Entry::all(named).iter().map(|entry| (entry.ino, entry.name_rank)).collect();
        assert_eq!(told, [(7, 1), (8, 0), (9, 2)]);
    }
}
