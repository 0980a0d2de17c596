//! Carries out what the controller asks for, on [threads](pool) [per device](lane). Each answer comes back as an input.

mod ask;
mod lane;
mod pool;
mod readers;
mod release;
mod unmap;
mod walk;
mod windows;

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use controller::ids::{BackingId, DeviceNumber, FileKey};
use controller::{Command, Completed, Failure, Input, Nanos};
use linux::sys;
use readahead::behind::Unused;
use rustix::event::{EventfdFlags, eventfd};

use crate::helper::Helper;
use crate::mounted::{Device, Volume};
use crate::observe::PageTables;
use ask::Ask;
use lane::{Change, Common, Lane};
use pool::Job;
use readers::Batch;
use release::Release;
use walk::{List, ReadFiles};
pub(crate) use windows::Journal;
pub use windows::fetching;
#[cfg(any(test, fuzzing))]
pub(crate) use windows::read_any_ledger;

/// Where answers go; anything may be sent from any thread.
#[derive(Clone)]
pub(crate) struct Answers {
    waiting: Arc<Mutex<Vec<(Nanos, Input)>>>,
    /// Readable while any wait.
    wake: Arc<OwnedFd>,
}

impl Answers {
    pub(crate) fn new() -> rustix::io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Answers { waiting: Arc::default(), wake: Arc::new(wake) })
    }

    /// Sends an answer.
    pub(crate) fn send(&self, completed: Completed) {
        self.send_input(Input::Completed(completed));
    }

    /// Sends any input.
    pub(crate) fn send_input(&self, input: Input) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // Its time is taken under the lock, so that times only grow.
        waiting.push((sys::monotonic_ns(), input));
        drop(waiting);
        self.wake();
    }

    /// Has the engine look.
    pub(crate) fn wake(&self) {
        // A counter that is full is readable.
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
    }

    pub(crate) fn send_all(&self, answers: impl IntoIterator<Item = Completed>) {
        answers.into_iter().for_each(|answer| self.send(answer));
    }

    /// Readable while any wait.
    pub(crate) fn readiness(&self) -> &OwnedFd {
        &self.wake
    }

    /// Takes what has come, in order.
    pub(crate) fn take(&self) -> Vec<(Nanos, Input)> {
        let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Lanes, and what lies on them.
pub(crate) struct Executor {
    common: Common,
    lanes: HashMap<BackingId, Lane>,
    volumes: HashMap<DeviceNumber, Arc<Volume>>,
    /// What of a row of reads with one ticket has come so far.
    batch: Option<Batch>,
    is_closed: bool,
}

impl Executor {
    pub(crate) fn new(
        answers: Answers,
        journal: Journal,
        (state, helper): (PathBuf, Helper),
        tables: Option<Arc<dyn PageTables>>,
    ) -> Self {
        let listings = Arc::default();
        let common = Common { answers, journal, state, helper, tables, listings };
        Executor {
            common,
            lanes: HashMap::new(),
            volumes: HashMap::new(),
            batch: None,
            is_closed: false,
        }
    }

    /// A file system was mounted.
    pub(crate) fn add(&mut self, volume: Arc<Volume>, device: &Arc<Device>) {
        let common = &self.common;
        let lane = || Lane::new(Arc::clone(device), common);
        self.lanes.entry(device.backing).or_insert_with(lane);
        self.volumes.insert(volume.mount.dev, volume);
    }

    /// A file system is gone; gives its device if no other lies there.
    pub(crate) fn remove(&mut self, dev: DeviceNumber) -> Option<BackingId> {
        let backing = self.volumes.remove(&dev)?.backing;
        if self.volumes.values().any(|other| other.backing == backing) {
            return None;
        }
        // Its threads end with what they are at.
        self.lanes.remove(&backing);
        Some(backing)
    }

    /// The file systems, by mount point.
    pub(crate) fn volumes(&self) -> impl Iterator<Item = &Volume> {
        self.volumes.values().map(|volume| &**volume)
    }

    /// Carries out these commands, those left out that the source of events sees to.
    pub(crate) fn execute(&mut self, commands: &[Command]) {
        for command in commands {
            self.one(command);
        }
        self.submit();
    }

    fn one(&mut self, command: &Command) {
        match *command {
            Command::Read { ticket, of, span, .. } => {
                if self.batch.as_ref().is_some_and(|batch| batch.ticket != ticket) {
                    self.submit();
                }
                match (&mut self.batch, self.volumes.get(&of.file.dev)) {
                    (Some(batch), _) => batch.spans.push(span),
                    (None, Some(volume)) if !self.is_closed => {
                        let (spans, volume) = (vec![span], Arc::clone(volume));
                        self.batch = Some(Batch { ticket, of, spans, volume });
                    }
                    _ => {
                        let failed = Some(Failure::Refused);
                        self.common.answers.send(Completed::Read { ticket, failed });
                    }
                }
            }
            Command::Describe(stream, of) => self.ask(of.file, Ask::Describe { stream, of }),
            Command::Probe(backing) => self.ask_of(backing, Ask::Probe(backing)),
            Command::Remember(backing, cost) => {
                if let Some(lane) = self.lanes.get(&backing) {
                    lane.learn(&cost);
                }
                self.ask_of(backing, Ask::Remember(cost));
            }
            Command::SetWindow { ticket, target, of, kernel_window, setting, file } => {
                match self.lane_of(file) {
                    Some((lane, volume)) => {
                        let own_pages = kernel_window;
                        lane.set_window(Change { ticket, target, of, own_pages, setting, volume });
                    }
                    None => self.common.answers.send(lane::window_refused(ticket, target)),
                }
            }
            Command::WriteOut { ticket, of, span } => match self.lane_of(of.file) {
                Some((lane, volume)) => lane.write_out(ticket, of, span, volume),
                None => self.common.answers.send(Completed::WroteOut { ticket }),
            },
            Command::Release { ticket, stream, of, span, counted, drops_unused, unmaps } => {
                let unused = if drops_unused { Unused::Go } else { Unused::Stay };
                let release = Release { ticket, stream, of, span, counted, unused, unmaps };
                match self.lane_of(of.file) {
                    Some((lane, volume)) => lane.release(release, volume),
                    None => self.common.answers.send(release.refused()),
                }
            }
            Command::List { ticket, place, tgid } => match self.lane_of(place.key()) {
                Some((lane, volume)) => lane.list(List { ticket, place, tgid, volume }),
                None => self.common.answers.send(Completed::Listed { ticket, listing: None }),
            },
            Command::ForgetListing(listing) => self.common.listings.forget(listing),
            Command::ReadFiles { ticket, dev, tgid, ref files, head_pages, most_bytes } => {
                let files = files.clone();
                match self.lane_of(FileKey { dev, ino: 0 }).filter(|_| !self.is_closed) {
                    Some((lane, volume)) => {
                        let most = (head_pages, most_bytes);
                        lane.read_files(ReadFiles::new(ticket, tgid, files, most, volume));
                    }
                    None => {
                        let (files, bytes) = (files.len() as u32, 0);
                        self.common.answers.send(Completed::FilesRead { ticket, files, bytes });
                    }
                }
            }
            Command::Mark(..)
            | Command::Listen(..)
            | Command::Watch(..)
            | Command::Count(..)
            | Command::LookBehind(_)
            | Command::Touched(_)
            | Command::ForgetStream(_)
            | Command::WatchProcess(..) => {}
        }
    }

    fn submit(&mut self) {
        let Some(batch) = self.batch.take() else { return };
        match self.lanes.get(&batch.volume.backing) {
            Some(lane) => lane.read(batch),
            None => self.common.answers.send_all(batch.refused()),
        }
    }

    fn lane_of(&self, file: FileKey) -> Option<(&Lane, Arc<Volume>)> {
        let volume = self.volumes.get(&file.dev)?;
        Some((self.lanes.get(&volume.backing)?, Arc::clone(volume)))
    }

    fn ask(&self, file: FileKey, ask: Ask) {
        match self.lane_of(file) {
            Some((lane, volume)) => lane.ask(ask, volume),
            None => self.common.answers.send_all(ask.refused()),
        }
    }

    fn ask_of(&self, backing: BackingId, ask: Ask) {
        let volume = self.volumes.values().find(|volume| volume.backing == backing);
        match (self.lanes.get(&backing), volume) {
            (Some(lane), Some(volume)) => lane.ask(ask, Arc::clone(volume)),
            _ => self.common.answers.send_all(ask.refused()),
        }
    }

    /// Reads nothing ahead any more, and waits for what is under way, for so long at most.
    pub(crate) fn close(&mut self, most: Duration) {
        self.is_closed = true;
        let until = Instant::now() + most;
        for lane in self.lanes.values() {
            lane.wait_for_reads(until.saturating_duration_since(Instant::now()));
        }
    }

    /// Sets no window any more, and gives back those that were set, within so long at most. Returns the ledger, with what
    /// could not be given back.
    pub(crate) fn give_back(&mut self, most: Duration) -> Journal {
        let left = self.common.journal.hand_over();
        let until = Instant::now() + most;
        let (done, inbox): (Sender<()>, _) = mpsc::channel();
        self.lanes.values().for_each(|lane| lane.end_windows(until, &done));
        drop(done);
        for _ in 0..self.lanes.len() {
            let rest = until.saturating_duration_since(Instant::now());
            if inbox.recv_timeout(rest).is_err() {
                break;
            }
        }
        left
    }

    /// What nobody is about to give back, as inputs.
    pub(crate) fn left_behind(&self) -> Vec<Completed> {
        self.common.journal.left_behind()
    }
}
