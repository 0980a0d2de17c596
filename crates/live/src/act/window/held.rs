//! Files that are being copied ([`crate::behind`] tells which), read without look-ahead.
//!
//! ```text
//!   a copy the disk does not keep up with --> fadvise(RANDOM): reads what is asked for, no more
//!                 it has ended, or paused --> its window again
//! ```
//!
//! No other file gets that advice, not even for a moment.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Advice, fadvise};

use super::{PATIENCE_NS, Windows};
use crate::observe::{DeviceNumber, Event, FileKey};
use crate::sys;

/// Who is held back.
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
}

/// An open file with the advice.
struct HeldFile {
    reader: (u32, FileKey),
    /// Other processes may have the same open file, and one of those may be the last: so it is reached, and
    /// is no other one.
    duplicate: OwnedFd,
    /// What was seen until then was before the advice.
    since: u64,
}

impl Held {
    pub(super) fn duplicate(&self, open_file: u64) -> Option<&OwnedFd> {
        self.files.get(&open_file).map(|held| &held.duplicate)
    }

    pub(super) fn forget_failed(&mut self, is_fresh: impl Fn(u64) -> bool) {
        self.failed.retain(|_, at| is_fresh(*at));
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

    /// Whether its random advice is ours.
    pub(crate) fn is_held(&self, event: &Event) -> bool {
        self.held.files.contains_key(&event.open_file)
    }

    /// Whether [`Windows::go_on`] has to be called soon.
    pub(crate) fn is_busy(&self) -> bool {
        !self.held.begun.is_empty() || !self.held.over.is_empty()
    }

    /// Whether the process has an open file of this file that is held.
    pub(super) fn is_held_by(&self, event: &Event) -> bool {
        self.held.files.values().any(|held| held.reader == reader(event))
    }

    /// Whether its program has advised something since, in place of ours, which is then its program's affair.
    pub(super) fn has_new_advice(&mut self, event: &Event) -> bool {
        let since = self.held.files.get(&event.open_file).map(|held| held.since);
        let is_new = !event.advised_random && since.is_some_and(|since| event.now > since);
        if is_new {
            self.ledger.strike(event.open_file, true);
            self.let_go(event.open_file);
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

    /// Gives the next open file its window back, or advises the next one; tells whether there was one.
    pub(super) fn hold_next<'a>(
        &mut self,
        now: u64,
        knob_of: impl Fn(DeviceNumber) -> Option<&'a Path>,
    ) -> bool {
        while let Some(open_file) = self.held.over.pop_front() {
            let is_over = |held: &HeldFile| !self.held.readers.contains(&held.reader);
            if self.held.files.get(&open_file).is_some_and(is_over) {
                self.take_back(open_file);
                return true;
            }
        }
        while let Some(open_file) = self.held.begun.pop_front() {
            let Some(event) = self.heard.get(&open_file).copied() else { continue };
            let Some(knob) = knob_of(event.file.dev) else { continue };
            let has_failed = |at: &u64| now.saturating_sub(*at) < PATIENCE_NS;
            let is_over = !self.held.readers.contains(&reader(&event));
            if is_over
                || self.is_held(&event)
                || self.held.failed.get(&open_file).is_some_and(has_failed)
            {
                continue;
            }
            if self.end_look_ahead(&event, knob).is_err() {
                self.held.failed.insert(open_file, now);
            }
            return true;
        }
        false
    }

    fn end_look_ahead(&mut self, event: &Event, knob: &Path) -> io::Result<()> {
        let duplicate = self.note_down(event, knob, true)?;
        fadvise(&duplicate, 0, None, Advice::Random)?;
        let held = HeldFile { reader: reader(event), duplicate, since: sys::monotonic_ns() };
        self.held.files.insert(event.open_file, held);
        Ok(())
    }

    /// Its advice is its program's again.
    pub(super) fn let_go(&mut self, open_file: u64) {
        self.held.files.remove(&open_file);
    }
}
