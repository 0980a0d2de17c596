//! One process's way through one file, and what is done behind it.

use std::os::fd::AsRawFd;

use linux::mounts::Mount;
use readahead::PAGE_BYTES;
use readahead::behind::{Passing, StreamProgress, Terms};

use super::rules::{Live, Mode, Rules};
use crate::act::open_file;
use crate::observe::Event;

/// A stream that paused for so long keeps nothing for followers any more.
const PAUSE_NS: u64 = 1_000_000_000;

/// Nobody follows in a file of one step, which its reader is done with sooner.
const SMALL_FILE_BYTES: u64 = 4 << 20;
const SMALL_PAUSE_NS: u64 = 200_000_000;

/// Nothing is read ahead for a process that has written so many steps which the disk has not taken yet, or a
/// sixteenth of its memory and at most 64 MiB if that is more: its writing then catches up with its reading.
const BACKLOG_STEPS: u64 = 3;
const MOST_BACKLOG_BYTES: u64 = 64 << 20;
const BACKLOG_SHARE: u64 = 16;

/// The distance a follower is granted, and a step that has not been told yet for each: 20 MiB.
const REACH_PAGES: u64 = 5120;

pub(super) struct Stream {
    /// The last one heard of it; it leads to the file.
    pub(super) event: Event,
    pub(super) passage: StreamProgress,
    /// `None` if nothing is done behind it.
    pub(super) terms: Option<Terms>,
    pub(super) most_backlog_pages: u64,
    /// Its end, or where it paused, has been dealt with.
    pub(super) is_settled: bool,
    /// What would not go, and is not tried again before its end.
    pub(super) left_pages: u64,
    /// What it had touched when it was last looked at.
    pub(super) touched: (u64, u64),
}

impl Stream {
    pub(super) fn new(event: &Event, mode: Mode, memory: u64) -> Self {
        let terms = Terms::of_memory(memory / PAGE_BYTES);
        let backlog_bytes = (memory / BACKLOG_SHARE).min(MOST_BACKLOG_BYTES);
        let backlog_pages = BACKLOG_STEPS * terms.write_step_pages;
        Stream {
            event: *event,
            passage: StreamProgress::default(),
            terms: match mode {
                Mode::Always => Some(Terms { engage_pages: 0, ..terms }),
                Mode::Never => None,
                Mode::Auto => Some(terms),
            },
            // Besides the step under way, which the disk has not been given.
            most_backlog_pages: terms.write_step_pages
                + backlog_pages.max(backlog_bytes / PAGE_BYTES),
            is_settled: false,
            left_pages: 0,
            touched: (0, 0),
        }
    }

    pub(super) fn is_small(&self) -> bool {
        self.event.file_bytes <= SMALL_FILE_BYTES
    }

    /// Having paused for so long, in nanoseconds, it is dealt with as if it had ended.
    pub(super) fn pause(&self) -> u64 {
        if self.is_small() { SMALL_PAUSE_NS } else { PAUSE_NS }
    }

    /// Whether it may be about to use what the other one has just passed.
    pub(super) fn follows(&self, other: &Stream) -> bool {
        let (at, end) = (self.event.mark.1, other.event.mark.1);
        (end.saturating_sub(REACH_PAGES)..=end + REACH_PAGES).contains(&at)
    }
}

pub(super) fn passing(written: bool) -> Passing {
    if written { Passing::Write } else { Passing::Read }
}

pub(super) fn mode_of(rules: &Rules, event: &Event, mount: &Mount) -> Mode {
    if rules.rules.is_empty() {
        return rules.mode;
    }
    let file = open_file(event, mount).ok();
    let descriptor = file.as_ref().map(AsRawFd::as_raw_fd);
    rules.mode_of(&Live { tgid: event.tgid, descriptor })
}
