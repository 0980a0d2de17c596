//! Directories, and how commands name them and their entries.

use readahead::{FileKey, FileRef};
use serde::{Deserialize, Serialize};

use crate::entries::Entries;
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
    /// The first 65,536 of a larger directory.
    pub entries: Entries,
}
