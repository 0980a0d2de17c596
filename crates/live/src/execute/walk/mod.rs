//! Lists directories and reads their files ahead, with the rights of the reading process.
//!
//! ```text
//!   List ------> up to 8 threads   getdents: names --> Listings (shared), the rest --> answer
//!   ReadFiles -> up to 8 threads   look names up in Listings, open, readahead; a disk in the order of places
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
use super::readers::Submission;
use crate::mounted::Volume;
pub(super) use names::Listings;

/// Threads of each kind. Several, as opening a file may wait for the disk to read its inode.
pub(super) const THREADS: Size = Size { threads: 8, queues: true };

/// A directory to list.
pub(super) struct List {
    pub(super) ticket: Ticket,
    pub(super) place: Place,
    pub(super) tgid: Tgid,
    pub(super) volume: Arc<Volume>,
}

/// Files to read ahead: up to `head_pages` of each, `most_bytes` of all.
pub(super) struct ReadFiles {
    pub(super) ticket: Ticket,
    pub(super) tgid: Tgid,
    pub(super) files: Vec<EntryRef>,
    pub(super) head_pages: u32,
    pub(super) most_bytes: u64,
    pub(super) volume: Arc<Volume>,
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

#[derive(Clone)]
pub(super) struct Lister(pub(super) Arc<Listings>);

impl Worker for Lister {
    type Job = List;

    fn run(&mut self, job: List) -> Option<Completed> {
        Some(list::run(&job, &self.0))
    }
}

#[derive(Clone)]
pub(super) struct FilesReader(pub(super) Arc<Listings>, pub(super) Arc<Submission>);

impl Worker for FilesReader {
    type Job = ReadFiles;

    fn run(&mut self, job: ReadFiles) -> Option<Completed> {
        let is_serial = self.1.is_serial.load(Ordering::Relaxed);
        Some(read::run(&job, &self.0, is_serial))
    }
}
