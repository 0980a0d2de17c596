//! Lists directories and reads their files ahead, with the rights of the reading process.
//!
//! ```text
//!   List ------> up to 8 threads   getdents: names --> Listings (shared), the rest --> answer
//!   ReadFiles -> up to 8 threads   look names up in Listings, open, readahead; a disk in the order of places
//!                                  (these do ReadRemembered, too)
//! ```

mod leases;
mod list;
mod names;
mod read;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use controller::ids::{Tgid, Ticket};
use controller::{Completed, EntryRef, Place};

use super::lane::OnVolume;
use super::pool::{Size, Worker};
use super::readers::Submission;
use super::remembered::ReadRemembered;

pub(super) use leases::Leases;
pub(super) use names::Listings;

/// Threads of each kind. Several, as opening a file may wait for the disk to read its inode.
pub(super) const THREADS: Size = Size { threads: 8, queues: true };

/// A directory to list.
pub(super) struct List {
    pub(super) ticket: Ticket,
    pub(super) place: Place,
    pub(super) tgid: Tgid,
}

/// Files to read ahead: up to `head_pages` of each, `most_bytes` of all.
pub(super) struct ReadFiles {
    pub(super) ticket: Ticket,
    pub(super) tgid: Tgid,
    pub(super) files: Vec<EntryRef>,
    pub(super) head_pages: u32,
    pub(super) most_bytes: u64,
}

/// What the threads that read files ahead do.
pub(super) enum Ahead {
    Walk(ReadFiles),
    Remembered(ReadRemembered),
}

#[derive(Clone)]
pub(super) struct Lister(pub(super) Arc<Listings>);

impl Worker for Lister {
    type Job = OnVolume<List>;

    fn run(&mut self, OnVolume(job, volume): Self::Job) -> Option<Completed> {
        Some(list::run(&job, &volume.mount, &self.0))
    }
}

#[derive(Clone)]
pub(super) struct FilesReader(pub(super) Arc<Listings>, pub(super) Arc<Submission>);

impl Worker for FilesReader {
    type Job = OnVolume<Ahead>;

    fn run(&mut self, OnVolume(job, volume): Self::Job) -> Option<Completed> {
        let is_serial = self.1.is_serial.load(Ordering::Relaxed);
        Some(match job {
            Ahead::Walk(job) => read::run(&job, &volume, &self.0, is_serial),
            Ahead::Remembered(job) => job.run(&volume, is_serial),
        })
    }
}
