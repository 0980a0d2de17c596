//! Reads ranges of files ahead that a command has read at an earlier start.
//!
//! Nothing but a regular file that still is what it was is opened: its inode, generation, size and last change are
//! looked at before.

use std::os::fd::{AsFd, OwnedFd};

use controller::ids::Ticket;
use controller::{Completed, FilePages, Found};
use linux::{handles, sys};
use readahead::behind::Span;

use super::walk::Leases;
use crate::mounted::Volume;

/// Ranges to be read ahead.
pub(super) struct ReadRemembered {
    pub(super) ticket: Ticket,
    pub(super) files: Vec<FilePages>,
}

impl ReadRemembered {
    /// Asks for the ranges; on a device that serves one access at a time, in the order in which they lie there.
    pub(super) fn run(&self, volume: &Volume, is_serial: bool) -> Completed {
        let mut reader = Reader { job: self, volume, leases: Leases::read(), opened: None };
        let ranges = self.ranges();
        let mut found = vec![Found::Gone; ranges.len()];
        if is_serial {
            reader.where_they_lie(&ranges, &mut found);
        } else {
            for (found, (file, span)) in found.iter_mut().zip(ranges) {
                *found = reader.ask(file, span);
            }
        }
        Completed::RememberedRead { ticket: self.ticket, found }
    }

    /// Each range, with the index of its file.
    fn ranges(&self) -> Vec<(usize, Span)> {
        let of_file = |(at, file): (usize, &FilePages)| {
            file.spans.iter().map(move |span| (at, *span)).collect::<Vec<_>>()
        };
        self.files.iter().enumerate().flat_map(of_file).collect()
    }

    /// The answer if nobody does it.
    pub(super) fn refused(&self) -> Completed {
        let found = vec![Found::Cached; self.ranges().len()];
        Completed::RememberedRead { ticket: self.ticket, found }
    }
}

struct Reader<'a> {
    job: &'a ReadRemembered,
    volume: &'a Volume,
    leases: Leases,
    /// The file that was opened last.
    opened: Option<(usize, OwnedFd)>,
}

impl Reader<'_> {
    /// Inodes are looked at in their order first.
    fn where_they_lie(&mut self, ranges: &[(usize, Span)], found: &mut [Found]) {
        let mut turns: Vec<usize> = (0..ranges.len()).collect();
        turns.sort_by_key(|turn| self.job.files[ranges[*turn].0].file.ino);
        let place = |turn: usize| {
            let (file, span) = ranges[turn];
            let place = self.open(file).and_then(|file| sys::place_of(file, span.start));
            (place.unwrap_or_default(), turn)
        };
        let mut places: Vec<(u64, usize)> = turns.into_iter().map(place).collect();
        places.sort_unstable();
        for (_, turn) in places {
            let (file, span) = ranges[turn];
            found[turn] = self.ask(file, span);
        }
    }

    fn ask(&mut self, file: usize, span: Span) -> Found {
        let key = self.job.files[file].file;
        if self.leases.contains(key) {
            return Found::Cached;
        }
        let piece_pages = self.volume.piece_pages.max(1);
        let Some(file) = self.open(file) else { return Found::Gone };
        if sys::cached_pages(file, span.start, span.pages())
            .is_ok_and(|cached| cached == span.pages())
        {
            return Found::Cached;
        }
        let mut start = span.start;
        while start < span.end {
            let pages = piece_pages.min(span.end - start);
            // A file without a page cache: its reader gets what it gets without us.
            if sys::readahead(file.as_fd(), start, pages).is_err() {
                return Found::Cached;
            }
            start += pages;
        }
        Found::Read
    }

    fn open(&mut self, at: usize) -> Option<&OwnedFd> {
        if self.opened.as_ref().is_none_or(|(opened, _)| *opened != at) {
            let FilePages { file, generation, version, .. } = self.job.files[at];
            let known = handles::Known { file, generation };
            let reached = known.reach(&self.volume.mount).ok()?;
            if reached.bytes != version.bytes || reached.changed_ns != version.changed_ns {
                return None;
            }
            self.opened = Some((at, reached.open().ok()?));
        }
        self.opened.as_ref().map(|(_, file)| file)
    }
}
