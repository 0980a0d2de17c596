//! Starts of a command that is remembered: reads the ranges of an earlier start ahead, and gives the next list.

use std::collections::VecDeque;

use controller::ids::Ticket;
use controller::{Completed, FilePages, Found, Input, RememberedFile, Version};
use readahead::behind::Span;
use readahead::{Cause, Nanos, PAGE_BYTES};

use super::{DEV, Decider, Due};
use crate::account::Decision;
use crate::cache::NOBODY;
use crate::machine::{Machine, USER};
use crate::process::Behalf;

/// Ranges of one command, which one thread reads ahead.
#[derive(Debug)]
pub(super) struct Ranges {
    ticket: Ticket,
    /// Ranges that are not read yet: the place in `found`, the file, the pages.
    left: VecDeque<(usize, u32, Span)>,
    found: Vec<Found>,
}

impl Machine {
    /// All processes together are a command whose last start has left this list; at its first start the list is empty.
    /// Call it before anything has run.
    pub fn begin_start(&mut self, list: Vec<RememberedFile>) {
        self.give_input(0, &Input::Remembered(list));
    }

    /// What the next start of the command should read ahead. Files never change here.
    pub fn remembered(&self) -> Vec<RememberedFile> {
        let Some(Decider::Bowwave(controller)) = self.body.as_ref().map(|body| &body.decider)
        else {
            return Vec::new();
        };
        let mut list = controller.remembered();
        for file in &mut list {
            // Without a version, the command has come to it.
            file.version.get_or_insert_with(|| self.version(file.file.ino as u32));
        }
        list
    }

    /// What a file contains, which is always the same.
    fn version(&self, file: u32) -> Version {
        Version { bytes: self.cache.file(file).pages() * PAGE_BYTES, changed_ns: 0 }
    }

    /// The ranges of a command, on a device that serves one access at a time in the order of their places.
    pub(super) fn choose_ranges(&self, ticket: Ticket, files: &[FilePages]) -> Ranges {
        let is_there = |of: &FilePages| {
            of.file.dev == DEV
                && self.cache.has_file(of.file.ino)
                && of.version == self.version(of.file.ino as u32)
        };
        let mut ranges = Ranges { ticket, left: VecDeque::new(), found: Vec::new() };
        for of in files {
            let is_there = is_there(of);
            for span in &of.spans {
                if is_there {
                    ranges.left.push_back((ranges.found.len(), of.file.ino as u32, *span));
                }
                ranges.found.push(Found::Gone);
            }
        }
        if self.cost.is_serial() {
            let place = |(_, file, span): &(usize, u32, Span)| {
                self.cache.file(*file).offset + span.start * PAGE_BYTES
            };
            ranges.left.make_contiguous().sort_by_key(place);
        }
        ranges
    }

    /// Reads the next range ahead, as one thread does that calls `readahead(2)` for each. Answers after the last one.
    pub(super) fn read_ranges(&mut self, now: Nanos, mut ranges: Ranges) {
        let Some((place, file, span)) = ranges.left.pop_front() else {
            let Ranges { ticket, found, .. } = ranges;
            let answer = Completed::RememberedRead { ticket, found };
            return self.answer(now, &Input::Completed(answer));
        };
        let is_cached = (span.start..span.end).all(|page| self.cache.lookup(file, page).is_some());
        ranges.found[place] = if is_cached { Found::Cached } else { Found::Read };
        // Bowwave itself has these pages read, for no process that it knows.
        let (cause, behalf) = (Cause::Initial, Behalf { process: USER, reader: NOBODY });
        let (start, asked) = (span.start, span.pages());
        let read = self.read_range(now, file, (start, asked), cause, 0, behalf).pages;
        if !is_cached {
            self.note(Decision { file, start, asked, read, cause });
        }
        let submitted = now + read * self.cpu.fill;
        if let Some(body) = &mut self.body {
            body.arrange_at(submitted, Due::Submit);
            body.arrange_at(submitted, Due::Ranges(ranges));
        }
    }
}
