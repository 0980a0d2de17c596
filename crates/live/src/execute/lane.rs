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
use controller::{Completed, WindowOutcome, WindowSetting};
use readahead::DeviceCost;
use readahead::behind::Span;

use super::Answers;
use super::pool::{Job, ONE, Pool, Worker};
use super::questions::Question;
use super::readers::{Batch, READERS, Reader, Submission};
use super::release::Release;
use super::walk::{self, FilesReader, List, Lister, Listings, ReadFiles};
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
    pub(super) volume: Arc<Volume>,
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

    pub(super) fn read(&self, batch: Batch) {
        self.readers.submit(batch);
    }

    pub(super) fn list(&self, job: List) {
        self.lists.submit(job);
    }

    pub(super) fn read_files(&self, job: ReadFiles) {
        self.files.submit(job);
    }

    pub(super) fn ask(&self, question: Question, volume: Arc<Volume>) {
        self.questions.submit(OnVolume(question, volume));
    }

    pub(super) fn release(&self, release: Release, volume: Arc<Volume>) {
        match &self.releases {
            Some(pool) => pool.submit(OnVolume(release, volume)),
            None => self.answers.send(release.refused()),
        }
    }

    pub(super) fn write_out(&self, ticket: Ticket, of: FileRef, span: Span, volume: Arc<Volume>) {
        self.writes.submit(OnVolume(WriteOut { ticket, of, span }, volume));
    }

    pub(super) fn set_window(&self, change: WindowChange) {
        self.windows.submit(WindowJob::Set(change));
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

/// A job and its file system.
struct OnVolume<J>(J, Arc<Volume>);

#[derive(Clone)]
struct Answerer {
    device: Arc<Device>,
    submission: Arc<Submission>,
    state: PathBuf,
    helper: Helper,
}

impl Job for OnVolume<Question> {
    fn refused(&self) -> Option<Completed> {
        self.0.refused()
    }
}

impl Worker for Answerer {
    type Job = OnVolume<Question>;

    fn run(&mut self, OnVolume(question, volume): Self::Job) -> Option<Completed> {
        let answer = question.answer(&self.device, &volume, (&self.state, &self.helper));
        if let Some(Completed::Probed { cost: Some(cost), .. }) = &answer {
            self.submission.is_serial.store(cost.is_serial(), Ordering::Relaxed);
        }
        answer
    }
}

#[derive(Clone)]
struct Releaser(Arc<dyn PageTables>);

impl Job for OnVolume<Release> {
    fn refused(&self) -> Option<Completed> {
        Some(self.0.refused())
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

struct WriteOut {
    ticket: Ticket,
    of: FileRef,
    span: Span,
}

impl Job for OnVolume<WriteOut> {
    fn refused(&self) -> Option<Completed> {
        Some(Completed::WroteOut { ticket: self.0.ticket })
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

pub(super) enum WindowJob {
    Set(WindowChange),
    /// Restore all windows until that time, then send.
    RestoreAll(Instant, Sender<()>),
}

pub(super) fn window_refused(ticket: Ticket, target: Target) -> Completed {
    let (ticket, outcome) = (Some(ticket), WindowOutcome::Failed);
    Completed::WindowSet { ticket, target, outcome, during: (0, 0) }
}

impl Job for WindowJob {
    fn refused(&self) -> Option<Completed> {
        match self {
            WindowJob::Set(change) => Some(window_refused(change.ticket, change.target)),
            WindowJob::RestoreAll(..) => None,
        }
    }
}

impl Worker for Windows {
    type Job = WindowJob;

    fn run(&mut self, job: WindowJob) -> Option<Completed> {
        match job {
            WindowJob::Set(change) => Some(self.set(&change)),
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
