//! The loop: an event comes, the policy decides, workers read ahead, marks go back.
//!
//! ```text
//!   event --> which file system, which disk? --> room (depth, budget) --> policy --> plan
//!                                                                                     |
//!   kernel <-- marks, muting --- book <-----------------------------------------------+
//!   workers <-- ranges of pages <-----------------------------------------------------+
//! ```
//!
//! One thread decides and never blocks on a device; `readahead(2)`, which can, is called by
//! [`Workers`]. If the process is killed, the descriptors of the eBPF programs close, they are
//! unloaded, and the kernel's own read-ahead goes on at the next miss.

mod file_systems;
mod translate;

use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::Duration;

use linux::mounts::Mount;
use linux::sys;
use readahead::{Access, Action, DeviceNumber, Mark, PAGE_BYTES, Plan, Policy};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::act::{Job, Windows, Workers};
use crate::behind::{self, Behind, Rules};
use crate::book::{Book, Patience};
use crate::disk::Backing;
use crate::memory::{Budget, Room};
use crate::observe::{self, DiskStats, Event, Kind, MARK_PAGES, ObserveError, Observer, Scope};
use crate::summary::Summary;
use crate::view::LiveView;
use file_systems::Led;
use translate::{access_of, forward_window, kernel_window_of, ranges_of};

/// What to lead, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose reads.
    pub scope: Scope,
    /// The file systems that these paths lie on; all with a page cache if empty.
    pub paths: Vec<PathBuf>,
    /// Where measurements are remembered until reboot, and the journal is kept.
    pub state: PathBuf,
    /// Who pays for what is read ahead.
    pub charge: Charge,
    /// Whose streams drop behind.
    pub behind: Rules,
}

/// Which memory cgroup pays for pages that are read ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charge {
    /// Bowwave's own: its limit bounds what is read ahead, and a reader in a small cgroup is not
    /// made to evict its own pages.
    #[default]
    Bowwave,
    /// The reader's, wherever the kernel can be made to read by itself: forward streams get a
    /// window of their own. Backward, strided and dense reading is still charged to bowwave.
    Reader,
}

/// Why the engine cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Nothing can be observed.
    #[error(transparent)]
    Observe(#[from] ObserveError),
    /// A path cannot be led.
    #[error("{path}: {error}; name a file or folder on a disk or network file system")]
    Path {
        /// The path as given.
        path: PathBuf,
        /// What is wrong with it.
        error: io::Error,
    },
    /// The table of mounts cannot be read.
    #[error("cannot read the table of mounted file systems: {0}; is /proc mounted?")]
    Mounts(io::Error),
}

/// Streams and files idle for longer are forgotten.
const IDLE_NS: u64 = 10_000_000_000;

/// Forgetting, and looking for new mounts, is done this often.
const HOUSEKEEPING_NS: u64 = 1_000_000_000;

/// Where something has still to go behind streams, it is looked at this often.
const BEHIND_NS: u64 = 50_000_000;

/// What is still to go at the end is looked at each millisecond for so long, and then as ever: what a disk has
/// not taken by then will take it long.
const SOON_NS: u64 = 500_000_000;

/// Read-ahead under way is waited for so long; a server may not answer.
const MOST_CLOSING: Duration = Duration::from_secs(1);

/// Observer, policy and workers, put together.
pub struct Engine {
    observer: Box<dyn Observer>,
    policy: Box<dyn Policy>,
    options: Options,
    workers: Workers,
    windows: Windows,
    budget: Budget,
    file_systems: HashMap<DeviceNumber, Led>,
    backings: Vec<Backing>,
    book: Book,
    plan: Plan,
    batch: Vec<Event>,
    summary: Summary,
    tidied_at: u64,
    behind: Option<Behind>,
}

impl Engine {
    /// Attaches to the kernel and finds out about the disks; reads are led from now on.
    ///
    /// # Errors
    /// See [`EngineError`].
    pub fn start(options: Options, policy: Box<dyn Policy>) -> Result<Self, EngineError> {
        let windows = Windows::recover(&options.state);
        let watch = behind::watch(&options.behind);
        let mut observer = observe::open(&options.scope, watch)?;
        let behind = watch.map(|_| Behind::start(options.behind.clone(), &mut *observer));
        let behind = behind.transpose()?;
        let mut engine = Engine {
            observer,
            policy,
            options,
            workers: Workers::new(),
            windows,
            budget: Budget::new(),
            file_systems: HashMap::new(),
            backings: Vec::new(),
            book: Book::default(),
            plan: Plan::new(),
            batch: Vec::new(),
            summary: Summary::default(),
            tidied_at: 0,
            behind,
        };
        engine.lead_file_systems(engine.wanted_mounts()?)?;
        Ok(engine)
    }

    /// Leads reads until `stop` becomes readable (a signal pipe, a process's descriptor).
    ///
    /// # Errors
    /// If the observer failed.
    pub fn serve_until(&mut self, stop: BorrowedFd<'_>) -> Result<(), EngineError> {
        loop {
            let stopped = {
                let events = self.observer.readiness();
                let mut ready = [
                    PollFd::from_borrowed_fd(stop, PollFlags::IN),
                    PollFd::from_borrowed_fd(events, PollFlags::IN),
                ];
                match poll(&mut ready, Some(&self.pause())) {
                    Err(rustix::io::Errno::INTR) => continue,
                    Err(error) => return Err(ObserveError::Lost(error.to_string()).into()),
                    Ok(_) => !ready[0].revents().is_empty(),
                }
            };
            if stopped {
                return Ok(());
            }
            self.turn(Duration::ZERO)?;
        }
    }

    /// How long nothing has to be done if nothing happens.
    fn pause(&self) -> Timespec {
        if self.windows.is_busy() {
            return Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        }
        if self.behind.as_ref().is_some_and(Behind::is_busy) {
            return Timespec { tv_sec: 0, tv_nsec: BEHIND_NS as i64 };
        }
        Timespec { tv_sec: 1, tv_nsec: 0 }
    }

    /// Lets go of what ended streams have left, for at most so long and until `stop` says so: what is not
    /// written by then stays cached.
    ///
    /// # Errors
    /// If the observer failed.
    pub fn finish(&mut self, most: Duration, stop: impl Fn() -> bool) -> Result<(), EngineError> {
        let begun = sys::monotonic_ns();
        let so_far = || sys::monotonic_ns() - begun;
        // What they are still reading would come after all the rest had gone.
        self.workers.close(most.min(MOST_CLOSING));
        if let Some(behind) = &mut self.behind {
            behind.finish();
        }
        self.turn(Duration::ZERO)?;
        while self.behind.as_ref().is_some_and(Behind::has_left_overs)
            && u128::from(so_far()) < most.as_nanos()
            && !stop()
        {
            let pause_ns = if so_far() < SOON_NS { 1_000_000 } else { BEHIND_NS };
            self.turn(Duration::from_nanos(pause_ns))?;
        }
        Ok(())
    }

    /// The file systems led, by mount point.
    pub fn mounts(&self) -> Vec<&Mount> {
        let mut mounts: Vec<_> = self.file_systems.values().map(|led| &led.mount).collect();
        mounts.sort_by(|one, other| one.mount_point.cmp(&other.mount_point));
        mounts
    }

    /// Handles what has happened, waiting up to `timeout` for the first event.
    fn turn(&mut self, timeout: Duration) -> Result<(), EngineError> {
        let mut batch = std::mem::take(&mut self.batch);
        self.observer.wait(timeout, &mut |event| batch.push(event))?;
        for event in &batch {
            self.on_event(event)?;
        }
        batch.clear();
        self.batch = batch;
        let now = sys::monotonic_ns();
        if let Some(behind) = &mut self.behind {
            let mount_of = |dev| self.file_systems.get(&dev).map(|led| &led.mount);
            behind.tick(now, &mount_of, &mut *self.observer)?;
            let has_head = |dev| {
                let led = self.file_systems.get(&dev);
                led.is_some_and(|led: &Led| self.backings[led.backing].has_head())
            };
            behind.compare_with_disks(&has_head);
            self.windows.hold(behind.copied());
        }
        let knob_of = |dev| self.file_systems.get(&dev).map(|led: &Led| led.knob.as_path());
        self.summary.bounded_windows += self.windows.go_on(now, knob_of);
        self.tidy(now)
    }

    /// Totals so far.
    pub fn summary(&self) -> Summary {
        let mut summary = self.summary;
        summary.add_tally(&self.policy.tally());
        if let Some(behind) = &self.behind {
            summary.add_behind(&behind.totals());
        }
        summary.lost_events = self.observer.lost_events();
        summary.cpu_s = sys::cpu_seconds();
        summary
    }

    fn on_event(&mut self, event: &Event) -> Result<(), EngineError> {
        self.summary.events += 1;
        let Some(led) = self.file_systems.get(&event.file.dev) else {
            return Ok(());
        };
        if let Kind::Passed { written, foreign } = event.kind {
            let passing = (written, foreign);
            let behind = self.behind.as_mut();
            return Ok(behind.map_or(Ok(()), |behind| {
                behind.on_passed(event, passing, &led.mount, &mut *self.observer)
            })?);
        }
        let index = led.backing;
        let backing = &mut self.backings[index];
        let stats = backing.slot.map_or_else(DiskStats::default, |s| self.observer.disk_stats(s));
        let streams = || self.book.led_files(event.now);
        if backing.steer(event.now, &stats, streams) {
            self.ease(index)?;
        }
        let (led, backing) = (&self.file_systems[&event.file.dev], &self.backings[index]);
        // What no worker could start at once is not asked for.
        let behind = self.behind.as_ref();
        let is_held_back = behind.is_some_and(|behind| behind.holds_back(event.tgid))
            || self.windows.is_held_by(event);
        let has_room = self.workers.has_room() && !is_held_back;
        let room = if has_room { backing.room_pages(&stats) } else { 0 };
        let memory = self.budget.room(event, self.policy.tally().ahead_pages());
        let room = Room { pages: memory.pages.min(room), ..memory };
        let view = LiveView::new(event, &led.mount, backing.cost, room);
        self.plan.clear();
        let kernel_window = self.windows.window_of(event);
        // Whose look-ahead was ended by us has not been advised by its program.
        let advised_random = event.advised_random && !self.windows.is_our_advice(event);
        let access = Access { kernel_window, ..access_of(&Event { advised_random, ..*event }) };
        self.policy.on_access(&access, &view, &mut self.plan);
        let ahead = self.policy.tally().ahead_pages() * PAGE_BYTES;
        self.summary.most_ahead_bytes = self.summary.most_ahead_bytes.max(ahead);
        let ranges = ranges_of(&self.plan);
        self.windows.hear(event);
        let bound = self.policy.window_bound();
        if let Some(pages) = bound {
            self.windows.bound_all(pages);
        }
        let own = kernel_window_of(&self.plan)
            .filter(|pages| Some(*pages) != bound || *pages > kernel_window);
        if let Some(pages) = own {
            let is_narrowed = self.windows.fit_one(event, &led.knob, pages);
            self.summary.bounded_windows += u64::from(is_narrowed);
        }
        self.windows.fit(event, [bound, memory.kernel_pages].into_iter().flatten().min());
        let may_lend = self.options.charge == Charge::Reader && bound.is_none();
        let is_lent = may_lend
            && forward_window(event, &ranges)
                .is_some_and(|kb| self.windows.lend(event, &led.knob, kb).is_ok());
        let served = !ranges.is_empty()
            && (is_lent || {
                let job = view.into_file().map(|file| Job {
                    file,
                    ranges,
                    piece_pages: backing.piece_pages,
                    pending_bytes: backing.pending_bytes.clone(),
                    turn: backing.turn.clone(),
                });
                job.is_some_and(|job| self.workers.submit(job))
            });
        let patience = Patience::with(backing.interest());
        self.take_down(event, served, patience)
    }

    /// Notes in the book, and tells the observer, what has become of the event.
    fn take_down(
        &mut self,
        event: &Event,
        served: bool,
        patience: Patience,
    ) -> Result<(), EngineError> {
        let notes = self.book.notes(event.file, event.now);
        let mut muted_until = 0;
        let is_news = self.plan.is_recognised() && notes.recognised();
        if event.kind == Kind::Mark {
            notes.mark_taken(event.mark.0, event.mark.1);
        }
        for action in self.plan.actions() {
            if let Action::Mark(mark) = action {
                // The reader comes to the start of a long piece first.
                let mark = Mark { last: mark.last.min(mark.first + MARK_PAGES - 1), ..*mark };
                self.observer.set_mark(event.file, mark)?;
                notes.mark_set(mark);
            }
        }
        if served {
            notes.served();
            self.summary.reads += 1;
            self.summary.read_ahead_bytes += self.plan.pages() * PAGE_BYTES;
        } else if event.kind != Kind::Mark {
            if self.windows.window_of(event) < event.kernel_window {
                notes.listen_closely();
            }
            let is_held = self.windows.is_held(event);
            let muted = (!is_held).then(|| notes.in_vain(event.now, patience)).flatten();
            muted_until = muted.unwrap_or(0);
        }
        if served || is_news || muted_until > 0 || !self.plan.actions().is_empty() {
            self.observer.set_state(event.file, notes.state(muted_until))?;
        }
        Ok(())
    }

    fn tidy(&mut self, now: u64) -> Result<(), EngineError> {
        if now.saturating_sub(self.tidied_at) < HOUSEKEEPING_NS {
            return Ok(());
        }
        self.tidied_at = now;
        self.policy.forget_idle(now, IDLE_NS);
        self.windows.tidy(now, self.policy.window_bound());
        if self.behind.is_some() {
            self.observer.note_daemons();
        }
        self.budget.refresh(now);
        let mut forgotten = Vec::new();
        self.book.forget_before(now.saturating_sub(IDLE_NS), |file| forgotten.push(file));
        for file in forgotten {
            self.observer.set_state(file, observe::FileState::default())?;
        }
        self.observer.keep_marks_of(&mut self.book.marked_files());
        self.mounts_now().map_or(Ok(()), |mounts| self.lead_file_systems(mounts))
    }
}
