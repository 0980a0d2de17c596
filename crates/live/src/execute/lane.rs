//! A lane: the threads of one device. A device or server that does not answer holds up only its own lane.
//!
//! ```text
//!   Read ---------------------> up to 16 readers     (a full device queue blocks the call)
//!   Release ------------------> 1 thread             (opening may wait for a server)
//!   WriteOut -----------------> 1 thread             (writing may wait for the device)
//!   List ---------------------> up to 8 threads      (opening may wait for the device)
//!   ReadFiles, ReadRemembered > up to 8 threads      (the same)
//!   Describe, Remember -------> 1 thread
//!   Probe --------------------> 1 thread             (waits until the disk is idle)
//!   SetWindow ----------------> 1 thread             (its helper process may wait for a server)
//! ```
//!
//! Threads start when they are needed and end when they are idle, as most file systems are read rarely.

use std::io::{self, PipeWriter};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use controller::ids::DeviceNumber;
use controller::{Completed, Origin};
use ebpf::observe::PageTables;

use super::job::Job;
use super::readers::{self, READERS, Submission};
use super::walk::{self, Listings};
use super::windows::{Journal, WindowChange, Windows};
use super::{Answers, opening, questions};
use crate::devices;
use crate::helper::Helper;
use crate::mounted::{Device, Volume};
use crate::pool::{ONE, Pool, Size, Worker};

/// While bowwave holds duplicates of open files, check this often whether their readers have closed them.
const KEPT_OPEN_INTERVAL: Duration = Duration::from_millis(20);

/// Otherwise, tidy the ledger this often.
const TIDY_INTERVAL: Duration = Duration::from_secs(1);

/// A thread that ends restores windows for this long. Nobody waits for it.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) struct Lane {
    device: Arc<Device>,
    submission: Arc<Submission>,
    readers: Pool<LaneWorker>,
    releases: Pool<LaneWorker>,
    writes: Pool<LaneWorker>,
    lists: Pool<LaneWorker>,
    files: Pool<LaneWorker>,
    questions: Pool<LaneWorker>,
    /// Apart from the questions: it may wait long for an idle disk.
    probes: Pool<LaneWorker>,
    /// While this is open, somebody waits for the measurement.
    probed: Mutex<Option<PipeWriter>>,
    windows: Pool<Windows>,
}

/// What all lanes share.
#[derive(Clone)]
pub(super) struct Common {
    pub(super) answers: Answers,
    pub(super) journal: Journal,
    pub(super) state: PathBuf,
    pub(super) helper: Helper,
    /// `None` without drop-behind. Weak, so that a thread that hangs keeps no tables in the kernel.
    pub(super) tables: Option<Weak<dyn PageTables>>,
    pub(super) listings: Arc<Listings>,
}

impl Lane {
    pub(super) fn new(device: Arc<Device>, common: &Common) -> Self {
        let submission = Arc::new(Submission::default());
        submission.set_cost(&device.facts.cost);
        let worker = LaneWorker {
            device: device.clone(),
            submission: submission.clone(),
            common: common.clone(),
        };
        let pool = |name: &'static str, size: Size| {
            let worker = worker.clone();
            Pool::new(name, size, common.answers.clone(), move || worker.clone())
        };
        let (journal, helper) = (common.journal.clone(), common.helper.clone());
        let windows = move || Windows::new(journal.clone(), helper.clone());
        Lane {
            device,
            submission,
            readers: pool("bowwave-reader", READERS),
            releases: pool("bowwave-release", ONE),
            writes: pool("bowwave-writeout", ONE),
            lists: pool("bowwave-list", walk::THREADS),
            files: pool("bowwave-files", walk::THREADS),
            questions: pool("bowwave-ask", ONE),
            probes: pool("bowwave-probe", ONE),
            probed: Mutex::new(None),
            windows: Pool::new("bowwave-window", ONE, common.answers.clone(), windows),
        }
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// Gives a job, which is about files of `volume`, to a thread.
    pub(super) fn submit(&self, mut job: Job, volume: Arc<Volume>) {
        match &mut job {
            // Set it now, not when the job's turn comes: a measurement must have the last word.
            Job::Remember(cost) => self.submission.set_cost(cost),
            Job::Probe(_, until) => {
                let (reader, writer) = io::pipe().ok().unzip();
                *until = reader;
                *self.probed.lock().unwrap_or_else(PoisonError::into_inner) = writer;
            }
            _ => {}
        }
        let pool = match job {
            Job::Read(_) => &self.readers,
            Job::Release(_) => &self.releases,
            Job::WriteOut { .. } => &self.writes,
            Job::List(_) => &self.lists,
            Job::ReadFiles(_) | Job::ReadRemembered(_) => &self.files,
            Job::Describe { .. } | Job::Remember(_) => &self.questions,
            Job::Probe(..) => &self.probes,
        };
        pool.submit((job, volume));
    }

    /// Gives a change, which is about a file of `volume`, to the thread that changes windows.
    pub(super) fn set_window(&self, change: WindowChange, volume: Arc<Volume>) {
        self.windows.submit(WindowJob::Set(change, volume));
    }

    /// Waits until then for reads under way, those of whole files included.
    pub(super) fn wait_for_reads(&self, until: Instant) {
        for pool in [&self.readers, &self.files] {
            pool.wait(until.saturating_duration_since(Instant::now()));
        }
    }

    /// Restores the windows of files on this file system, which is unmounted. Programs may still have some open, as
    /// after `umount -l`.
    pub(super) fn restore_windows_of(&self, dev: DeviceNumber) {
        if self.windows.is_running() {
            self.windows.submit(WindowJob::RestoreOf(dev));
        }
    }

    /// Restores the windows on this device, as far as possible by `until`, and then sends `done`.
    pub(super) fn restore_windows(&self, until: Instant, done: &Sender<()>) {
        if self.windows.is_running() {
            self.windows.submit(WindowJob::RestoreAll(until, done.clone()));
        } else {
            // A thread ends only when it has no window to restore.
            let _ = done.send(());
        }
    }
}

/// A thread for all jobs except changes of windows.
#[derive(Clone)]
struct LaneWorker {
    device: Arc<Device>,
    submission: Arc<Submission>,
    common: Common,
}

impl Worker for LaneWorker {
    type Job = (Job, Arc<Volume>);

    fn refused((job, _): &Self::Job) -> Option<Completed> {
        job.refused()
    }

    fn run(&mut self, (job, volume): Self::Job) -> Option<Completed> {
        let LaneWorker { device, submission, common } = self;
        let (volume, mount) = (&*volume, &volume.mount);
        Some(match job {
            Job::Read(batch) => {
                let failed = batch.run(volume, submission).err().as_ref().map(readers::failure);
                Completed::Read { ticket: batch.ticket, failed }
            }
            Job::List(job) => walk::list::run(&job, mount, &common.listings),
            Job::ReadFiles(job) => {
                walk::read::run(&job, volume, &common.listings, submission.is_serial())
            }
            Job::ReadRemembered(job) => job.run(volume, submission.is_serial()),
            Job::Release(release) => match common.tables.as_ref().and_then(Weak::upgrade) {
                Some(tables) => release.run(mount, &*tables),
                None => release.refused(),
            },
            Job::WriteOut { ticket, of, span } => {
                let reached = linux::handles::reach(of, mount);
                if let Ok(file) = reached.and_then(|reached| opening::open(&reached)) {
                    // If this fails, the kernel writes the pages later anyway.
                    let _ = linux::sys::write_out(file.as_fd(), span.start, span.pages());
                }
                Completed::WroteOut { ticket }
            }
            Job::Describe { stream, of } => {
                Completed::Described { stream, attributes: questions::describe(of, mount) }
            }
            Job::Probe(backing, until) => {
                let measured = device.disk.as_ref().zip(until);
                let cost = measured.and_then(|(disk, until)| {
                    questions::probe(disk, until, &common.helper, &common.state)
                });
                cost.iter().for_each(|cost| submission.set_cost(cost));
                Completed::Probed { backing, cost }
            }
            Job::Remember(cost) => {
                devices::note(device.disk.as_ref()?, &cost, Origin::Learned, &common.state);
                return None;
            }
        })
    }
}

/// A job for the thread that changes windows.
pub(super) enum WindowJob {
    Set(WindowChange, Arc<Volume>),
    /// Restore the windows of files on that file system.
    RestoreOf(DeviceNumber),
    /// Restore all windows until that time, then send.
    RestoreAll(Instant, Sender<()>),
}

impl Worker for Windows {
    type Job = WindowJob;

    fn refused(job: &WindowJob) -> Option<Completed> {
        match job {
            WindowJob::Set(change, _) => Some(change.refused()),
            WindowJob::RestoreOf(_) | WindowJob::RestoreAll(..) => None,
        }
    }

    fn run(&mut self, job: WindowJob) -> Option<Completed> {
        match job {
            WindowJob::Set(change, volume) => Some(self.set(&change, &volume)),
            WindowJob::RestoreOf(dev) => {
                self.restore_of(dev);
                None
            }
            WindowJob::RestoreAll(until, done) => {
                self.restore_all(until);
                let _ = done.send(());
                None
            }
        }
    }

    fn upkeep_interval(&self) -> Duration {
        if self.keeps_any_open() { KEPT_OPEN_INTERVAL } else { TIDY_INTERVAL }
    }

    fn upkeep(&mut self) -> Vec<Completed> {
        self.restore_closed()
    }

    fn may_end(&self) -> bool {
        Windows::may_end(self)
    }

    fn finish(&mut self) {
        self.restore_all(Instant::now() + RESTORE_TIMEOUT);
    }
}
