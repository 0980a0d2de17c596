//! Files that are being copied ([`crate::behind`] tells which), read without look-ahead.
//!
//! ```text
//!   a copy the disk does not keep up with ---> fadvise(RANDOM): reads what is asked for, no more
//!   its writing has ended, or paused;
//!   or its reader has closed what it copies -> its window again
//! ```
//!
//! No other file gets that advice, not even for a moment.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use linux::sys;
use readahead::{DeviceNumber, FileKey};
use rustix::fs::{Advice, fadvise};

use super::{PATIENCE_NS, Windows};
use crate::act::given::Given;
use crate::observe::Event;

/// Who reads less at a time (64 KiB) waits for the disk too often; `cp` and `sendfile` ask for as much.
const LEAST_REQUEST_PAGES: u32 = 16;

/// So many copies are read like that at once; what comes beyond that is read as ever.
const MOST_HELD: usize = 64;

/// Closed files are let go after so long, so that nobody waits for a lock or an unmount.
const LOOK_NS: u64 = 20_000_000;

/// An open file not heard of for so long may have been closed, and another one opened.
const FRESH_NS: u64 = 1_000_000_000;

/// Who is held.
#[derive(Default)]
pub(super) struct Held {
    /// Processes, each with a file.
    readers: HashSet<(u32, FileKey)>,
    files: HashMap<u64, HeldFile>,
    /// To be advised, and to be given their windows back.
    begun: VecDeque<u64>,
    over: VecDeque<u64>,
    /// When open files could not be advised.
    failed: HashMap<u64, u64>,
    /// When the advice was taken back: what was seen before may still be on its way.
    given_back: HashMap<u64, u64>,
    looked_at: u64,
}

/// An open file with the advice.
struct HeldFile {
    reader: (u32, FileKey),
    given: Given,
    /// Other processes may have the same open file, and one of those may be the last: so it is reached, and
    /// is no other one.
    duplicate: OwnedFd,
    /// What was seen until then was before the advice.
    since: u64,
}

impl HeldFile {
    /// Whether its reader has it open still.
    fn is_open(&self) -> bool {
        sys::has_open_file(self.given.tgid, self.given.number, self.duplicate.as_fd())
    }
}

impl Held {
    /// The open file, and what it was.
    pub(super) fn get(&self, open_file: u64) -> Option<(&OwnedFd, &Given)> {
        self.files.get(&open_file).map(|held| (&held.duplicate, &held.given))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = u64> {
        self.files.keys().copied()
    }

    pub(super) fn forget(&mut self, is_fresh: impl Fn(u64) -> bool) {
        self.failed.retain(|_, at| is_fresh(*at));
        self.given_back.retain(|_, at| is_fresh(*at));
    }

    /// Of this reader, another one than this.
    fn other(&self, event: &Event) -> Option<u64> {
        let mut files = self.files.iter();
        let is_it = |(open_file, held): &(&u64, &HeldFile)| {
            **open_file != event.open_file && held.reader == reader(event)
        };
        files.find(is_it).map(|(open_file, _)| *open_file)
    }
}

fn reader(event: &Event) -> (u32, FileKey) {
    (event.tgid, event.file)
}

impl Windows {
    /// These processes shall read these files without look-ahead, and no others. [`Windows::go_on`] does it.
    pub(crate) fn hold(&mut self, readers: &HashSet<(u32, FileKey)>) {
        let held = &mut self.held;
        if held.readers == *readers {
            return;
        }
        let is_new = |one| readers.contains(&one) && !held.readers.contains(&one);
        let new = self.heard.values().filter(|event| is_new(reader(event)));
        held.begun.extend(new.map(|event| event.open_file));
        let over = held.files.iter().filter(|(_, file)| !readers.contains(&file.reader));
        held.over.extend(over.map(|(open_file, _)| *open_file));
        held.readers.clone_from(readers);
    }

    /// Whether it is read without look-ahead.
    pub(crate) fn is_held(&self, event: &Event) -> bool {
        let held = self.held.files.get(&event.open_file);
        held.is_some_and(|held| held.reader.1 == event.file)
    }

    /// Whether random advice seen by `event` is ours.
    pub(crate) fn is_our_advice(&self, event: &Event) -> bool {
        let given_back = self.held.given_back.get(&event.open_file);
        self.is_held(event) || given_back.is_some_and(|at| event.now <= *at)
    }

    /// Whether [`Windows::go_on`] has to be called soon.
    pub(crate) fn is_busy(&self) -> bool {
        !self.held.begun.is_empty() || !self.held.over.is_empty()
    }

    /// Whether the process has an open file of this file that is held.
    pub(crate) fn is_held_by(&self, event: &Event) -> bool {
        self.held.files.values().any(|held| held.reader == reader(event))
    }

    /// If its program has advised something else since, that is its program's affair, and nothing of ours is
    /// left; tells whether that is so.
    pub(super) fn yields_to_advice(&mut self, event: &Event) -> bool {
        let since = self.held.files.get(&event.open_file).map(|held| held.since);
        let is_new = !event.advised_random && since.is_some_and(|since| event.now > since);
        if is_new {
            self.ledger.strike(event.open_file, true);
            self.held.files.remove(&event.open_file);
        }
        is_new
    }

    /// One that was not heard of when its reader was to be held.
    pub(super) fn hear_held(&mut self, event: &Event) {
        let held = &mut self.held;
        let is_known = held.files.contains_key(&event.open_file);
        if held.readers.contains(&reader(event))
            && !is_known
            && !held.begun.contains(&event.open_file)
        {
            held.begun.push_back(event.open_file);
        }
    }

    /// Gives the next open file its window back that is held no more, or that its reader has closed; tells
    /// whether there was one.
    pub(super) fn release_next(&mut self, now: u64) -> bool {
        if now.saturating_sub(self.held.looked_at) >= LOOK_NS {
            self.held.looked_at = now;
            let closed = self.held.files.iter().filter(|(_, held)| !held.is_open());
            self.held.over.extend(closed.map(|(open_file, _)| *open_file));
        }
        while let Some(open_file) = self.held.over.pop_front() {
            let Some(held) = self.held.files.get(&open_file) else { continue };
            if !self.held.readers.contains(&held.reader) || !held.is_open() {
                self.take_back(open_file);
                return true;
            }
        }
        false
    }

    /// Advises the next open file; tells whether there was one.
    pub(super) fn hold_next<'a>(
        &mut self,
        now: u64,
        knob_of: impl Fn(DeviceNumber) -> Option<&'a Path>,
    ) -> bool {
        while let Some(open_file) = self.held.begun.pop_front() {
            let Some(event) = self.heard.get(&open_file).copied() else { continue };
            let Some(knob) = knob_of(event.file.dev) else { continue };
            if !self.may_be_held(&event, now) {
                continue;
            }
            if let Some(other) = self.held.other(&event) {
                self.take_back(other);
            }
            if self.held.other(&event).is_some() || self.end_look_ahead(&event, knob).is_err() {
                self.held.failed.insert(open_file, now);
            }
            return true;
        }
        false
    }

    fn may_be_held(&self, event: &Event, now: u64) -> bool {
        let held = &self.held;
        let has_failed = |at: &u64| now.saturating_sub(*at) < PATIENCE_NS;
        held.readers.contains(&reader(event))
            && event.request_pages >= LEAST_REQUEST_PAGES
            && now.saturating_sub(event.now) < FRESH_NS
            && held.files.len() < MOST_HELD
            && !self.is_held(event)
            && !held.failed.get(&event.open_file).is_some_and(has_failed)
    }

    fn end_look_ahead(&mut self, event: &Event, knob: &Path) -> io::Result<()> {
        let (duplicate, given) = self.note_down(event, knob, true)?;
        fadvise(&duplicate, 0, None, Advice::Random)?;
        let since = sys::monotonic_ns();
        let held = HeldFile { reader: reader(event), given, duplicate, since };
        self.held.files.insert(event.open_file, held);
        Ok(())
    }

    /// It has its window again.
    pub(super) fn let_go(&mut self, open_file: u64) {
        if self.held.files.remove(&open_file).is_some() {
            self.held.given_back.insert(open_file, sys::monotonic_ns());
        }
    }
}
