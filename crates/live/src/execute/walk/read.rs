//! Reads the first pages of files ahead, with the rights of the reading process.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use controller::{Completed, EntryRef};
use linux::acting_as::Rights;
use linux::io_priority::take_priority_of;
use linux::process::Process;
use linux::{directories, sys};
use readahead::behind::Span;
use readahead::{FileKey, PAGE_BYTES};
use rustix::fs::fstat;

use super::ReadFiles;
use super::names::{Listings, Names};
use crate::execute::opening;
use crate::execute::readers::read_ahead;
use crate::mounted::Volume;

/// Reads files ahead, from the first on, as far as they fit. Answers how many files are done with, those that cannot be
/// read included, and how many bytes were requested.
pub(in crate::execute) fn run(
    job: &ReadFiles,
    volume: &Volume,
    listings: &Listings,
    is_serial: bool,
) -> Completed {
    take_priority_of(job.tgid);
    let begun = Process::open(job.tgid).and_then(|it| Rights::of(&it).map(|rights| (it, rights)));
    let (files, bytes) = match begun {
        Ok((process, rights)) => {
            let last_directory = None;
            let mut reader = Reader { job, volume, listings, process, rights, last_directory };
            if is_serial { reader.read_in_disk_order() } else { reader.read_in_given_order() }
        }
        // The program has ended.
        Err(_) => (job.files.len() as u32, 0),
    };
    Completed::FilesRead { ticket: job.ticket, files, bytes }
}

struct Reader<'a> {
    job: &'a ReadFiles,
    volume: &'a Volume,
    listings: &'a Listings,
    process: Process,
    rights: Rights,
    /// The directory that was opened last, as the next file often lies there, too.
    last_directory: Option<(Arc<Names>, OwnedFd)>,
}

/// A file that has pages to read.
struct Found {
    entry: EntryRef,
    ino: u64,
    pages: u64,
    /// Where its first page lies on the disk, in bytes; else its inode number.
    place: u64,
}

impl Reader<'_> {
    fn read_in_given_order(&mut self) -> (u32, u64) {
        let mut bytes = 0;
        for (done, entry) in self.job.files.iter().enumerate() {
            let Some(file) = self.open(*entry) else { continue };
            let pages = self.pages_to_read(&file);
            if bytes > 0 && bytes + pages * PAGE_BYTES > self.job.most_bytes {
                return (done as u32, bytes);
            }
            self.read_head(file.as_fd(), pages);
            bytes += pages * PAGE_BYTES;
        }
        (self.job.files.len() as u32, bytes)
    }

    fn read_in_disk_order(&mut self) -> (u32, u64) {
        let mut found = self.find_places();
        let (mut files, mut bytes) = (0, 0);
        for found in &found {
            let more = found.as_ref().map_or(0, |found| found.pages * PAGE_BYTES);
            if bytes > 0 && bytes + more > self.job.most_bytes {
                break;
            }
            bytes += more;
            files += 1;
        }
        found.truncate(files);
        let mut found: Vec<Found> = found.into_iter().flatten().collect();
        found.sort_unstable_by_key(|found| (found.place, found.ino));
        for Found { entry, pages, .. } in found {
            if let Some(file) = self.open(entry) {
                self.read_head(file.as_fd(), pages);
            }
        }
        (files as u32, bytes)
    }

    /// What to read of each file of the job. Opens files in the order of their inodes, which lie on the disk in that
    /// order.
    fn find_places(&mut self) -> Vec<Option<Found>> {
        let files = self.job.files.iter().enumerate();
        let with_ino = files.filter_map(|(at, entry)| {
            let (_, ino) = self.listings.get(entry.listing)?.get(entry.entry)?;
            Some((ino, at, *entry))
        });
        let mut by_ino: Vec<_> = with_ino.collect();
        by_ino.sort_unstable_by_key(|(ino, ..)| *ino);
        let mut found: Vec<Option<Found>> = Vec::new();
        found.resize_with(self.job.files.len(), || None);
        for (ino, at, entry) in by_ino {
            let Some(file) = self.open(entry) else { continue };
            let pages = self.pages_to_read(&file);
            let place = sys::place_of(&file, 0).unwrap_or(ino);
            found[at] = (pages > 0).then_some(Found { entry, ino, pages, place });
        }
        found
    }

    fn open(&mut self, entry: EntryRef) -> Option<OwnedFd> {
        // Nobody wants the rest, and it would keep the file system from being unmounted.
        if self.process.has_ended() {
            return None;
        }
        let names = self.listings.get(entry.listing)?;
        let (name, ino) = names.get(entry.entry)?;
        let key = FileKey { dev: names.directory.key.dev, ino };
        self.open_named(&names, name, key).ok()
    }

    fn open_named(&mut self, names: &Arc<Names>, name: &CStr, key: FileKey) -> io::Result<OwnedFd> {
        let last = self.last_directory.take().filter(|(of, _)| Arc::ptr_eq(of, names));
        let (_, directory) = match last {
            Some(last) => self.last_directory.insert(last),
            None => {
                let of = names.directory;
                let opened = directories::open_known(of.key, of.generation, &self.volume.mount)?;
                self.last_directory.insert((Arc::clone(names), opened))
            }
        };
        let reached = directories::reach_file_in(directory.as_fd(), name, key, &self.rights)?;
        opening::open(&reached)
    }

    /// Pages to read; 0 for a file that is left out. One without blocks is sparse or stored elsewhere.
    fn pages_to_read(&self, file: &OwnedFd) -> u64 {
        let Ok(about) = fstat(file) else { return 0 };
        if about.st_blocks == 0 {
            return 0;
        }
        self.job.head.pages_of((about.st_size as u64).div_ceil(PAGE_BYTES))
    }

    fn read_head(&self, file: BorrowedFd<'_>, pages: u64) {
        // It fails for a file without a page cache, which costs its reader nothing.
        let _ = read_ahead(file, Span { start: 0, end: pages }, self.volume);
    }
}
