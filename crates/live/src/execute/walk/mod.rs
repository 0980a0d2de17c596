//! Directories are listed, and files in them read ahead, by threads of their own for each device.
//!
//! ```text
//!   List ------> up to 8 threads   open for the reader, getdents --> Names, kept here; Listing, answered
//!   ReadFiles -> up to 8 threads   open for the reader, readahead; on a disk one, in the order of places
//! ```

mod leases;
mod list;
mod names;
mod read;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use controller::ids::{Tgid, Ticket};
use controller::{Completed, EntryRef, Place};

use super::pool::{Job, Size, Worker};
use super::readers::Manner;
use crate::mounted::Volume;
pub(super) use names::Listings;

/// Threads of each kind: opening a file may wait for its inode.
pub(super) const THREADS: Size = Size { threads: 8, waits: true };

/// A directory to be listed.
pub(super) struct List {
    pub(super) ticket: Ticket,
    pub(super) place: Place,
    pub(super) tgid: Tgid,
    pub(super) volume: Arc<Volume>,
}

/// Files to be read ahead.
pub(super) struct ReadFiles {
    pub(super) ticket: Ticket,
    pub(super) tgid: Tgid,
    pub(super) files: Vec<EntryRef>,
    pub(super) head_pages: u32,
    pub(super) most_bytes: u64,
    pub(super) volume: Arc<Volume>,
}

impl ReadFiles {
    /// Most pages of each file and most bytes of all, in this order.
    pub(super) fn new(
        ticket: Ticket,
        tgid: Tgid,
        files: Vec<EntryRef>,
        (head_pages, most_bytes): (u32, u64),
        volume: Arc<Volume>,
    ) -> Self {
        ReadFiles { ticket, tgid, files, head_pages, most_bytes, volume }
    }
}

impl Job for List {
    fn refused(&self) -> Option<Completed> {
        Some(Completed::Listed { ticket: self.ticket, listing: None })
    }
}

impl Job for ReadFiles {
    fn refused(&self) -> Option<Completed> {
        let (ticket, files) = (self.ticket, self.files.len() as u32);
        Some(Completed::FilesRead { ticket, files, bytes: 0 })
    }
}

/// Lists directories.
pub(super) struct Lister(pub(super) Arc<Listings>);

impl Worker for Lister {
    type Job = List;

    fn run(&mut self, job: List) -> Option<Completed> {
        Some(list::run(&job, &self.0))
    }
}

/// Reads files ahead.
pub(super) struct FilesReader(pub(super) Arc<Listings>, pub(super) Arc<Manner>);

impl Worker for FilesReader {
    type Job = ReadFiles;

    fn run(&mut self, job: ReadFiles) -> Option<Completed> {
        let is_serial = self.1.is_serial.load(Ordering::Relaxed);
        Some(read::run(&job, &self.0, is_serial))
    }
}
