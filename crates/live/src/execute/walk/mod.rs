//! Lists directories and reads their files ahead, with the rights and the I/O priority of the reading process.
//!
//! ```text
//!   List ------> up to 8 threads   getdents: names --> Listings (shared), the rest --> answer
//!   ReadFiles -> up to 8 threads   look names up in Listings, open, readahead; a disk in the order of places
//!                                  (these do ReadRemembered, too)
//! ```

pub(super) mod list;
mod names;
pub(super) mod read;

use controller::ids::{Tgid, Ticket};
use controller::{EntryRef, Head, Place};

use crate::pool::Size;

pub(super) use names::Listings;

/// Threads of each kind. Several, as opening a file may wait for the disk to read its inode.
pub(super) const THREADS: Size = Size { threads: 8, queues: true };

/// A directory to list.
pub(super) struct List {
    pub(super) ticket: Ticket,
    pub(super) place: Place,
    pub(super) tgid: Tgid,
}

/// Files to read ahead: a `head` of each, `most_bytes` of all.
pub(super) struct ReadFiles {
    pub(super) ticket: Ticket,
    pub(super) tgid: Tgid,
    pub(super) files: Vec<EntryRef>,
    pub(super) head: Head,
    pub(super) most_bytes: u64,
}
