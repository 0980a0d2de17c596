//! Reports the directory of a missed file; lists directories, and reads their files ahead.

use std::collections::{HashMap, VecDeque};

use controller::ids::{FileKey, Tgid, Ticket};
use controller::{
    Completed, DirectoryRef, Entries, EntryKind, EntryRef, FileMiss, Head, Input, Listing, Place,
};
use readahead::{Cause, Nanos, PAGE_BYTES};

use super::{DEV, Due};
use crate::account::Decision;
use crate::directories::{DirectoryIndex, Named};
use crate::machine::{Machine, USER};
use crate::process::{Behalf, Doing, Reading};

/// The directories that the controller has listed and not forgotten.
pub(super) type Listings = HashMap<Ticket, DirectoryIndex>;

/// The first pages of files that are read ahead for a process.
#[derive(Debug)]
pub(super) struct Heads {
    ticket: Ticket,
    tgid: Tgid,
    /// Files that are not read yet, and how many pages of each to read.
    left: VecDeque<(u32, u64)>,
    /// How many files are read or cannot be read, and the bytes of all.
    files: u32,
    bytes: u64,
}

impl Machine {
    /// Reports the directory of a file whose first page was absent, if it has one.
    pub(super) fn report_file(&mut self, now: Nanos, number: u32, reading: &Reading) {
        let file = self.opens[reading.open as usize].file;
        let Some(directory) = self.directories.of_file(file) else { return };
        let access = self.bare(number, reading);
        let miss = FileMiss {
            of: access.of,
            cgroup: access.cgroup,
            directory: reference(directory),
            file_bytes: access.file_bytes,
            request_pages: access.request_pages,
        };
        self.report_disk(now);
        self.give_input(now, &Input::FileMiss(miss));
    }

    /// Lists a directory for a process.
    pub(super) fn list(&mut self, ticket: Ticket, place: Place, tgid: Tgid) -> Completed {
        let directory = match place {
            Place::Known(of) => number_of(of.key),
            Place::Below(_, entry) => match self.named(entry) {
                Some(Named::Directory(directory)) => Some(directory),
                _ => None,
            },
        };
        let directory = directory.filter(|_| !self.has_ended(tgid));
        if let (Some(directory), Some(body)) = (directory, &mut self.body) {
            body.listings.insert(ticket, directory);
        }
        Completed::Listed { ticket, listing: directory.map(|directory| self.listing(directory)) }
    }

    fn listing(&self, directory: DirectoryIndex) -> Listing {
        let named = self.entries(directory).iter().map(|(name, named)| match named {
            Named::File(file) => (name.as_bytes(), u64::from(file.0), EntryKind::File),
            Named::Directory(directory) => {
                (name.as_bytes(), key_of_directory(*directory).ino, EntryKind::Directory)
            }
        });
        Listing {
            directory: reference(directory),
            parent: self.directories.parent(directory).map(reference),
            entries: Entries::named(named),
        }
    }

    /// Which files to read ahead for a process: as many as fit, on a device that serves one access at a time in the
    /// order of their places.
    pub(super) fn choose_heads(
        &self,
        (ticket, tgid): (Ticket, Tgid),
        files: &[EntryRef],
        head: Head,
        most_bytes: u64,
    ) -> Heads {
        let mut heads = Heads { ticket, tgid, left: VecDeque::new(), files: 0, bytes: 0 };
        for entry in files {
            let head = self.head(*entry, head).filter(|_| !self.has_ended(tgid));
            let more = head.map_or(0, |(_, pages)| pages * PAGE_BYTES);
            if heads.bytes > 0 && heads.bytes + more > most_bytes {
                break;
            }
            heads.files += 1;
            heads.bytes += more;
            heads.left.extend(head);
        }
        if self.cost.is_serial() {
            let place = |(file, _): &(u32, u64)| self.cache.file(*file).offset;
            heads.left.make_contiguous().sort_by_key(place);
        }
        heads
    }

    /// Reads the next file ahead, as one thread does that calls `readahead(2)` for each. Answers after the last one.
    pub(super) fn read_heads(&mut self, now: Nanos, mut heads: Heads) {
        let Some((file, pages)) = heads.left.pop_front().filter(|_| !self.has_ended(heads.tgid))
        else {
            let Heads { ticket, files, bytes, .. } = heads;
            let answer = Completed::FilesRead { ticket, files, bytes };
            return self.answer(now, &Input::Completed(answer));
        };
        let (cause, behalf) = (Cause::Initial, Behalf { process: USER, reader: heads.tgid });
        let read = self.read_range(now, file, (0, pages), cause, 0, behalf).pages;
        self.note(Decision { file, start: 0, asked: pages, read, cause });
        let submitted = now + read * self.cpu.fill;
        if let Some(body) = &mut self.body {
            body.arrange_at(submitted, Due::Submit);
            body.arrange_at(submitted, Due::Heads(heads));
        }
    }

    /// A file of a listing, and how many of its first pages to read.
    fn head(&self, entry: EntryRef, head: Head) -> Option<(u32, u64)> {
        let Some(Named::File(file)) = self.named(entry) else { return None };
        let about = self.cache.file(file.0);
        let pages = head.pages_of(about.pages());
        (pages > 0 && !about.is_sparse).then_some((file.0, pages))
    }

    /// What an entry of a listing stands for.
    fn named(&self, EntryRef { listing, entry }: EntryRef) -> Option<Named> {
        let directory = self.body.as_ref()?.listings.get(&listing)?;
        self.entries(*directory).get(entry as usize).map(|(_, named)| *named)
    }

    /// Nothing is listed or read for a process that has ended.
    fn has_ended(&self, process: Tgid) -> bool {
        let process = self.processes.get(process as usize);
        process.is_none_or(|process| matches!(process.doing, Doing::Ended))
    }
}

/// The inode number of the first directory; those of files are smaller.
const FIRST_DIRECTORY: u64 = 1 << 32;

fn key_of_directory(directory: DirectoryIndex) -> FileKey {
    FileKey { dev: DEV, ino: FIRST_DIRECTORY + u64::from(directory.0) }
}

fn reference(directory: DirectoryIndex) -> DirectoryRef {
    DirectoryRef { key: key_of_directory(directory), generation: 0 }
}

fn number_of(key: FileKey) -> Option<DirectoryIndex> {
    key.ino.checked_sub(FIRST_DIRECTORY).map(|number| DirectoryIndex(number as u32))
}
