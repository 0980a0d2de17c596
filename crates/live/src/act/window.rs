//! Giving one open file a window of its own, on a stock kernel.
//!
//! ```text
//!   bdi read_ahead_kb  128 ----> 4096 ------------------> 128
//!                              |                       ^
//!                              +-- fadvise(NORMAL) ----+   on a duplicate of the reader's own
//!                                  copies the window       descriptor: the same open file
//! ```
//!
//! The kernel then reads ahead by itself, in the reader's memory cgroup; with a larger window than the
//! device's for a reader that is to be charged, with a smaller one under thrashing. For the microseconds
//! in between, files opened by others inherit that window. The number is borrowed for that long
//! ([`linux::knob`]): nobody else of ours sets it, and it is put back at the next start after a kill.
//!
//! What open files were given is taken back when it has served, when bowwave ends, and at the next
//! start if it was killed ([`Given`]); where that cannot be done at the moment, again and again.

mod held;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use linux::knob;
use readahead::{DeviceNumber, PAGE_BYTES};

use super::given::{self, Given, Ledger};
use super::narrow::{self, Narrowed};
use super::setting::Setting;
use crate::observe::Event;
use held::Held;

/// Bounds are set no more often than this: each takes some 60 microseconds, in which files opened by
/// others inherit it.
const PAUSE_NS: u64 = 1_000_000;

/// Open files that are remembered; further ones are bounded when they are heard of again.
const MOST_HEARD: usize = 4096;

/// An open file that could not be given a window, or has not kept it, is left alone for so long; one
/// not heard of for so long is not being read.
const PATIENCE_NS: u64 = 10_000_000_000;

/// Of the windows that are owed so many are tried in a second, which takes a few milliseconds.
const MOST_RETRIES: usize = 64;

/// Sets windows of single open files.
pub(crate) struct Windows {
    ledger: Ledger,
    /// To be given back, which could not be done, by their identities.
    owed: VecDeque<u64>,
    setting: Setting,
    /// The last event of each open file heard of lately.
    heard: HashMap<u64, Event>,
    /// When an open file was last bounded, or that was tried, and to how many pages.
    bounded: HashMap<u64, (u64, u32)>,
    /// To be bounded, by their identities, and to how many pages.
    waiting: VecDeque<(u64, u32)>,
    /// Pages that all were bounded to, and those of a process.
    bound: Option<u32>,
    of_process: HashMap<u32, u32>,
    /// Narrowed each for itself, as they are read at random.
    narrowed: Narrowed,
    held: Held,
    last_at: u64,
}

impl Windows {
    /// Puts back what earlier runs that were killed had left, those that are still at work excepted.
    pub(crate) fn recover(state: &Path) -> Self {
        // The number first: what is given back copies it.
        knob::recover(state);
        let mut windows = Windows {
            ledger: Ledger::open(given::own_ledger(state)),
            owed: VecDeque::new(),
            setting: Setting::new(state),
            heard: HashMap::new(),
            bounded: HashMap::new(),
            waiting: VecDeque::new(),
            bound: None,
            of_process: HashMap::new(),
            narrowed: Narrowed::default(),
            held: Held::default(),
            last_at: 0,
        };
        for path in given::left_behind(state) {
            windows.ledger.adopt(&path);
        }
        windows.take_back_all();
        windows
    }

    /// Gives the open file that `event` came through a window of `kb` KiB, until bowwave ends.
    ///
    /// # Errors
    /// If the program has given advice that setting a window would clear, the reader has no such
    /// descriptor any more or several, or a file of `/sys` or the journal cannot be written; the setting
    /// is then as before.
    pub(crate) fn lend(&mut self, event: &Event, knob: &Path, kb: u64) -> io::Result<()> {
        if event.advised_random || event.advised_noreuse {
            return Err(io::Error::other("the program has given advice of its own"));
        }
        self.give(event, knob, kb, false)
    }

    /// Notes an open file that may have to be bounded. One whose program has given advice is the
    /// program's affair: setting a window would clear that.
    pub(crate) fn hear(&mut self, event: &Event) {
        self.narrowed.hear(event);
        if self.is_held(event) && !self.yields_to_advice(event) {
            return;
        }
        let advised_random = event.advised_random && !self.is_our_advice(event);
        let event = &Event { advised_random, ..*event };
        let is_cleared_by_us = event.advised_random || event.advised_noreuse;
        let is_sequential = event.advised_sequential && !self.setting.was_set(event.now);
        if is_cleared_by_us || is_sequential {
            self.heard.remove(&event.open_file);
            // A window twice the device's may be one of ours, too, if it is no bound.
            self.ledger.strike(event.open_file, is_cleared_by_us);
            self.narrowed.remove(event);
            self.ledger.strike(narrow::identity(event), true);
        }
        if !is_cleared_by_us && event.open_file != 0 && self.heard.len() < MOST_HEARD {
            let event = Event { advised_sequential: is_sequential, ..*event };
            self.heard.insert(event.open_file, event);
            self.hear_held(&event);
        }
    }

    /// Has the kernel read no more than `most` pages at a time for the open file that `event` came
    /// through, and, if that is news, for all others of its process; gives it its window back once it
    /// may have that again. Bounding is done by [`Windows::go_on`].
    pub(crate) fn fit(&mut self, event: &Event, most: Option<u32>) {
        let before = self.of_process.insert(event.tgid, most.unwrap_or(u32::MAX));
        match most.filter(|most| is_wider(event, *most)) {
            Some(pages) if before.is_none_or(|before| pages < before) => {
                self.bound_those(pages, |heard| heard.tgid == event.tgid);
            }
            Some(pages) if !self.is_tried(event.open_file, pages, event.now) => {
                self.waiting.push_front((event.open_file, pages));
            }
            Some(_) => {}
            None if self.is_time(event.now) && !self.is_held(event) => {
                let may_have = |pages| most.is_none_or(|most| pages <= most);
                let may_widen = self.ledger.may_widen(event.open_file, may_have);
                if may_widen && !self.owed.contains(&event.open_file) {
                    self.last_at = event.now;
                    self.take_back(event.open_file);
                }
            }
            None => {}
        }
    }

    /// There is thrashing: no open file heard of lately is to have a window of more than `pages`. What
    /// is in memory already survives if nothing more comes in. Does nothing if that is no news.
    pub(crate) fn bound_all(&mut self, pages: u32) {
        if self.bound.is_some_and(|bound| bound <= pages) {
            return;
        }
        self.bound = Some(pages);
        self.bound_those(pages, |_| true);
    }

    /// The kernel's window of what `event` came through, in pages.
    pub(crate) fn window_of(&self, event: &Event) -> u32 {
        self.narrowed.window_of(event)
    }

    /// Narrows the window of the open file that was mapped, at once, or gives it back where it is to have
    /// more `pages`; tells whether one was narrowed. Where that cannot be done it is tried again after
    /// a while.
    pub(crate) fn fit_one(&mut self, event: &Event, knob: &Path, pages: u32) -> bool {
        if pages >= self.window_of(event) {
            if self.narrowed.remove(event) {
                self.widen(narrow::identity(event));
            }
            return false;
        }
        let is_recent = self.narrowed.is_tried(event, event.now.saturating_sub(PATIENCE_NS));
        if !event.mapped || is_recent || !self.is_time(event.now) || self.is_held_by(event) {
            return false;
        }
        self.last_at = event.now;
        let kb = (u64::from(pages) * PAGE_BYTES / 1024).max(1);
        let open_file = Event { open_file: narrow::identity(event), ..*event };
        let is_narrow = self.give(&open_file, knob, kb, true).is_ok();
        self.narrowed.note(event, is_narrow.then_some(pages));
        is_narrow
    }

    fn widen(&mut self, identity: u64) {
        if self.ledger.may_widen(identity, |_| true) {
            self.take_back(identity);
        }
    }

    fn bound_those(&mut self, pages: u32, which: impl Fn(&Event) -> bool) {
        let wide = self.heard.values().filter(|event| is_wider(event, pages) && which(event));
        self.waiting.extend(wide.map(|event| (event.open_file, pages)));
    }

    fn is_time(&self, now: u64) -> bool {
        now.saturating_sub(self.last_at) >= PAUSE_NS
    }

    fn is_tried(&self, open_file: u64, pages: u32, now: u64) -> bool {
        let tried = self.bounded.get(&open_file);
        tried.is_some_and(|(at, to)| *to <= pages && now.saturating_sub(*at) < PATIENCE_NS)
    }

    /// Bounds the next open file, if it is time; gives how many were. One that cannot be bounded reads
    /// as it did.
    pub(crate) fn go_on<'a>(
        &mut self,
        now: u64,
        knob_of: impl Fn(DeviceNumber) -> Option<&'a Path>,
    ) -> u64 {
        if self.is_time(now) && self.release_next(now) {
            self.last_at = now;
        }
        while self.is_time(now)
            && let Some((open_file, pages)) = self.waiting.pop_front()
        {
            let Some(event) = self.heard.get(&open_file).copied() else { continue };
            let Some(knob) = knob_of(event.file.dev) else { continue };
            // Who is held reads nothing ahead, which is less.
            if !is_wider(&event, pages)
                || self.is_tried(open_file, pages, now)
                || self.is_held(&event)
            {
                continue;
            }
            self.last_at = now;
            self.bounded.insert(open_file, (now, pages));
            let kb = (u64::from(pages) * PAGE_BYTES / 1024).max(1);
            return u64::from(self.give(&event, knob, kb, true).is_ok());
        }
        if self.is_time(now) && self.hold_next(now, knob_of) {
            self.last_at = now;
        }
        0
    }

    /// Forgets what is over; `bound` is what thrashing leaves to all windows.
    pub(crate) fn tidy(&mut self, now: u64, bound: Option<u32>) {
        let is_fresh = |at: u64| now.saturating_sub(at) < PATIENCE_NS;
        self.bounded.retain(|_, (at, _)| is_fresh(*at));
        self.held.forget(is_fresh);
        self.heard.retain(|_, event| is_fresh(event.now));
        self.bound = self.bound.and(bound);
        let at_work: HashSet<u32> = self.heard.values().map(|event| event.tgid).collect();
        self.of_process.retain(|tgid, _| at_work.contains(tgid));
        let mut over = Vec::new();
        self.narrowed
            .forget_before(now.saturating_sub(PATIENCE_NS), |identity| over.push(identity));
        over.into_iter().for_each(|identity| self.widen(identity));
        let tried: Vec<u64> = self.owed.drain(..self.owed.len().min(MOST_RETRIES)).collect();
        tried.into_iter().for_each(|open_file| self.take_back(open_file));
        self.ledger.tidy(now);
    }

    fn give(&mut self, event: &Event, knob: &Path, kb: u64, is_bound: bool) -> io::Result<()> {
        let (file, _) = self.note_down(event, knob, is_bound)?;
        self.setting.set(&file, knob, kb)?;
        self.owed.retain(|open_file| *open_file != event.open_file);
        Ok(())
    }

    /// The open file that is about to be changed, and what it was, which is in the ledger.
    fn note_down(
        &mut self,
        event: &Event,
        knob: &Path,
        is_bound: bool,
    ) -> io::Result<(OwnedFd, Given)> {
        let (file, number) = self.setting.reach(event)?;
        let given = Given::to(event, number, knob, is_bound)?;
        let mut others = self.owed.iter().filter(|owed| **owed != event.open_file);
        if others.any(|owed| self.ledger.is_for(*owed, &given)) {
            // What it has now is not its own.
            return Err(io::Error::other("it is owed its window since an earlier run"));
        }
        Ok((file, self.ledger.note(event.open_file, given)?))
    }

    /// Gives an open file its window back and strikes it off, also if its process has closed it; where
    /// that cannot be done now, it is owed.
    fn take_back(&mut self, open_file: u64) {
        let result = match (self.held.get(open_file), self.ledger.get(open_file)) {
            // Its reader may have ended, and the ledger forgotten it.
            (Some((file, given)), _) => self.setting.set(file, &given.knob, given.kb_before),
            (None, Some(given)) => self.setting.give_back(given),
            (None, None) => return,
        };
        match result {
            Err(error) if !given::is_gone(&error) => self.owed.push_back(open_file),
            _ => {
                self.ledger.strike(open_file, true);
                self.bounded.remove(&open_file);
                self.let_go(open_file);
            }
        }
    }

    fn take_back_all(&mut self) {
        self.owed.clear();
        let all: HashSet<u64> = self.ledger.all().into_iter().chain(self.held.all()).collect();
        all.into_iter().for_each(|open_file| self.take_back(open_file));
        self.ledger.write_down();
    }
}

/// Whether it is to be bounded to so many pages; a program that has announced sequential reading keeps its window.
fn is_wider(event: &Event, pages: u32) -> bool {
    event.kernel_window > pages && !event.advised_sequential
}

impl Drop for Windows {
    fn drop(&mut self) {
        self.take_back_all();
        if !self.owed.is_empty() {
            let number = self.owed.len();
            eprintln!(
                "bowwave: {number} open files keep the window they were given, as it could not be \
                 taken back; the next start of bowwave does that"
            );
        }
    }
}
