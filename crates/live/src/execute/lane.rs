//! One device's threads. A device or server that does not answer holds up its own lane.
//!
//! ```text
//!   Read ------------------> up to 16 readers   (a full queue blocks the call)
//!   Release ---------------> one thread         (opening may wait for a server)
//!   WriteOut --------------> one thread         (writing may wait for the device)
//!   List, ReadFiles -------> up to 8 threads each (opening may wait for the device)
//!   Describe, Probe -------> one thread
//!   SetWindow -------------> one thread         (with a process that may wait for a server)
//! ```
//!
//! All of them start when they are first needed, and end when they are idle: most file systems are not read at any
//! moment.

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
use super::ask::Ask;
use super::pool::{Job, ONE, Pool, Worker};
use super::readers::{Batch, Manner, READERS, Reader};
use super::release::Release;
use super::walk::{self, FilesReader, List, Lister, Listings, ReadFiles};
use super::windows::{Journal, Windows};
use crate::helper::Helper;
use crate::mounted::{Device, Volume};
use crate::observe::PageTables;

/// Files that are read without look-ahead are let go so soon after their readers have closed them.
const KEPT_OPEN_PAUSE: Duration = Duration::from_millis(20);

/// Else windows are looked after this often.
const PAUSE: Duration = Duration::from_secs(1);

/// A thread that ends gives back what it can within so long. Nobody waits for it.
const MOST_ENDING: Duration = Duration::from_secs(1);

/// A change of a window.
pub(super) struct Change {
    pub(super) ticket: Ticket,
    pub(super) target: Target,
    pub(super) of: Option<FileRef>,
    pub(super) own_pages: u32,
    pub(super) setting: WindowSetting,
    pub(super) volume: Arc<Volume>,
}

/// Threads of one device.
pub(super) struct Lane {
    readers: Pool<Reader>,
    manner: Arc<Manner>,
    asks: Pool<Asker>,
    /// `None` where nothing is known of who uses pages.
    releases: Option<Pool<Releaser>>,
    writes: Pool<Writer>,
    windows: Pool<Windows>,
    lists: Pool<Lister>,
    files: Pool<FilesReader>,
    answers: Answers,
}

/// What lanes share.
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
        let manner = Arc::new(Manner::default());
        manner.is_serial.store(device.facts.cost.is_serial(), Ordering::Relaxed);
        let answers = || common.answers.clone();
        let of_readers = Arc::clone(&manner);
        let reader = move || Reader(Arc::clone(&of_readers));
        let (state, helper) = (common.state.clone(), common.helper.clone());
        let asker = Asker { device, manner: Arc::clone(&manner), state, helper };
        let releases = common.tables.clone().map(|tables| {
            let releaser = move || Releaser(Arc::clone(&tables));
            Pool::new("bowwave-release", ONE, answers(), releaser)
        });
        let journal = common.journal.clone();
        let of_windows = common.helper.clone();
        let windows = move || Windows::new(journal.clone(), of_windows.clone());
        let listings = Arc::clone(&common.listings);
        let lister = move || Lister(Arc::clone(&listings));
        let (listings, of_files) = (Arc::clone(&common.listings), Arc::clone(&manner));
        let files = move || FilesReader(Arc::clone(&listings), Arc::clone(&of_files));
        Lane {
            readers: Pool::new("bowwave-reader", READERS, answers(), reader),
            manner,
            asks: Pool::new("bowwave-ask", ONE, answers(), move || asker.clone()),
            releases,
            writes: Pool::new("bowwave-writeout", ONE, answers(), || Writer),
            windows: Pool::new("bowwave-window", ONE, answers(), windows),
            lists: Pool::new("bowwave-list", walk::THREADS, answers(), lister),
            files: Pool::new("bowwave-files", walk::THREADS, answers(), files),
            answers: answers(),
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

    pub(super) fn ask(&self, ask: Ask, volume: Arc<Volume>) {
        self.asks.submit(Of(ask, volume));
    }

    pub(super) fn release(&self, release: Release, volume: Arc<Volume>) {
        match &self.releases {
            Some(pool) => pool.submit(Of(release, volume)),
            None => self.answers.send(release.refused()),
        }
    }

    pub(super) fn write_out(&self, ticket: Ticket, of: FileRef, span: Span, volume: Arc<Volume>) {
        self.writes.submit(Of(WriteOut { ticket, of, span }, volume));
    }

    pub(super) fn set_window(&self, change: Change) {
        self.windows.submit(ToWindows::Set(change));
    }

    /// The device was found to charge something else.
    pub(super) fn learn(&self, cost: &DeviceCost) {
        self.manner.is_serial.store(cost.is_serial(), Ordering::Relaxed);
    }

    /// Waits for batches under way, for so long at most.
    pub(super) fn wait_for_reads(&self, most: Duration) {
        self.readers.wait(most);
    }

    /// Has all windows on this device given back by then, as far as possible; `done` is told when that is done.
    pub(super) fn end_windows(&self, until: Instant, done: &Sender<()>) {
        if self.windows.is_running() {
            self.windows.submit(ToWindows::End(until, done.clone()));
        } else {
            // A thread that has ended had nothing to give back.
            let _ = done.send(());
        }
    }
}

/// A job, and the file system that it is about.
struct Of<J>(J, Arc<Volume>);

/// Finds answers to questions.
#[derive(Clone)]
struct Asker {
    device: Arc<Device>,
    manner: Arc<Manner>,
    state: PathBuf,
    helper: Helper,
}

impl Job for Of<Ask> {
    fn refused(&self) -> Option<Completed> {
        self.0.refused()
    }
}

impl Worker for Asker {
    type Job = Of<Ask>;

    fn run(&mut self, Of(ask, volume): Of<Ask>) -> Option<Completed> {
        let answer = ask.run(&self.device, &volume, (&self.state, &self.helper));
        if let Some(Completed::Probed { cost: Some(cost), .. }) = &answer {
            self.manner.is_serial.store(cost.is_serial(), Ordering::Relaxed);
        }
        answer
    }
}

/// Lets pages go.
struct Releaser(Arc<dyn PageTables>);

impl Job for Of<Release> {
    fn refused(&self) -> Option<Completed> {
        Some(self.0.refused())
    }
}

impl Worker for Releaser {
    type Job = Of<Release>;

    fn run(&mut self, Of(release, volume): Of<Release>) -> Option<Completed> {
        Some(release.run(&volume.mount, &*self.0))
    }
}

/// Starts writing pages.
struct Writer;

/// Pages to be written.
struct WriteOut {
    ticket: Ticket,
    of: FileRef,
    span: Span,
}

impl Job for Of<WriteOut> {
    fn refused(&self) -> Option<Completed> {
        // The kernel writes when it sees fit.
        Some(Completed::WroteOut { ticket: self.0.ticket })
    }
}

impl Worker for Writer {
    type Job = Of<WriteOut>;

    fn run(&mut self, Of(out, volume): Of<WriteOut>) -> Option<Completed> {
        // A file system that cannot: the kernel writes when it sees fit.
        if let Ok(file) = linux::handles::open_file(out.of, &volume.mount) {
            let _ = linux::sys::write_out(file.as_fd(), out.span.start, out.span.pages());
        }
        Some(Completed::WroteOut { ticket: out.ticket })
    }
}

/// What the thread of a device's windows is told.
pub(super) enum ToWindows {
    Set(Change),
    /// Everything is given back by then, as far as possible; told when that is done.
    End(Instant, Sender<()>),
}

/// That a window cannot be set.
pub(super) fn window_refused(ticket: Ticket, target: Target) -> Completed {
    let (ticket, outcome) = (Some(ticket), WindowOutcome::Failed);
    Completed::WindowSet { ticket, target, outcome, during: (0, 0) }
}

impl Job for ToWindows {
    fn refused(&self) -> Option<Completed> {
        match self {
            ToWindows::Set(change) => Some(window_refused(change.ticket, change.target)),
            ToWindows::End(..) => None,
        }
    }
}

impl Worker for Windows {
    type Job = ToWindows;

    fn run(&mut self, job: ToWindows) -> Option<Completed> {
        match job {
            ToWindows::Set(change) => Some(self.set(&change)),
            ToWindows::End(until, done) => {
                self.give_back_all(until);
                let _ = done.send(());
                None
            }
        }
    }

    fn pause(&self) -> Duration {
        if self.keeps_any_open() { KEPT_OPEN_PAUSE } else { PAUSE }
    }

    fn look_after(&mut self) -> Vec<Completed> {
        Windows::look_after(self)
    }

    fn is_idle(&self) -> bool {
        self.may_end()
    }

    fn end(&mut self) {
        self.give_back_all(Instant::now() + MOST_ENDING);
    }
}
