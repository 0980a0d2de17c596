//! Carries out the controller's commands on the [threads](crate::pool) of each device's [lane]. Each answer comes back
//! as an input.
//!
//! ```text
//!   engine's thread                           threads of lanes
//!   Command --> Executor --> a lane's pool --> do it
//!   Input <--- Answers (queue, eventfd) <----- Completed
//! ```

mod job;
mod lane;
mod opening;
mod questions;
mod readers;
mod release;
mod remembered;
mod unmap;
mod walk;
mod windows;

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use controller::ids::{BackingId, DeviceNumber, FileRef, Ticket};
use controller::{Command, Completed, Input, Nanos};
use ebpf::observe::PageTables;
use linux::mounts::Disk;
use linux::sys;
use readahead::behind::{Span, Unused};
use rustix::event::{EventfdFlags, eventfd};

use crate::helper::Helper;
use crate::mounted::{Device, Volume};
use job::Job;
use lane::{Common, Lane};
use readers::Batch;
use release::Release;
use remembered::ReadRemembered;
use walk::{List, ReadFiles};
pub(crate) use windows::Journal;
pub use windows::RecoveryError;
use windows::WindowChange;
pub use windows::fetching;
#[cfg(any(test, fuzzing))]
pub(crate) use windows::read_any_ledger;

/// A queue of inputs for the engine; any thread may send.
#[derive(Clone)]
pub(crate) struct Answers {
    waiting: Arc<Mutex<Vec<(Nanos, Input)>>>,
    /// An eventfd, readable while inputs wait.
    wake: Arc<OwnedFd>,
}

impl Answers {
    pub(crate) fn new() -> rustix::io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Answers { waiting: Arc::default(), wake: Arc::new(wake) })
    }

    pub(crate) fn send(&self, completed: Completed) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // Read the clock under the lock, so that times never decrease.
        waiting.push((sys::monotonic_ns(), Input::Completed(completed)));
        drop(waiting);
        self.wake();
    }

    /// Wakes the engine.
    pub(crate) fn wake(&self) {
        // Writing fails only if the counter is full, and the eventfd is readable then.
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
    }

    pub(crate) fn send_all(&self, answers: impl IntoIterator<Item = Completed>) {
        answers.into_iter().for_each(|answer| self.send(answer));
    }

    /// Readable while inputs wait.
    pub(crate) fn readiness(&self) -> &OwnedFd {
        &self.wake
    }

    /// Takes all inputs, in order.
    pub(crate) fn take(&self) -> Vec<(Nanos, Input)> {
        let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The lanes of all devices, and the file systems on them.
pub(crate) struct Executor {
    common: Common,
    /// The lanes' threads use these while there is an executor.
    _tables: Option<Arc<dyn PageTables>>,
    lanes: HashMap<BackingId, Lane>,
    volumes: HashMap<DeviceNumber, Arc<Volume>>,
    /// Collects successive reads with one ticket.
    batch: Option<Batch>,
    /// No more read-ahead.
    is_closed: bool,
}

impl Executor {
    pub(crate) fn new(
        answers: Answers,
        journal: Journal,
        state: PathBuf,
        helper: Helper,
        tables: Option<Arc<dyn PageTables>>,
    ) -> Self {
        let listings = Arc::default();
        let lent = tables.as_ref().map(Arc::downgrade);
        let common = Common { answers, journal, state, helper, tables: lent, listings };
        Executor {
            common,
            _tables: tables,
            lanes: HashMap::new(),
            volumes: HashMap::new(),
            batch: None,
            is_closed: false,
        }
    }

    /// Adds a file system, and a lane if its device is new.
    pub(crate) fn add(&mut self, volume: Arc<Volume>, device: Arc<Device>) {
        let common = &self.common;
        self.lanes.entry(device.backing).or_insert_with(|| Lane::new(device, common));
        self.volumes.insert(volume.mount.dev, volume);
    }

    /// Removes a file system, and its lane if no other file system is left on the device.
    pub(crate) fn remove(&mut self, dev: DeviceNumber) {
        if let Some((lane, _)) = self.lane_of(self.volumes.get(&dev)) {
            lane.restore_windows_of(dev);
        }
        self.volumes.remove(&dev);
        // Threads of a lane that goes finish their jobs, restore all windows and end.
        self.lanes.retain(|id, _| self.volumes.values().any(|volume| volume.backing == *id));
    }

    /// A device, if a managed file system is on it.
    pub(crate) fn device(&self, backing: BackingId) -> Option<&Device> {
        Some(self.lanes.get(&backing)?.device())
    }

    /// The disks that serve a device's requests.
    pub(crate) fn members(&self, backing: BackingId) -> &[Disk] {
        self.device(backing).map_or(&[], |device| &device.members)
    }

    pub(crate) fn volumes(&self) -> impl Iterator<Item = &Volume> {
        self.volumes.values().map(|volume| &**volume)
    }

    /// Carries out these commands, except those about which events to report and those about lists of starts.
    pub(crate) fn execute(&mut self, commands: &[Command]) {
        for command in commands {
            self.execute_one(command);
        }
        self.submit_batch();
    }

    fn execute_one(&mut self, command: &Command) {
        match *command {
            Command::Read { ticket, of, span, .. } => self.read(ticket, of, span),
            Command::Describe(stream, of) => self.submit(of.file.dev, Job::Describe { stream, of }),
            Command::Probe(backing) => self.ask_device(backing, Job::Probe(backing, None)),
            Command::Remember(backing, cost) => self.ask_device(backing, Job::Remember(cost)),
            Command::SetWindow { ticket, target, of, kernel_window: own_pages, setting, file } => {
                let change = WindowChange { ticket, target, of, own_pages, setting };
                match self.lane_of(self.volumes.get(&file.dev)) {
                    Some((lane, volume)) => lane.set_window(change, volume),
                    None => self.common.answers.send(change.refused()),
                }
            }
            Command::WriteOut { ticket, of, span } => {
                self.submit(of.file.dev, Job::WriteOut { ticket, of, span })
            }
            Command::Release { ticket, stream, of, span, counted, drops_unused, unmaps } => {
                let unused = if drops_unused { Unused::Go } else { Unused::Stay };
                let release = Release { ticket, stream, of, span, counted, unused, unmaps };
                self.submit(of.file.dev, Job::Release(release));
            }
            Command::List { ticket, place, tgid } => {
                self.submit(place.key().dev, Job::List(List { ticket, place, tgid }))
            }
            Command::ForgetListing(listing) => self.common.listings.forget(listing),
            Command::ReadFiles { ticket, dev, tgid, ref files, head, most_bytes } => {
                let files = files.clone();
                let job = ReadFiles { ticket, tgid, files, head, most_bytes };
                self.submit(dev, Job::ReadFiles(job));
            }
            Command::ReadRemembered { ticket, dev, tgid, ref files } => {
                let job = ReadRemembered { ticket, tgid, files: files.clone() };
                self.submit(dev, Job::ReadRemembered(job));
            }
            Command::Mark(..)
            | Command::Listen(..)
            | Command::Watch(..)
            | Command::Count(..)
            | Command::LookBehind(_)
            | Command::Touched(_)
            | Command::ForgetStream(_)
            | Command::WatchProcess(..)
            | Command::Recall(_)
            | Command::KeepStart { .. } => {}
        }
    }

    /// Adds to the batch of this ticket, or begins another one.
    fn read(&mut self, ticket: Ticket, of: FileRef, span: Span) {
        if self.batch.as_ref().is_some_and(|batch| batch.ticket != ticket) {
            self.submit_batch();
        }
        match &mut self.batch {
            Some(batch) => batch.spans.push(span),
            None => self.batch = Some(Batch { ticket, of, spans: vec![span] }),
        }
    }

    fn submit_batch(&mut self) {
        if let Some(batch) = self.batch.take() {
            self.submit(batch.of.file.dev, Job::Read(batch));
        }
    }

    /// Asks about a device, by way of any of its file systems.
    fn ask_device(&self, backing: BackingId, question: Job) {
        let volume = self.volumes.values().find(|volume| volume.backing == backing);
        self.submit_on(volume, question);
    }

    /// Gives a job to the lane of a file system. Refuses it if that is gone, or if it is too late to read ahead.
    fn submit(&self, dev: DeviceNumber, job: Job) {
        self.submit_on(self.volumes.get(&dev), job);
    }

    fn submit_on(&self, volume: Option<&Arc<Volume>>, job: Job) {
        let is_wanted = !(self.is_closed && job.reads_ahead());
        match self.lane_of(volume).filter(|_| is_wanted) {
            Some((lane, volume)) => lane.submit(job, volume),
            None => self.common.answers.send_all(job.refused()),
        }
    }

    fn lane_of(&self, volume: Option<&Arc<Volume>>) -> Option<(&Lane, Arc<Volume>)> {
        let volume = volume?;
        Some((self.lanes.get(&volume.backing)?, Arc::clone(volume)))
    }

    /// Stops reading ahead, and waits up to `timeout` for reads under way.
    pub(crate) fn close(&mut self, timeout: Duration) {
        self.is_closed = true;
        let until = Instant::now() + timeout;
        self.lanes.values().for_each(|lane| lane.wait_for_reads(until));
    }

    /// Stops setting windows, and restores those that were set, for up to `timeout`. Returns the journal for the next
    /// engine, with the windows that could not be restored.
    pub(crate) fn restore_windows(&mut self, timeout: Duration) -> Journal {
        let journal = self.common.journal.hand_over();
        let until = Instant::now() + timeout;
        let (done, inbox): (Sender<()>, _) = mpsc::channel();
        self.lanes.values().for_each(|lane| lane.restore_windows(until, &done));
        drop(done);
        for _ in 0..self.lanes.len() {
            let left = until.saturating_duration_since(Instant::now());
            if inbox.recv_timeout(left).is_err() {
                break;
            }
        }
        journal
    }

    /// The windows that no thread will restore.
    pub(crate) fn orphaned_windows(&self) -> Vec<Completed> {
        self.common.journal.orphans()
    }
}
