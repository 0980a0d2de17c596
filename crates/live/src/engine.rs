//! The engine's loop: it turns events into inputs for the controller, and carries out the commands that come back.
//!
//! ```text
//!   eBPF ring --> Access, Passed --.
//!   lanes ------> Completed --------+--> controller --> commands --> observe: Mark, Listen, Watch ...
//!   mounts -----> Mounted ---------'                         '----> execute: Read, SetWindow, Release ...
//! ```
//!
//! One thread runs all of this; lanes and the mount watcher wake it through an eventfd (`Answers`). If the process is
//! killed, the kernel unloads the eBPF programs with their descriptors and does its own read-ahead from the next miss.

use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use controller::behind::{LEAST_FILE_PAGES, Mode, Rules};
use controller::ids::{BackingId, Tgid};
use controller::metrics::{Metrics, NotRead};
use controller::{Charge, Command, Completed, Controller, Input, Mounted, Nanos, Status};
use ebpf::ObserveError;
use ebpf::kernel::Features;
use ebpf::observe::{self, Observed, Observer, Scope, Spender, Watch};
use linux::limited::within;
use linux::mounts::Mount;
use linux::stderr::note;
use linux::{cgroup, meminfo, provenance, sys};
use readahead::DeviceNumber;
use readahead::adaptive::Limits;
use recording::{CreateError, Header, OddLimits, Place, Recorder};
use remembered::{Late, List, Noted};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use status::{Role, Socket};

use crate::counted::Counted;
pub use crate::execute::RecoveryError;
use crate::execute::{Answers, Executor, Journal};
use crate::exits::Exits;
use crate::helper::Helper;
use crate::histories::Histories;
use crate::memory::Memory;
use crate::mounted::{Change, Device, Mounts};
use crate::names::add_names;
use crate::places::Places;
use crate::starts::{Remember, Starts};

/// What to manage, and how.
#[derive(Debug)]
pub struct Options {
    /// Whose reads.
    pub scope: Scope,
    /// The file systems to manage.
    pub places: Places,
    /// The folder for device measurements (kept until reboot), sockets and journals.
    pub state: PathBuf,
    /// Does the work that nobody can interrupt.
    pub helper: Helper,
    /// Which memory cgroup is charged for pages read ahead.
    pub charge: Charge,
    /// Which streams drop pages behind them.
    pub behind: Rules,
    /// Which commands' starts to remember.
    pub remember: Remember,
    /// Where to record inputs and commands.
    pub record: Option<Place>,
}

/// Why the engine cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The policy does not accept these limits.
    #[error(transparent)]
    Limits(#[from] OddLimits),
    /// The recording cannot be created.
    #[error(transparent)]
    Record(#[from] CreateError),
    /// The kernel's events cannot be observed.
    #[error(transparent)]
    Observe(#[from] ObserveError),
    /// The table of mounts cannot be read.
    #[error("cannot read the table of mounted file systems: {0}; is /proc mounted?")]
    Mounts(io::Error),
    /// The thread that watches the table of mounts cannot be started.
    #[error(
        "there is no thread to watch for file systems that are mounted: {0}; raise the limit of \
         threads (ulimit -u, TasksMax=)"
    )]
    Watch(io::Error),
    /// A descriptor to wait on cannot be created.
    #[error("cannot wait for events: {0}; raise the limit of open files (ulimit -n)")]
    Wait(#[from] rustix::io::Errno),
}

/// At shutdown, poll this often for what still has to be dropped ...
const FAST_POLL: Duration = Duration::from_millis(1);

/// ... for this long. A disk that has not written the pages by then needs much longer ...
const FAST_POLLING: Duration = Duration::from_millis(500);

/// ... so poll this often from then on.
const SLOW_POLL: Duration = Duration::from_millis(50);

/// At shutdown, wait this long for read-ahead under way. A server may never answer.
const READS_TIMEOUT: Duration = Duration::from_millis(300);

/// At shutdown, restore windows for this long. Only a program that blocks access to its descriptors makes it take so
/// long.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(1);

/// At start, wait this long for windows left by killed runs. Their restoring continues while reads are managed.
const RECOVERY_TIMEOUT_AT_START: Duration = Duration::from_millis(500);

/// With `--recover`, wait this long instead. systemd runs it after the service has stopped, and kills it after 5 s
/// (`TimeoutStopSec`).
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(4);

/// Measuring an idle disk takes a fraction of a second. After this time, manage a slower or busy one by a guess.
const MEASURING_TIMEOUT: Duration = Duration::from_secs(2);

/// How often to do what need not be done at each event, see `Engine::tidy`.
const TIDY_INTERVAL_NS: Nanos = 1_000_000_000;

/// How often to write down how files were read: a killed daemon forgets no more.
const HISTORY_INTERVAL_NS: Nanos = 300_000_000_000;

/// Where programs of bowwave's name begin all the time, the search for other daemons, which looks at every process, may
/// use 1/400 of a processor ...
const DAEMON_SCAN_SHARE: u64 = 400;

/// ... but is not put off for longer than this.
const DAEMON_SCAN_INTERVAL_NS: Nanos = 10_000_000_000;

/// The controller, connected with the source of its events and the executor of its commands.
pub struct Engine {
    observer: Box<dyn Observer>,
    controller: Controller,
    recorder: Option<Recorder>,
    executor: Executor,
    answers: Answers,
    changes: Receiver<Change>,
    exits: Exits,
    memory: Memory,
    histories: Histories,
    starts: Starts,
    counted: Counted,
    out: Vec<Command>,
    tick_at: Nanos,
    tidied_at: Nanos,
    next_daemon_scan_at: Nanos,
    histories_kept_at: Nanos,
    /// Failed updates of eBPF maps.
    table_errors: u64,
    /// Reads that were left to the kernel.
    left_reads: u64,
    /// The longest that events had to wait.
    longest_turn: Duration,
    has_restored_windows: bool,
    drops_behind: bool,
    socket: Option<Socket>,
    /// Totals of this process's earlier engines.
    earlier_totals: Metrics,
    /// When the first of them began.
    since: Instant,
    /// The mount watcher's thread ends when this is dropped.
    _running: Arc<()>,
}

/// What an engine hands on to the next one of the same process.
pub struct Heritage {
    journal: Journal,
    totals: Metrics,
    since: Instant,
}

/// An engine that has not been loaded yet.
pub struct Prepared {
    options: Options,
    heritage: Heritage,
}

impl Prepared {
    /// Restores the windows that killed runs left changed; those that cannot be reached now follow later. Reports those
    /// that stay changed. `heritage` comes from this process's previous engine.
    pub fn new(options: Options, heritage: Option<Heritage>) -> Self {
        let heritage = heritage.unwrap_or_else(|| Heritage {
            journal: Journal::open(&options.state),
            totals: Metrics::default(),
            since: Instant::now(),
        });
        let timeout = RECOVERY_TIMEOUT_AT_START;
        let failed = recover_within(timeout, &heritage.journal, &options.state, &options.helper);
        failed.into_iter().for_each(note);
        Prepared { options, heritage }
    }

    /// Loads and attaches the eBPF programs, and looks up the disks. This takes 0.1 s or more and changes no setting,
    /// so the process may exit meanwhile.
    ///
    /// # Errors
    /// See [`EngineError`].
    pub fn load(self) -> Result<Engine, EngineError> {
        let Prepared { options, heritage } = self;
        let Heritage { journal, totals: earlier_totals, since } = heritage;
        let watch = watch(&options.behind);
        let observer = observe::open(&options.scope, watch, &options.remember.names())?;
        let answers = Answers::new()?;
        let tables = watch.map(|_| observer.page_tables()).transpose()?;
        let (state, helper) = (options.state.clone(), options.helper);
        let executor = Executor::new(answers.clone(), journal, state, helper, tables);
        let mut mounts = Mounts::new(options.places, &options.state);
        let first = mounts.initial().map_err(EngineError::Mounts)?;
        let (sender, changes) = mpsc::channel();
        let wake = answers.clone();
        let running = Arc::new(());
        mounts
            .watch(sender, Arc::downgrade(&running), move || wake.wake())
            .map_err(EngineError::Watch)?;
        let (mut out, limits) = (Vec::new(), limits());
        let behind = watch.map(|_| options.behind);
        let rules = controller::Options { charge: options.charge, behind };
        let record = |place| {
            let (kernel, date) = (provenance::kernel(), provenance::date());
            Recorder::start(place, &Header::new(kernel, date, rules.clone(), limits))
        };
        let mut recorder = options.record.map(record).transpose()?;
        let controller = Controller::new(rules, recording::policy(limits)?, &mut out);
        if let Some(recorder) = &mut recorder {
            recorder.begun(sys::monotonic_ns(), &out);
        }
        let histories = Histories::new(answers.clone());
        let starts = Starts::new(options.remember, answers.clone());
        let mut engine = Engine {
            observer,
            controller,
            recorder,
            executor,
            answers,
            changes,
            exits: Exits::new()?,
            memory: Memory::default(),
            histories,
            starts,
            counted: Counted::default(),
            out,
            tick_at: 0,
            tidied_at: 0,
            next_daemon_scan_at: 0,
            histories_kept_at: sys::monotonic_ns(),
            table_errors: 0,
            left_reads: 0,
            longest_turn: Duration::ZERO,
            has_restored_windows: false,
            drops_behind: watch.is_some(),
            socket: None,
            earlier_totals,
            since,
            _running: running,
        };
        let now = sys::monotonic_ns();
        engine.carry_out();
        engine.report_memory(now);
        first.into_iter().for_each(|change| engine.on_change(now, change));
        engine.report_orphaned_windows(now);
        Ok(engine)
    }
}

/// What killed runs have changed and [`recover`] could not restore.
#[derive(Debug)]
pub struct Unrestored {
    /// Why windows may stay changed.
    pub failed: Vec<RecoveryError>,
    /// How many open files cannot be reached now and keep a window that bowwave set.
    pub open_files: usize,
}

impl Unrestored {
    /// Whether all is as before.
    pub fn is_none(&self) -> bool {
        self.failed.is_empty() && self.open_files == 0
    }
}

/// Restores the windows that killed runs left changed.
pub fn recover(state: &Path, helper: &Helper) -> Unrestored {
    let journal = Journal::open(state);
    let failed = recover_within(RECOVERY_TIMEOUT, &journal, state, helper);
    Unrestored { failed, open_files: journal.len() }
}

/// Restores for up to `timeout`. What takes longer goes on in a thread. Returns why some may stay changed.
fn recover_within(
    timeout: Duration,
    journal: &Journal,
    state: &Path,
    helper: &Helper,
) -> Vec<RecoveryError> {
    let failed = journal.recover(state);
    if journal.len() > 0 {
        let (orphans, helper) = (journal.clone(), helper.clone());
        let until = Instant::now() + timeout;
        // Those that are left are counted.
        let _ = within(timeout, move || orphans.restore_orphans(helper, until));
    }
    failed
}

/// Bounds a window by the memory budget of now, and a densely read region by half of it. What may be ahead follows the
/// budget at each access.
fn limits() -> Limits {
    let own_cgroup = cgroup::Place::of("self").file_room();
    let budget = controller::budget_bytes(meminfo::available_bytes(), own_cgroup);
    let limits = Limits::default();
    Limits {
        plan_bytes: limits.plan_bytes.min(budget),
        region_bytes: limits.region_bytes.min(budget / 2),
        ..limits
    }
}

/// What drop-behind must watch for these rules; `None` if nothing, or if this kernel cannot (see `bowwave doctor`).
fn watch(rules: &Rules) -> Option<Watch> {
    if !Features::detect().hooks.can_drop_behind() {
        return None;
    }
    match () {
        () if rules.may_be(Mode::Always) => Some(Watch { least_file_pages: 0 }),
        () if rules.may_be(Mode::Auto) => Some(Watch { least_file_pages: LEAST_FILE_PAGES }),
        () => None,
    }
}

impl Engine {
    /// Manages reads until all new devices are measured, or `stop` becomes readable. After two seconds, a device that
    /// has not answered is managed by a guess.
    ///
    /// # Errors
    /// If the source of events failed.
    pub fn measure_devices(&mut self, stop: BorrowedFd<'_>) -> Result<(), EngineError> {
        self.serve_while(|engine| engine.controller.is_measuring(), MEASURING_TIMEOUT, stop)
    }

    /// Manages reads for `time`, or until `stop` becomes readable (a signal pipe, a process's descriptor).
    ///
    /// # Errors
    /// If the source of events failed.
    pub fn serve_for(&mut self, time: Duration, stop: BorrowedFd<'_>) -> Result<(), EngineError> {
        self.serve_while(|_| true, time, stop)
    }

    fn serve_while(
        &mut self,
        is_wanted: impl Fn(&Self) -> bool,
        time: Duration,
        stop: BorrowedFd<'_>,
    ) -> Result<(), EngineError> {
        let begun = Instant::now();
        while is_wanted(self) {
            let left = time.saturating_sub(begun.elapsed());
            if left.is_zero() || self.serve_once(stop, left)? {
                break;
            }
        }
        Ok(())
    }

    /// Waits up to `timeout` for an event and handles it; returns whether `stop` is readable.
    fn serve_once(&mut self, stop: BorrowedFd<'_>, timeout: Duration) -> Result<bool, EngineError> {
        let until_tick = self.tick_at.saturating_sub(sys::monotonic_ns());
        let wait = Timespec::try_from(timeout.min(Duration::from_nanos(until_tick))).ok();
        let status_client = self.socket.as_ref().map_or(stop, Socket::readiness);
        let mut ready = [
            PollFd::from_borrowed_fd(stop, PollFlags::IN),
            PollFd::from_borrowed_fd(self.observer.readiness(), PollFlags::IN),
            PollFd::new(self.answers.readiness(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.exits.readiness(), PollFlags::IN),
            PollFd::from_borrowed_fd(status_client, PollFlags::IN),
        ];
        match poll(&mut ready, wait.as_ref()) {
            Err(rustix::io::Errno::INTR) => return Ok(false),
            Err(error) => return Err(ObserveError::Lost(error.to_string()).into()),
            Ok(_) => {}
        }
        let begun = Instant::now();
        let is_ready = |at: usize| !ready[at].revents().is_empty();
        let (is_stopped, is_asked) = (is_ready(0), is_ready(4));
        if !is_stopped {
            self.handle_events(Duration::ZERO)?;
            if is_asked {
                self.answer_status();
            }
        }
        self.longest_turn = self.longest_turn.max(begun.elapsed());
        Ok(is_stopped)
    }

    /// Drops the pages behind streams that have ended, until `timeout` has passed or `stop` says so. Pages not written
    /// by then stay cached.
    ///
    /// # Errors
    /// If the source of events failed.
    pub fn finish(
        &mut self,
        timeout: Duration,
        stop: impl Fn() -> bool,
    ) -> Result<(), EngineError> {
        let begun = Instant::now();
        self.handle_events(Duration::ZERO)?;
        if !self.controller.may_drop() {
            return Ok(());
        }
        // Read-ahead under way would bring in pages after the others have been dropped.
        self.executor.close(timeout.min(READS_TIMEOUT));
        self.controller.finish();
        if let Some(recorder) = &mut self.recorder {
            recorder.finishing(sys::monotonic_ns());
        }
        self.tick_at = 0;
        self.handle_events(Duration::ZERO)?;
        while self.controller.has_left_overs() && begun.elapsed() < timeout && !stop() {
            self.tick_at = 0;
            let is_fast = begun.elapsed() < FAST_POLLING;
            self.handle_events(if is_fast { FAST_POLL } else { SLOW_POLL })?;
            self.answer_status();
        }
        Ok(())
    }

    /// Restores open files' windows and returns the totals. The eBPF programs stay attached until the process exits:
    /// detaching them one by one takes 0.1 s.
    pub fn leave(mut self) -> Metrics {
        let (metrics, journal) = self.close();
        note_unrestored(&journal);
        std::mem::forget(self);
        metrics
    }

    /// Restores open files' windows, detaches the eBPF programs and ends the threads, so that the process can start
    /// another engine.
    pub fn stop(mut self) -> Heritage {
        let (totals, journal) = self.close();
        Heritage { journal, totals, since: self.since }
    }

    fn close(&mut self) -> (Metrics, Journal) {
        self.socket = None;
        self.keep_histories(|_| true);
        let journal = self.restore_windows();
        self.histories.wait();
        self.starts.wait();
        let metrics = self.metrics();
        match self.recorder.take().map(Recorder::finish) {
            Some(Err(error)) => note(error),
            Some(Ok(totals)) => totals.warning().into_iter().for_each(note),
            None => {}
        }
        (metrics, journal)
    }

    /// Has written down how the files of these file systems were read.
    fn keep_histories(&mut self, is_meant: impl Fn(DeviceNumber) -> bool) {
        let histories: HashMap<_, _> = self.controller.histories().collect();
        for volume in self.executor.volumes().filter(|volume| is_meant(volume.mount.dev)) {
            if let (Some(file), Some(history)) =
                (&volume.history_file, histories.get(&volume.mount.dev))
            {
                self.histories.keep(file, history);
            }
        }
    }

    fn restore_windows(&mut self) -> Journal {
        self.has_restored_windows = true;
        self.executor.restore_windows(RESTORE_TIMEOUT)
    }

    /// The managed file systems, sorted by mount point.
    pub fn mounts(&self) -> Vec<&Mount> {
        let mut mounts: Vec<_> = self.executor.volumes().map(|volume| &volume.mount).collect();
        mounts.sort_by(|one, other| one.mount_point.cmp(&other.mount_point));
        mounts
    }

    fn owned_mounts(&self) -> Vec<Mount> {
        self.executor.volumes().map(|volume| volume.mount.clone()).collect()
    }

    /// Totals so far, including those of this process's earlier engines.
    pub fn metrics(&self) -> Metrics {
        self.process_totals(self.controller.metrics())
    }

    /// What the engine is doing now.
    pub fn status(&self) -> Status {
        let status = self.controller.status(sys::monotonic_ns());
        let mut status = Status { metrics: self.process_totals(status.metrics), ..status };
        add_names(&mut status, self.executor.volumes(), |id| self.executor.device(id));
        status
    }

    /// The command starts. Reads ahead what it read at its last start, and notes what it reads now.
    ///
    /// # Errors
    /// If a file system does not answer; then does neither.
    pub fn remember(&mut self, list: &List) -> Result<(), Late> {
        let list = list.on(self.owned_mounts())?;
        self.feed(sys::monotonic_ns(), Input::Remembered(list));
        Ok(())
    }

    /// What was noted of the command's start.
    pub fn noted(&self) -> Noted {
        let mounts = self.owned_mounts();
        Noted { files: self.controller.remembered(), mounts }
    }

    /// From now on, lets `bowwave status` show this process, by a socket in the state folder; or reports why it cannot.
    pub fn answer_in(&mut self, state: &Path, role: Role) {
        self.socket = Socket::bind(state, role, self.since).map_err(note).ok();
    }

    fn answer_status(&mut self) {
        let Some(socket) = &self.socket else { return };
        if let Err(error) = socket.answer(|| self.status()) {
            note(format_args!("{error}; bowwave status does not show this process any more"));
            self.socket = None;
        }
    }

    /// Adds what the controller cannot know to its metrics.
    fn process_totals(&self, metrics: Metrics) -> Metrics {
        let lost_events = self.observer.lost_events();
        let cpu_s = sys::cpu_seconds();
        let not_read = NotRead { limited_reader: self.left_reads, ..metrics.not_read };
        let table_errors = self.table_errors;
        let longest_turn_s = self.longest_turn.as_secs_f64();
        let own = Metrics { lost_events, cpu_s, table_errors, longest_turn_s, not_read, ..metrics };
        own.after(&self.earlier_totals)
    }

    /// Waits up to `timeout` for the first event, and feeds the controller all that has come.
    fn handle_events(&mut self, timeout: Duration) -> Result<(), EngineError> {
        let events = self.observer.wait(timeout)?;
        // Take the answers before reading the counters: the reads that an answer tells of are counted by then.
        let answers = self.answers.take();
        self.report_disk_stats();
        for (at, answer) in answers {
            self.feed(at, answer);
        }
        for change in self.changes.try_iter().collect::<Vec<_>>() {
            self.on_change(sys::monotonic_ns(), change);
        }
        for Observed { at, input, spender, command } in events {
            if let Some(command) = command
                && let Some(tgid) = reader_of(&input)
                && let Some(joined) = self.starts.join(at, command, spender.uid, tgid)
            {
                self.feed(at, joined);
            }
            if let Some(input) = self.with_reader_group(at, input, spender) {
                self.feed(at, input);
            }
        }
        let now = sys::monotonic_ns();
        let is_tidy_due = now.saturating_sub(self.tidied_at) >= TIDY_INTERVAL_NS;
        for tgid in self.exits.take(is_tidy_due) {
            self.feed(now, Input::Exited(tgid));
        }
        if is_tidy_due {
            self.tidied_at = now;
            self.tidy(now);
        }
        if now >= self.tick_at {
            self.feed(now, Input::Tick);
            self.tick_at = self.controller.next_tick(now);
        }
        Ok(())
    }

    fn tidy(&mut self, now: Nanos) {
        self.observer.tidy();
        if self.drops_behind && now >= self.next_daemon_scan_at {
            let before = sys::thread_cpu_ns();
            self.observer.update_daemons();
            let took_ns = sys::thread_cpu_ns().saturating_sub(before);
            let pause_ns = (DAEMON_SCAN_SHARE * took_ns).min(DAEMON_SCAN_INTERVAL_NS);
            self.next_daemon_scan_at = now + pause_ns;
        }
        if now.saturating_sub(self.histories_kept_at) >= HISTORY_INTERVAL_NS {
            self.histories_kept_at = now;
            self.keep_histories(|_| true);
            let files = self.executor.volumes().flat_map(|volume| volume.history_file.as_deref());
            self.histories.forget_gone(&files.collect());
        }
        self.starts.tidy(now);
        self.report_memory(now);
        self.report_orphaned_windows(now);
    }

    /// Gives the controller an input and carries out its commands.
    fn feed(&mut self, now: Nanos, input: Input) {
        self.controller.on(now, &input, &mut self.out);
        if let Some(recorder) = &mut self.recorder {
            recorder.note(now, &input, &self.out);
        }
        // The input may have moved the next tick forward.
        self.tick_at = self.tick_at.min(self.controller.next_tick(now));
        self.carry_out();
    }

    fn carry_out(&mut self) {
        let mut out = std::mem::take(&mut self.out);
        self.executor.execute(&out);
        for command in out.drain(..) {
            self.manage_lists(&command);
            if self.configure_events(&command).is_err() {
                // An eBPF map was full, or a program could not be attached: some event will not be reported.
                self.table_errors += 1;
            }
        }
        self.out = out;
    }

    /// Carries out the commands about lists of starts.
    fn manage_lists(&mut self, command: &Command) {
        match command {
            Command::Recall(start) => self.starts.recall(*start, self.owned_mounts()),
            Command::KeepStart { start, files } => {
                let mounts = self.owned_mounts();
                self.starts.keep(*start, files, mounts);
            }
            _ => {}
        }
    }

    /// Carries out the commands about which events to report.
    fn configure_events(&mut self, command: &Command) -> Result<(), ObserveError> {
        match *command {
            Command::Mark(file, mark) => self.observer.set_mark(file, mark),
            Command::Listen(file, listening) => self.observer.listen(file, listening),
            Command::Watch(dev, Some(interest)) => self.observer.watch_file_system(dev, interest),
            Command::Watch(dev, None) => self.observer.forget_file_system(dev),
            Command::Count(backing, is_counted) => self.count(backing, is_counted),
            Command::LookBehind(on) => self.observer.look_behind(on),
            Command::Touched(stream) => {
                let span = self.observer.touched(stream);
                self.answers.send(Completed::Touched { stream, span });
                Ok(())
            }
            Command::ForgetStream(stream) => {
                self.observer.forget_stream(stream);
                Ok(())
            }
            Command::WatchProcess(tgid, is_watched) => {
                self.exits.watch(tgid, is_watched);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Starts or stops counting the reads of a device's disks. Where that fails, they are managed without counters:
    /// counters that stand still would say that nobody waits.
    fn count(&mut self, backing: BackingId, is_counted: bool) -> Result<(), ObserveError> {
        if !is_counted {
            let unused = self.counted.stop(backing);
            // All of them, also where one was not counted.
            let ends = unused.into_iter().map(|dev| self.observer.forget_disk(dev));
            return ends.fold(Ok(()), Result::and);
        }
        let disks = self.executor.members(backing).iter().map(|disk| disk.dev).collect();
        let new = self.counted.start(backing, disks);
        let started =
            new.into_iter().try_for_each(|(dev, slot)| self.observer.watch_disk(dev, slot));
        started.inspect_err(|_| drop(self.count(backing, false)))
    }

    fn on_change(&mut self, now: Nanos, change: Change) {
        match change {
            Change::Mounted(volume, device, history) => {
                let Device { backing, facts, .. } = *device;
                let (dev, file) = (volume.mount.dev, volume.history_file.clone());
                self.executor.add(volume, device);
                self.feed(now, Input::Mounted(Mounted { dev, backing, device: facts }));
                if let Some(history) = file.and_then(|file| self.histories.latest(&file, history)) {
                    self.feed(now, Input::History(dev, history));
                }
            }
            Change::Gone(dev) => {
                self.keep_histories(|volume| volume == dev);
                // Feed first: the lane still answers what was asked of it before.
                self.feed(now, Input::Unmounted(dev));
                self.executor.remove(dev);
            }
        }
    }

    fn report_disk_stats(&mut self) {
        let now = sys::monotonic_ns();
        let news = self.counted.news(|slot| self.observer.disk_stats(slot));
        for (backing, stats) in news {
            self.feed(now, Input::DiskStats(backing, stats));
        }
    }

    /// Tells the controller of windows that no thread will restore: killed runs, earlier engines and ended threads
    /// leave some.
    fn report_orphaned_windows(&mut self, now: Nanos) {
        for orphan in self.executor.orphaned_windows() {
            self.feed(now, Input::Completed(orphan));
        }
    }

    fn report_memory(&mut self, now: Nanos) {
        if let Some(input) = self.memory.machine(now) {
            self.feed(now, input);
        }
    }

    /// Adds the reader's group to an event, and tells the controller of that group first. Returns `None` for a read
    /// that is left to the kernel.
    fn with_reader_group(
        &mut self,
        at: Nanos,
        mut input: Input,
        spender: Spender,
    ) -> Option<Input> {
        let (tgid, cgroup, is_read) = match &mut input {
            Input::Access(access) => (access.of.tgid, &mut access.cgroup, true),
            Input::FileMiss(miss) => (miss.of.tgid, &mut miss.cgroup, true),
            Input::Passed(passed) => (passed.of.tgid, &mut passed.cgroup, false),
            _ => return Some(input),
        };
        let (reader, group_stats) = self.memory.reader(at, tgid, spender);
        *cgroup = reader.group;
        if let Some(stats) = group_stats {
            self.feed(at, stats);
        }
        let is_left = is_read && self.starts.is_left_to_kernel(tgid, reader.is_left_to_kernel);
        self.left_reads += u64::from(is_left);
        (!is_left).then_some(input)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if !self.has_restored_windows {
            note_unrestored(&self.restore_windows());
        }
    }
}

/// The process that has caused an event.
fn reader_of(input: &Input) -> Option<Tgid> {
    match input {
        Input::Access(access) => Some(access.of.tgid),
        Input::FileMiss(miss) => Some(miss.of.tgid),
        _ => None,
    }
}

fn note_unrestored(journal: &Journal) {
    let files = journal.len();
    if files > 0 {
        note(format_args!(
            "{files} open files keep the window that bowwave set, as they could not be reached; the \
             next start of bowwave restores them"
        ));
    }
}
