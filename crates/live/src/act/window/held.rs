//! Readers whose process writes faster than the disk takes it, or did until a moment ago.
//!
//! ```text
//!   written, not on the disk:   too much ------> fadvise(RANDOM): reads what is asked for, no more
//!                               a part of it --> its window again
//! ```
//!
//! A disk with a head prefers what it can read on to what it should write, so that a copy fills memory with
//! pages to be written. Without the kernel's look-ahead its reader waits for each request, and the disk writes
//! for some time at once; to and fro between the two it would do less of both. No other file gets that
//! advice, not even for a moment.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::path::Path;

use rustix::fs::{Advice, fadvise};

use super::Windows;
use crate::observe::{DeviceNumber, Event};

/// Who is held back.
#[derive(Default)]
pub(super) struct Held {
    processes: HashSet<u32>,
    /// Open files with the advice, and their processes.
    files: HashMap<u64, u32>,
    /// To be advised, and to be given their windows back.
    begun: VecDeque<u64>,
    over: VecDeque<u64>,
}

impl Windows {
    /// These processes shall read without look-ahead, and no others. [`Windows::go_on`] does it.
    pub(crate) fn hold_back(&mut self, processes: &HashSet<u32>) {
        let held = &mut self.held;
        if held.processes == *processes {
            return;
        }
        let is_new = |tgid: &u32| processes.contains(tgid) && !held.processes.contains(tgid);
        let new = self.heard.values().filter(|event| is_new(&event.tgid));
        held.begun.extend(new.map(|event| event.open_file));
        let over = held.files.iter().filter(|(_, tgid)| !processes.contains(tgid));
        held.over.extend(over.map(|(open_file, _)| *open_file));
        held.processes.clone_from(processes);
    }

    /// Whether its random advice is ours.
    pub(crate) fn is_held(&self, event: &Event) -> bool {
        self.held.files.contains_key(&event.open_file)
    }

    /// One that a process has begun to read while it is held back.
    pub(super) fn hear_held(&mut self, event: &Event) {
        let held = &mut self.held;
        let is_known = held.files.contains_key(&event.open_file);
        if !is_known
            && held.processes.contains(&event.tgid)
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
            let is_over = |tgid: &u32| !self.held.processes.contains(tgid);
            if self.held.files.get(&open_file).is_some_and(is_over) {
                self.take_back(open_file);
                return true;
            }
        }
        while let Some(open_file) = self.held.begun.pop_front() {
            let Some(event) = self.heard.get(&open_file).copied() else { continue };
            let Some(knob) = knob_of(event.file.dev) else { continue };
            let is_over = !self.held.processes.contains(&event.tgid);
            if !is_over && !self.is_held(&event) && !self.is_tried(open_file, 0, now) {
                self.bounded.insert(open_file, (now, 0));
                if self.end_look_ahead(&event, knob).is_ok() {
                    self.held.files.insert(open_file, event.tgid);
                }
                return true;
            }
        }
        false
    }

    fn end_look_ahead(&mut self, event: &Event, knob: &Path) -> io::Result<()> {
        let file = self.note_down(event, knob, true)?;
        Ok(fadvise(file, 0, None, Advice::Random)?)
    }

    /// Its advice is its program's again.
    pub(super) fn let_go(&mut self, open_file: u64) {
        self.held.files.remove(&open_file);
    }
}
