//! Reads the first pages of files ahead, for a process that may read them.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use controller::{Completed, EntryRef};
use linux::acting_as::Rights;
use linux::{directories, sys};
use readahead::{FileKey, PAGE_BYTES};
use rustix::fs::fstat;

use super::ReadFiles;
use super::leases::Leases;
use super::names::{Listings, Names};

/// Asks for the files, as far as they fit.
pub(super) fn run(job: &ReadFiles, listings: &Listings, is_serial: bool) -> Completed {
    let (files, bytes) = match Rights::of(job.tgid) {
        Ok(rights) => {
            let reader = Reader { job, rights, leases: Leases::read(), opened: None };
            if is_serial { reader.where_they_lie(listings) } else { reader.in_turn(listings) }
        }
        // The program has ended.
        Err(_) => (job.files.len() as u32, 0),
    };
    Completed::FilesRead { ticket: job.ticket, files, bytes }
}

struct Reader<'a> {
    job: &'a ReadFiles,
    rights: Rights,
    leases: Leases,
    /// The directory that was opened last.
    opened: Option<(Arc<Names>, OwnedFd)>,
}

/// A file that is worth reading.
struct Found {
    at: EntryRef,
    ino: u64,
    pages: u64,
    place: u64,
}

impl Reader<'_> {
    /// One file after the other.
    fn in_turn(mut self, listings: &Listings) -> (u32, u64) {
        let mut bytes = 0;
        for (done, at) in self.job.files.iter().enumerate() {
            let Some((file, _)) = self.open(*at, listings) else { continue };
            let pages = self.pages_of(&file);
            if bytes > 0 && bytes + pages * PAGE_BYTES > self.job.most_bytes {
                return (done as u32, bytes);
            }
            self.ask(file.as_fd(), pages);
            bytes += pages * PAGE_BYTES;
        }
        (self.job.files.len() as u32, bytes)
    }

    /// In the order in which they lie on the disk. Inodes are looked at in their order before.
    fn where_they_lie(mut self, listings: &Listings) -> (u32, u64) {
        let mut turns: Vec<(usize, u64)> = Vec::with_capacity(self.job.files.len());
        for (turn, at) in self.job.files.iter().enumerate() {
            let names = listings.get(at.listing);
            if let Some((_, ino)) = names.as_ref().and_then(|names| names.get(at.entry)) {
                turns.push((turn, ino));
            }
        }
        turns.sort_unstable_by_key(|(_, ino)| *ino);
        let mut found: Vec<Option<Found>> = Vec::new();
        found.resize_with(self.job.files.len(), || None);
        for (turn, ino) in turns {
            let at = self.job.files[turn];
            let Some((file, _)) = self.open(at, listings) else { continue };
            let (pages, place) = (self.pages_of(&file), sys::first_place(&file).unwrap_or(ino));
            if pages > 0 {
                found[turn] = Some(Found { at, ino, pages, place });
            }
        }
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
        for Found { at, pages, .. } in found {
            if let Some((file, _)) = self.open(at, listings) {
                self.ask(file.as_fd(), pages);
            }
        }
        (files as u32, bytes)
    }

    fn open(&mut self, at: EntryRef, listings: &Listings) -> Option<(OwnedFd, u64)> {
        let names = listings.get(at.listing)?;
        let (name, ino) = names.get(at.entry)?;
        let key = FileKey { dev: names.directory.key.dev, ino };
        if self.leases.hold(key) {
            return None;
        }
        let file = self.open_named(&names, name, key).ok()?;
        Some((file, ino))
    }

    fn open_named(&mut self, names: &Arc<Names>, name: &CStr, key: FileKey) -> io::Result<OwnedFd> {
        let is_open = self.opened.as_ref().is_some_and(|(of, _)| Arc::ptr_eq(of, names));
        if !is_open {
            let of = names.directory;
            let mount = &self.job.volume.mount;
            let opened = directories::open_known(of.key, of.generation, mount)?;
            self.opened = Some((Arc::clone(names), opened));
        }
        let Some((_, directory)) = &self.opened else { return Err(io::ErrorKind::NotFound.into()) };
        directories::open_file_in(directory.as_fd(), name, key, &self.rights)
    }

    /// Pages to read; 0 of a file that has no blocks here, as it is sparse, or stored elsewhere.
    fn pages_of(&self, file: &OwnedFd) -> u64 {
        let Ok(about) = fstat(file) else { return 0 };
        if about.st_blocks == 0 {
            return 0;
        }
        (about.st_size as u64).div_ceil(PAGE_BYTES).min(self.job.head_pages.into())
    }

    fn ask(&self, file: BorrowedFd<'_>, pages: u64) {
        let mut start = 0;
        while start < pages {
            let piece = self.job.volume.piece_pages.clamp(1, pages - start);
            // A file without a page cache: its reader gets what it gets without us.
            if sys::readahead(file, start, piece).is_err() {
                return;
            }
            start += piece;
        }
    }
}
