//! One device's threads. A device or server that does not answer holds up its own lane.
//!
//! ```text
//!   Read ------------------> up to 16 readers   (a full queue blocks the call)
//!   Release ---------------> one thread         (opening may wait for a server)
//!   WriteOut --------------> one thread         (writing may wait for the device)
//!   Describe, Probe -------> one thread
//!   SetWindow -------------> one thread         (closing a duplicate may wait for a server)
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use controller::ids::{BackingId, FileRef, Target, Ticket};
use controller::{Completed, WindowOutcome, WindowSetting};
use readahead::DeviceCost;
use readahead::behind::Span;

use super::Answers;
use super::ask::Ask;
use super::readers::{Batch, Manner, Readers};
use super::release::Release;
use super::windows::{Journal, Windows};
use crate::mounted::{Device, Volume};
use crate::observe::PageTables;

/// Files that are read without look-ahead are let go so soon after their readers have closed them.
const HELD_PAUSE: Duration = Duration::from_millis(20);

/// Else windows are looked after this often.
const PAUSE: Duration = Duration::from_secs(1);

/// A change of a window.
pub(super) struct Change {
    pub(super) target: Target,
    pub(super) of: Option<FileRef>,
    pub(super) own_pages: u32,
    pub(super) setting: WindowSetting,
    pub(super) knob: PathBuf,
}

enum ToWindows {
    Set(Change),
    /// Everything is given back; told when that is done.
    End(Sender<()>),
}

/// Threads of one device.
pub(super) struct Lane {
    readers: Readers,
    manner: Arc<Manner>,
    asks: Sender<(Ask, Arc<Volume>)>,
    releases: Sender<(Release, Arc<Volume>)>,
    writes: Sender<(Ticket, FileRef, Span, Arc<Volume>)>,
    windows: Sender<ToWindows>,
    answers: Answers,
}

/// What lanes share.
#[derive(Clone)]
pub(super) struct Common {
    pub(super) answers: Answers,
    pub(super) journal: Journal,
    pub(super) state: PathBuf,
    pub(super) tables: Option<Arc<dyn PageTables>>,
}

impl Lane {
    pub(super) fn start(backing: BackingId, device: Arc<Device>, common: &Common) -> Self {
        let manner = Arc::new(Manner::default());
        manner.is_serial.store(device.facts.cost.is_serial(), Ordering::Relaxed);
        let answers = common.answers.clone();
        let (asks, ask_inbox) = mpsc::channel();
        let (releases, release_inbox) = mpsc::channel();
        let (writes, write_inbox) = mpsc::channel();
        let (windows, window_inbox) = mpsc::channel();
        let of = (backing, device, Arc::clone(&manner));
        let (to, state) = (answers.clone(), common.state.clone());
        spawn("bowwave-ask", move || answer_asks(&ask_inbox, &of, &state, &to));
        if let Some(tables) = common.tables.clone() {
            let to = answers.clone();
            spawn("bowwave-release", move || let_go(&release_inbox, &*tables, &to));
        }
        let to = answers.clone();
        spawn("bowwave-writeout", move || write_out(&write_inbox, &to));
        let (to, common) = (answers.clone(), common.clone());
        spawn("bowwave-window", move || {
            set_windows(&window_inbox, Windows::new(common.journal, &common.state), &to);
        });
        let readers = Readers::new(Arc::clone(&manner), answers.clone());
        Lane { readers, manner, asks, releases, writes, windows, answers }
    }

    pub(super) fn read(&mut self, batch: Batch) {
        self.readers.submit(batch);
    }

    pub(super) fn ask(&self, ask: Ask, volume: Arc<Volume>) {
        if let Err(mpsc::SendError((ask, _))) = self.asks.send((ask, volume)) {
            self.answers.send_all(ask.refused());
        }
    }

    pub(super) fn release(&self, release: Release, volume: Arc<Volume>) {
        if let Err(mpsc::SendError((release, _))) = self.releases.send((release, volume)) {
            self.answers.send(release.refused());
        }
    }

    pub(super) fn write_out(&self, ticket: Ticket, of: FileRef, span: Span, volume: Arc<Volume>) {
        if self.writes.send((ticket, of, span, volume)).is_err() {
            // The kernel writes when it sees fit.
            self.answers.send(Completed::WroteOut { ticket });
        }
    }

    pub(super) fn set_window(&self, change: Change) {
        let target = change.target;
        if self.windows.send(ToWindows::Set(change)).is_err() {
            self.answers.send(window_refused(target));
        }
    }

    /// The device was found to charge something else.
    pub(super) fn learn(&self, cost: &DeviceCost) {
        self.manner.is_serial.store(cost.is_serial(), Ordering::Relaxed);
    }

    /// Waits for batches under way, for so long at most.
    pub(super) fn wait_for_reads(&self, most: Duration) {
        self.readers.wait(most);
    }

    /// Has all windows on this device given back; `done` is told when that is done.
    pub(super) fn end_windows(&self, done: &Sender<()>) {
        // A thread that is gone has given back what it had.
        let _ = self.windows.send(ToWindows::End(done.clone()));
    }
}

/// That a window cannot be set.
pub(super) fn window_refused(target: Target) -> Completed {
    Completed::WindowSet { target, outcome: WindowOutcome::Failed, during: (0, 0) }
}

/// Starts a thread; without it its channel is closed, which whoever sends there answers for.
fn spawn(name: &str, work: impl FnOnce() + Send + 'static) {
    let _ = thread::Builder::new().name(name.into()).spawn(work);
}

fn answer_asks(
    inbox: &Receiver<(Ask, Arc<Volume>)>,
    (backing, device, manner): &(BackingId, Arc<Device>, Arc<Manner>),
    state: &std::path::Path,
    answers: &Answers,
) {
    for (ask, volume) in inbox {
        let answer = ask.run(*backing, device, &volume, state);
        if let Some(Completed::Probed { cost: Some(cost), .. }) = &answer {
            manner.is_serial.store(cost.is_serial(), Ordering::Relaxed);
        }
        answers.send_all(answer);
    }
}

fn let_go(inbox: &Receiver<(Release, Arc<Volume>)>, tables: &dyn PageTables, answers: &Answers) {
    for (release, volume) in inbox {
        answers.send(release.run(&volume.mount, tables));
    }
}

fn write_out(inbox: &Receiver<(Ticket, FileRef, Span, Arc<Volume>)>, answers: &Answers) {
    use std::os::fd::AsFd;
    for (ticket, of, span, volume) in inbox {
        // A file system that cannot: the kernel writes when it sees fit.
        if let Ok(file) = linux::handles::open_file(of, &volume.mount) {
            let _ = linux::sys::write_out(file.as_fd(), span.start, span.pages());
        }
        answers.send(Completed::WroteOut { ticket });
    }
}

fn set_windows(inbox: &Receiver<ToWindows>, mut windows: Windows, answers: &Answers) {
    let mut looked_at = Instant::now();
    loop {
        let pause = if windows.holds_any() { HELD_PAUSE } else { PAUSE };
        // Also while changes come all the time.
        let wait = pause.saturating_sub(looked_at.elapsed());
        if wait.is_zero() {
            looked_at = Instant::now();
            answers.send_all(windows.look_after());
            continue;
        }
        match inbox.recv_timeout(wait) {
            Ok(ToWindows::Set(change)) => {
                let Change { target, of, own_pages, setting, knob } = change;
                answers.send(windows.set(target, of, own_pages, setting, &knob));
            }
            Ok(ToWindows::End(done)) => {
                windows.give_back_all();
                let _ = done.send(());
                return;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return windows.give_back_all(),
        }
    }
}
