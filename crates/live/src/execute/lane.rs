//! A lane: the threads of one device. A device or server that does not answer holds up only its own lane.
//!
//! ```text
//!   Read ------------------> up to 16 readers     (a full device queue blocks the call)
//!   Release ---------------> 1 thread             (opening may wait for a server)
//!   WriteOut --------------> 1 thread             (writing may wait for the device)
//!   List, ReadFiles -------> up to 8 threads each (opening may wait for the device)
//!   Describe, Probe -------> 1 thread
//!   SetWindow -------------> 1 thread             (its helper process may wait for a server)
//! ```
//!
//! Threads start when they are needed and end when they are idle, as most file systems are read rarely.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use controller::ids::{FileRef, Target, Ticket};
use controller::{Attributes, Completed, Failure, WindowOutcome, WindowSetting};
use readahead::DeviceCost;
use readahead::behind::Span;

use super::Answers;
use super::pool::{Job, ONE, Pool, Worker};
use super::questions::Question;
use super::readers::{Batch, READERS, Reader, Submission};
use super::release::Release;
use super::walk::{self, Ahead, FilesReader, List, Lister, Listings};
use super::windows::{Journal, Windows};
use crate::helper::Helper;
use crate::mounted::{Device, Volume};
use crate::observe::PageTables;

/// While bowwave holds duplicates of open files, check this often whether their readers have closed them.
const KEPT_OPEN_INTERVAL: Duration = Duration::from_millis(20);

/// Otherwise, tidy the ledger this often.
const TIDY_INTERVAL: Duration = Duration::from_secs(1);

/// A thread that ends restores windows for this long. Nobody waits for it.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) struct WindowChange {
    pub(super) ticket: Ticket,
    pub(super) target: Target,
    pub(super) of: Option<FileRef>,
    pub(super) own_pages: u32,
    pub(super) setting: WindowSetting,
}

pub(super) struct Lane {
    readers: Pool<Reader>,
    submission: Arc<Submission>,
    questions: Pool<Answerer>,
    /// `None` without drop-behind.
    releases: Option<Pool<Releaser>>,
    writes: Pool<Writer>,
    windows: Pool<Windows>,
    lists: Pool<Lister>,
    files: Pool<FilesReader>,
    answers: Answers,
}

/// What all lanes share.
#[derive(Clone)]
pub(super) struct Common {
    pub(super) answers: Answers,
    pub(super) journal: Journal,
    pub(super) state: PathBuf,
    pub(super) helper: Helper,
    pub(super) tables: Option<Arc<dyn PageTables>>,
    pub(super) listings: Arc<Listings>,
}

impl Lane {
    pub(super) fn new(device: Arc<Device>, common: &Common) -> Self {
        let Common { answers, journal, state, helper, tables, listings } = common.clone();
        let submission = Arc::new(Submission::default());
        submission.is_serial.store(device.facts.cost.is_serial(), Ordering::Relaxed);
        let reader = Reader(Arc::clone(&submission));
        let file_reader = FilesReader(Arc::clone(&listings), Arc::clone(&submission));
        let lister = Lister(listings);
        let windows_helper = helper.clone();
        let windows = move || Windows::new(journal.clone(), windows_helper.clone());
        let answerer = Answerer { device, submission: Arc::clone(&submission), state, helper };
        let pool_answers = || answers.clone();
        let releases = tables.map(|tables| {
            let releaser = Releaser(tables);
            Pool::new("bowwave-release", ONE, pool_answers(), move || releaser.clone())
        });
        let threads = walk::THREADS;
        Lane {
            readers: Pool::new("bowwave-reader", READERS, pool_answers(), move || reader.clone()),
            submission,
            questions: Pool::new("bowwave-ask", ONE, pool_answers(), move || answerer.clone()),
            releases,
            writes: Pool::new("bowwave-writeout", ONE, pool_answers(), || Writer),
            windows: Pool::new("bowwave-window", ONE, pool_answers(), windows),
            lists: Pool::new("bowwave-list", threads, pool_answers(), move || lister.clone()),
            files: Pool::new("bowwave-files", threads, pool_answers(), move || file_reader.clone()),
            answers,
        }
    }

    /// Adapts to what the device is now known to cost.
    pub(super) fn set_cost(&self, cost: &DeviceCost) {
        self.submission.is_serial.store(cost.is_serial(), Ordering::Relaxed);
    }

    /// Waits up to `timeout` for batches under way.
    pub(super) fn wait_for_reads(&self, timeout: Duration) {
        self.readers.wait(timeout);
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

/// A job for one of a lane's pools.
pub(super) trait LaneJob: Send + 'static {
    /// The answer if nobody does the job; `None` if nobody waits for an answer.
    fn refused(&self) -> Option<Completed>;

    /// Gives the job, which is about files of `volume`, to its pool.
    fn submit(self, lane: &Lane, volume: Arc<Volume>);
}

/// A job and its file system.
pub(super) struct OnVolume<J>(pub(super) J, pub(super) Arc<Volume>);

impl<J: LaneJob> Job for OnVolume<J> {
    fn refused(&self) -> Option<Completed> {
        self.0.refused()
    }
}

impl LaneJob for Batch {
    fn refused(&self) -> Option<Completed> {
        Some(Completed::Read { ticket: self.ticket, failed: Some(Failure::Refused) })
    }

    fn submit(self, lane: &Lane, volume: Arc<Volume>) {
        lane.readers.submit(OnVolume(self, volume));
    }
}

impl LaneJob for List {
    fn refused(&self) -> Option<Completed> {
        Some(Completed::Listed { ticket: self.ticket, listing: None })
    }

    fn submit(self, lane: &Lane, volume: Arc<Volume>) {
        lane.lists.submit(OnVolume(self, volume));
    }
}

impl LaneJob for Ahead {
    fn refused(&self) -> Option<Completed> {
        Some(match self {
            Ahead::Walk(job) => {
                let files = job.files.len() as u32;
                Completed::FilesRead { ticket: job.ticket, files, bytes: 0 }
            }
            Ahead::Remembered(job) => job.refused(),
        })
    }

    fn submit(self, lane: &Lane, volume: Arc<Volume>) {
        lane.files.submit(OnVolume(self, volume));
    }
}

#[derive(Clone)]
struct Answerer {
    device: Arc<Device>,
    submission: Arc<Submission>,
    state: PathBuf,
    helper: Helper,
}

impl LaneJob for Question {
    fn refused(&self) -> Option<Completed> {
        match *self {
            Question::Describe { stream, .. } => {
                Some(Completed::Described { stream, attributes: Attributes::default() })
            }
            Question::Probe(backing) => Some(Completed::Probed { backing, cost: None }),
            Question::Remember(_) => None,
        }
    }

    fn submit(self, lane: &Lane, volume: Arc<Volume>) {
        lane.questions.submit(OnVolume(self, volume));
    }
}

impl Worker for Answerer {
    type Job = OnVolume<Question>;

    fn run(&mut self, OnVolume(question, volume): Self::Job) -> Option<Completed> {
        let answer = question.answer(&self.device, &volume, &self.state, &self.helper);
        if let Some(Completed::Probed { cost: Some(cost), .. }) = &answer {
            self.submission.is_serial.store(cost.is_serial(), Ordering::Relaxed);
        }
        answer
    }
}

#[derive(Clone)]
struct Releaser(Arc<dyn PageTables>);

impl LaneJob for Release {
    fn refused(&self) -> Option<Completed> {
        let (ticket, left) = (self.ticket, vec![(self.span, self.span.pages())]);
        Some(Completed::Released { ticket, dropped_pages: 0, kept_pages: 0, left })
    }

    fn submit(self, lane: &Lane, volume: Arc<Volume>) {
        match &lane.releases {
            Some(pool) => pool.submit(OnVolume(self, volume)),
            None => lane.answers.send_all(self.refused()),
        }
    }
}

impl Worker for Releaser {
    type Job = OnVolume<Release>;

    fn run(&mut self, OnVolume(release, volume): Self::Job) -> Option<Completed> {
        Some(release.run(&volume.mount, &*self.0))
    }
}

/// Starts writing dirty pages. If that fails, the kernel writes them later anyway.
struct Writer;

pub(super) struct WriteOut {
    pub(super) ticket: Ticket,
    pub(super) of: FileRef,
    pub(super) span: Span,
}

impl LaneJob for WriteOut {
    fn refused(&self) -> Option<Completed> {
        Some(Completed::WroteOut { ticket: self.ticket })
    }

    fn submit(self, lane: &Lane, volume: Arc<Volume>) {
        lane.writes.submit(OnVolume(self, volume));
    }
}

impl Worker for Writer {
    type Job = OnVolume<WriteOut>;

    fn run(&mut self, OnVolume(out, volume): Self::Job) -> Option<Completed> {
        if let Ok(file) = linux::handles::open_file(out.of, &volume.mount) {
            let _ = linux::sys::write_out(file.as_fd(), out.span.start, out.span.pages());
        }
        Some(Completed::WroteOut { ticket: out.ticket })
    }
}

impl LaneJob for WindowChange {
    fn refused(&self) -> Option<Completed> {
        let (ticket, target, outcome) = (Some(self.ticket), self.target, WindowOutcome::Failed);
        Some(Completed::WindowSet { ticket, target, outcome, during: (0, 0) })
    }

    fn submit(self, lane: &Lane, volume: Arc<Volume>) {
        lane.windows.submit(WindowJob::Set(OnVolume(self, volume)));
    }
}

pub(super) enum WindowJob {
    Set(OnVolume<WindowChange>),
    /// Restore all windows until that time, then send.
    RestoreAll(Instant, Sender<()>),
}

impl Job for WindowJob {
    fn refused(&self) -> Option<Completed> {
        match self {
            WindowJob::Set(change) => change.refused(),
            WindowJob::RestoreAll(..) => None,
        }
    }
}

impl Worker for Windows {
    type Job = WindowJob;

    fn run(&mut self, job: WindowJob) -> Option<Completed> {
        match job {
            WindowJob::Set(OnVolume(change, volume)) => Some(self.set(&change, &volume)),
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
