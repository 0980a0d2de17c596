//! The loop: what has happened becomes inputs, and what the controller answers is carried out.
//!
//! ```text
//!   eBPF ring --> Access, Passed --.
//!   lanes ------> Completed --------+--> controller --> commands --> observe: Mark, Listen, Watch ...
//!   mounts -----> Mounted ---------'                         '----> execute: Read, SetWindow, Release ...
//! ```
//!
//! If the process is killed, the descriptors of the eBPF programs close, they are unloaded, and the kernel's own
//! read-ahead goes on at the next miss.

use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use controller::behind::{LEAST_FILE_PAGES, Mode, Rules};
use controller::ids::BackingId;
use controller::metrics::Metrics;
use controller::{Charge, Command, Completed, Controller, DiskStats, Input, Nanos, Status};
use linux::mounts::{Disk, Mount};
use linux::stderr::note;
use linux::{cgroup, meminfo, provenance, sys};
use readahead::DeviceNumber;
use readahead::adaptive::Limits;
use recording::{CreateError, Header, OddLimits, Place, Recorder};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::execute::{Answers, Executor, Journal};
use crate::exits::Exits;
use crate::facts::Facts;
use crate::helper::Helper;
use crate::kernel::Features;
use crate::mounted::{Change, Device, Mounts};
use crate::observe::{self, DISK_SLOTS, ObserveError, Observer, Scope, Watch};
use crate::places::Places;
use crate::status::{self, Socket};

/// What to manage, and how.
#[derive(Debug)]
pub struct Options {
    /// Whose reads.
    pub scope: Scope,
    /// The file systems to manage.
    pub places: Places,
    /// Where measurements are remembered until reboot, and journals are kept.
    pub state: PathBuf,
    /// Who does what may never end.
    pub helper: Helper,
    /// Who pays for what is read ahead.
    pub charge: Charge,
    /// Whose streams drop behind.
    pub behind: Rules,
    /// Where what is heard and asked for is recorded.
    pub record: Option<Place>,
}

/// Why the engine cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The policy cannot have such limits.
    #[error(transparent)]
    Limits(#[from] OddLimits),
    /// The recording cannot be begun.
    #[error(transparent)]
    Record(#[from] CreateError),
    /// Nothing can be observed.
    #[error(transparent)]
    Observe(#[from] ObserveError),
    /// The table of mounts cannot be read.
    #[error("cannot read the table of mounted file systems: {0}; is /proc mounted?")]
    Mounts(io::Error),
    /// The kernel has no descriptors left.
    #[error("cannot wait for events: {0}; raise the limit of open files (ulimit -n)")]
    Wait(#[from] rustix::io::Errno),
}

/// At shutdown, the loop looks every millisecond for half a second: what a disk has not taken by then takes it long.
const SOON: Duration = Duration::from_millis(500);

/// After that it looks so often.
const LATER: Duration = Duration::from_millis(50);

/// Read-ahead under way is waited for so long at the end; a server may not answer.
const MOST_CLOSING: Duration = Duration::from_millis(300);

/// Windows are given back within so long at the end. It takes as long only where a program keeps others from looking.
const MOST_GIVING_BACK: Duration = Duration::from_secs(1);

/// At the next start what is left is waited for for so long: reads can be managed meanwhile.
const MOST_RECOVERING_AT_START: Duration = Duration::from_millis(500);

/// The same for `--recover`, which has nothing else to do. systemd runs it when the service has stopped, and kills it after
/// 5 s (`TimeoutStopSec`).
const MOST_RECOVERING: Duration = Duration::from_secs(4);

/// Measuring a disk takes a fraction of a second; one that takes longer is managed by a guess meanwhile.
pub const MOST_MEASURING: Duration = Duration::from_secs(2);

/// Eases the source of events, and looks for processes without a descriptor, this often.
const TIDY_NS: Nanos = 1_000_000_000;

/// Looking for other daemons takes one part in so many of a processor, or more where there are very many processes: it
/// looks at each of them.
const LOOKING_SHARE: u64 = 400;

/// A daemon that starts is noticed within so long, whatever looking takes.
const MOST_NOT_LOOKING_NS: Nanos = 10_000_000_000;

/// Controller, source of events and executor, put together.
pub struct Engine {
    observer: Box<dyn Observer>,
    controller: Controller,
    recorder: Option<Recorder>,
    executor: Executor,
    answers: Answers,
    changes: Receiver<Change>,
    exits: Exits,
    facts: Facts,
    slots: Slots,
    /// The counters that the controller knows.
    told: HashMap<BackingId, DiskStats>,
    batch: Vec<(Nanos, Input)>,
    out: Vec<Command>,
    tick_at: Nanos,
    tidied_at: Nanos,
    /// When to look for other daemons next.
    daemons_at: Nanos,
    /// Tables of the kernel half that could not be written.
    errors: u64,
    has_given_back: bool,
    drops_behind: bool,
    socket: Option<Socket>,
    /// Totals of the process's engines before this one.
    before: Metrics,
    /// When the first of them began.
    since: Instant,
    /// The thread that looks for mounts ends with it.
    _running: Arc<()>,
}

/// The counters of disks in the kernel half.
#[derive(Default)]
struct Slots {
    /// Each disk's number, and its counters' place.
    counted: HashMap<BackingId, (DeviceNumber, usize)>,
    disks: HashMap<BackingId, Disk>,
}

/// What an engine leaves to the next one of the same process.
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
    /// Puts back what earlier runs that were killed have left. What lies on a server that does not answer is put
    /// back later. `before` is what the process's engine before this one has left.
    pub fn new(options: Options, before: Option<Heritage>) -> Self {
        let heritage = before.unwrap_or_else(|| Heritage {
            journal: Journal::open(&options.state),
            totals: Metrics::default(),
            since: Instant::now(),
        });
        recover_within(
            &heritage.journal,
            &options.state,
            &options.helper,
            MOST_RECOVERING_AT_START,
        );
        Prepared { options, heritage }
    }

    /// Loads and attaches the eBPF programs, and finds out about the disks. This takes a tenth of a second
    /// or more, and changes no setting: a process may exit while one of its threads is at it.
    ///
    /// # Errors
    /// See [`EngineError`].
    pub fn load(self) -> Result<Engine, EngineError> {
        let Prepared { options, heritage: Heritage { journal, totals, since } } = self;
        let watch = watch(&options.behind);
        let observer = observe::open(&options.scope, watch)?;
        let answers = Answers::new()?;
        let tables = watch.map(|_| observer.page_tables()).transpose()?;
        let of = (options.state.clone(), options.helper);
        let executor = Executor::new(answers.clone(), journal, of, tables);
        let mut mounts = Mounts::new(options.places, &options.state);
        let first = mounts.first().map_err(EngineError::Mounts)?;
        let (sender, changes) = mpsc::channel();
        let wake = answers.clone();
        let running = Arc::new(());
        mounts.watch(sender, Arc::downgrade(&running), move || wake.wake());
        let (mut out, limits) = (Vec::new(), limits());
        let behind = watch.map(|_| options.behind);
        let of = controller::Options { charge: options.charge, behind };
        let mut recorder = None;
        if let Some(place) = options.record {
            let (kernel, date) = (provenance::kernel(), provenance::date());
            let header = Header::new(kernel, date, of.clone(), limits);
            recorder = Some(Recorder::start(place, &header)?);
        }
        let controller = Controller::new(of, recording::policy(limits)?, &mut out);
        if let Some(recorder) = &mut recorder {
            recorder.begun(sys::monotonic_ns(), &out);
        }
        let mut engine = Engine {
            observer,
            controller,
            recorder,
            executor,
            answers,
            changes,
            exits: Exits::new()?,
            facts: Facts::default(),
            slots: Slots::default(),
            told: HashMap::new(),
            batch: Vec::new(),
            out,
            tick_at: 0,
            tidied_at: 0,
            daemons_at: 0,
            errors: 0,
            has_given_back: false,
            drops_behind: watch.is_some(),
            socket: None,
            before: totals,
            since,
            _running: running,
        };
        let now = sys::monotonic_ns();
        engine.carry_out();
        engine.look_at_memory(now);
        first.into_iter().for_each(|change| engine.on_change(now, change));
        engine.hear_of_left_windows(now);
        Ok(engine)
    }
}

/// Puts back what runs that were killed have left. Returns how many open files keep a window that is not their own,
/// since they cannot be reached now.
pub fn recover(state: &Path, helper: &Helper) -> usize {
    let journal = Journal::open(state);
    recover_within(&journal, state, helper, MOST_RECOVERING);
    journal.len()
}

/// Has a thread put back what was left, and waits for it for so long at most.
fn recover_within(journal: &Journal, state: &Path, helper: &Helper, most: Duration) {
    journal.recover(state);
    if journal.len() == 0 {
        return;
    }
    let (left, helper) = (journal.clone(), helper.clone());
    let (done, inbox) = mpsc::channel();
    let until = Instant::now() + most;
    let give_back = move || {
        left.give_back(helper, until);
        let _ = done.send(());
    };
    if thread::Builder::new().name("bowwave-recover".into()).spawn(give_back).is_ok() {
        let _ = inbox.recv_timeout(most);
    }
}

/// What is read ahead fits the memory there is, and a densely read region half of that.
fn limits() -> Limits {
    let own_cgroup = cgroup::Place::of("self").file_room();
    let ahead_bytes = controller::budget_bytes(meminfo::available_bytes(), own_cgroup);
    let limits = Limits::default();
    Limits {
        plan_bytes: limits.plan_bytes.min(ahead_bytes),
        region_bytes: limits.region_bytes.min(ahead_bytes / 2),
        ahead_bytes,
        ..limits
    }
}

/// What has to be watched for these rules; `None` if nothing, or if this kernel cannot (`bowwave doctor` tells).
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
    /// Attaches to the kernel and finds out about the disks; reads are managed from now on.
    ///
    /// # Errors
    /// See [`EngineError`].
    pub fn start(options: Options, before: Option<Heritage>) -> Result<Self, EngineError> {
        Prepared::new(options, before).load()
    }

    /// Manages reads until every device is measured that has not been met before, for so long at most, or until
    /// `stop` becomes readable. A device that does not answer is managed by a guess.
    ///
    /// # Errors
    /// If the source of events failed.
    pub fn get_to_know_devices(
        &mut self,
        most: Duration,
        stop: BorrowedFd<'_>,
    ) -> Result<(), EngineError> {
        let until = Instant::now() + most;
        while self.controller.is_measuring() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.serve_once(stop, left)? {
                break;
            }
        }
        Ok(())
    }

    /// Manages reads until `stop` becomes readable (a signal pipe, a process's descriptor).
    ///
    /// # Errors
    /// If the source of events failed.
    pub fn serve_until(&mut self, stop: BorrowedFd<'_>) -> Result<(), EngineError> {
        while !self.serve_once(stop, Duration::MAX)? {}
        Ok(())
    }

    /// Manages reads for so long, or until `stop` becomes readable; tells whether it is.
    ///
    /// # Errors
    /// If the source of events failed.
    pub fn serve_for(&mut self, most: Duration, stop: BorrowedFd<'_>) -> Result<bool, EngineError> {
        let until = Instant::now() + most;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            if self.serve_once(stop, left)? {
                return Ok(true);
            }
        }
    }

    /// Waits until something happens, for so long at most, and handles it; tells whether `stop` is readable.
    fn serve_once(&mut self, stop: BorrowedFd<'_>, most: Duration) -> Result<bool, EngineError> {
        let until_tick = self.tick_at.saturating_sub(sys::monotonic_ns());
        let wait = most.min(Duration::from_nanos(until_tick));
        let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
        let asked = self.socket.as_ref().map_or(stop, Socket::readiness);
        let mut ready = [
            PollFd::from_borrowed_fd(stop, PollFlags::IN),
            PollFd::from_borrowed_fd(self.observer.readiness(), PollFlags::IN),
            PollFd::new(self.answers.readiness(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.exits.readiness(), PollFlags::IN),
            PollFd::from_borrowed_fd(asked, PollFlags::IN),
        ];
        match poll(&mut ready, Some(&wait)) {
            Err(rustix::io::Errno::INTR) => return Ok(false),
            Err(error) => return Err(ObserveError::Lost(error.to_string()).into()),
            Ok(_) => {}
        }
        let (is_stopped, is_asked) =
            (!ready[0].revents().is_empty(), !ready[4].revents().is_empty());
        if !is_stopped {
            self.turn(Duration::ZERO)?;
            if is_asked {
                self.answer();
            }
        }
        Ok(is_stopped)
    }

    /// Lets go of what ended streams have left, for at most so long and until `stop` says so: what is not
    /// written by then stays cached.
    ///
    /// # Errors
    /// If the source of events failed.
    pub fn finish(&mut self, most: Duration, stop: impl Fn() -> bool) -> Result<(), EngineError> {
        let begun = Instant::now();
        self.turn(Duration::ZERO)?;
        if !self.controller.may_drop() {
            return Ok(());
        }
        // What they are still reading would come after all the rest had gone.
        self.executor.close(most.min(MOST_CLOSING));
        self.controller.finish();
        if let Some(recorder) = &mut self.recorder {
            recorder.finishing(sys::monotonic_ns());
        }
        self.tick_at = 0;
        self.turn(Duration::ZERO)?;
        while self.controller.has_left_overs() && begun.elapsed() < most && !stop() {
            let pause = if begun.elapsed() < SOON { Duration::from_millis(1) } else { LATER };
            self.tick_at = 0;
            self.turn(pause)?;
            self.answer();
        }
        Ok(())
    }

    /// Gives open files their windows back, and returns the totals. The eBPF programs stay until the process exits:
    /// detaching them one by one takes a tenth of a second.
    pub fn leave(mut self) -> Metrics {
        let (metrics, journal) = self.close();
        note_left(&journal);
        std::mem::forget(self);
        metrics
    }

    /// Like [`leave`](Self::leave), but also detaches the eBPF programs and ends the threads, so that the process can
    /// start another engine, which gets what this one leaves.
    pub fn stop(mut self) -> Heritage {
        let (totals, journal) = self.close();
        Heritage { journal, totals, since: self.since }
    }

    fn close(&mut self) -> (Metrics, Journal) {
        self.socket = None;
        let journal = self.give_back();
        let metrics = self.metrics();
        if let Some(Err(error)) = self.recorder.take().map(Recorder::finish) {
            note(format_args!("{error}"));
        }
        (metrics, journal)
    }

    fn give_back(&mut self) -> Journal {
        self.has_given_back = true;
        self.executor.give_back(MOST_GIVING_BACK)
    }

    /// The file systems managed, by mount point.
    pub fn mounts(&self) -> Vec<&Mount> {
        let mut mounts: Vec<_> = self.executor.volumes().map(|volume| &volume.mount).collect();
        mounts.sort_by(|one, other| one.mount_point.cmp(&other.mount_point));
        mounts
    }

    /// Totals so far, of the process's earlier engines, too.
    pub fn metrics(&self) -> Metrics {
        self.with_own(self.controller.metrics())
    }

    /// What it is doing at the moment.
    pub fn status(&self) -> Status {
        let status = self.controller.status(sys::monotonic_ns());
        let mut status = Status { metrics: self.with_own(status.metrics), ..status };
        status::add_names(&mut status, self.executor.volumes(), &self.slots.disks);
        status
    }

    /// Answers on that socket until the end.
    pub fn answer_on(&mut self, socket: Socket) {
        self.socket = Some(socket.since(self.since));
    }

    /// Answers the clients that wait for a status.
    fn answer(&mut self) {
        let Some(socket) = &self.socket else { return };
        if let Err(error) = socket.answer(|| self.status()) {
            note(format_args!("{error}; bowwave status does not show this process any more"));
            self.socket = None;
        }
    }

    fn with_own(&self, metrics: Metrics) -> Metrics {
        let lost_events = self.observer.lost_events();
        let cpu_s = sys::cpu_seconds();
        let own = Metrics { lost_events, cpu_s, table_errors: self.errors, ..metrics };
        own.after(&self.before)
    }

    /// Handles what has happened, waiting up to `timeout` for the first event.
    fn turn(&mut self, timeout: Duration) -> Result<(), EngineError> {
        let mut batch = std::mem::take(&mut self.batch);
        self.observer.wait(timeout, &mut |at, input| batch.push((at, input)))?;
        // Counters are read after an answer has come, so that what was submitted is counted once at least.
        let answers = self.answers.take();
        self.look_at_disks();
        for (at, answer) in answers {
            self.feed(at, answer);
        }
        for change in self.changes.try_iter().collect::<Vec<_>>() {
            self.on_change(sys::monotonic_ns(), change);
        }
        for (at, input) in batch.drain(..) {
            if let Some(input) = self.with_group(at, input) {
                self.feed(at, input);
            }
        }
        self.batch = batch;
        let now = sys::monotonic_ns();
        let is_time = now.saturating_sub(self.tidied_at) >= TIDY_NS;
        for tgid in self.exits.take(is_time) {
            self.feed(now, Input::Exited(tgid));
        }
        if is_time {
            self.tidied_at = now;
            self.observer.tidy();
            if self.drops_behind && now >= self.daemons_at {
                let before = sys::thread_cpu_ns();
                self.observer.note_daemons();
                let took_ns = sys::thread_cpu_ns().saturating_sub(before);
                self.daemons_at = now + (LOOKING_SHARE * took_ns).min(MOST_NOT_LOOKING_NS);
            }
            self.look_at_memory(now);
            self.hear_of_left_windows(now);
        }
        if now >= self.tick_at {
            self.feed(now, Input::Tick);
            self.tick_at = self.controller.next_tick(now);
        }
        Ok(())
    }

    /// Gives an input to the controller, and carries out what it asks for.
    fn feed(&mut self, now: Nanos, input: Input) {
        self.controller.on(now, &input, &mut self.out);
        if let Some(recorder) = &mut self.recorder {
            recorder.note(now, &input, &self.out);
        }
        // A change may have come due meanwhile.
        self.tick_at = self.tick_at.min(self.controller.next_tick(now));
        self.carry_out();
    }

    fn carry_out(&mut self) {
        let mut out = std::mem::take(&mut self.out);
        self.executor.execute(&out);
        for command in out.drain(..) {
            if self.observe(&command).is_err() {
                // A table that is full for a moment: something is not heard of.
                self.errors += 1;
            }
        }
        self.out = out;
    }

    /// Carries out what the source of events sees to.
    fn observe(&mut self, command: &Command) -> Result<(), ObserveError> {
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

    /// Has the block layer's counters of a disk kept, or no more; beyond the last slot reads are managed without.
    fn count(&mut self, backing: BackingId, is_counted: bool) -> Result<(), ObserveError> {
        if !is_counted {
            self.told.remove(&backing);
            let counted = self.slots.counted.remove(&backing);
            return counted.map_or(Ok(()), |(dev, _)| self.observer.forget_disk(dev));
        }
        let is_free = |slot: &usize| self.slots.counted.values().all(|(_, taken)| taken != slot);
        let free = (0..DISK_SLOTS).find(is_free);
        let (Some(disk), Some(slot)) = (self.slots.disks.get(&backing), free) else {
            return Ok(());
        };
        let dev = disk.dev;
        self.slots.counted.insert(backing, (dev, slot));
        self.observer.watch_disk(dev, slot)
    }

    fn on_change(&mut self, now: Nanos, change: Change) {
        match change {
            Change::Mounted(volume, device) => {
                let Device { backing, ref disk, .. } = *device;
                if let Some(disk) = disk {
                    self.slots.disks.insert(backing, disk.clone());
                }
                let mounted = Change::mounted(&volume, &device);
                self.executor.add(volume, &device);
                self.feed(now, Input::Mounted(mounted));
            }
            Change::Gone(dev) => {
                // What was asked for before it went is answered by its lane.
                self.feed(now, Input::Unmounted(dev));
                if let Some(backing) = self.executor.remove(dev) {
                    self.slots.disks.remove(&backing);
                }
            }
        }
    }

    fn look_at_disks(&mut self) {
        let now = sys::monotonic_ns();
        let counted: Vec<_> =
            self.slots.counted.iter().map(|(id, (_, slot))| (*id, *slot)).collect();
        for (backing, slot) in counted {
            let stats = self.observer.disk_stats(slot);
            if self.told.insert(backing, stats) != Some(stats) {
                self.feed(now, Input::DiskStats(backing, stats));
            }
        }
    }

    /// A thread that has ended may have left some, of an earlier engine's also.
    fn hear_of_left_windows(&mut self, now: Nanos) {
        for left in self.executor.left_behind() {
            self.feed(now, Input::Completed(left));
        }
    }

    fn look_at_memory(&mut self, now: Nanos) {
        if let Some(input) = self.facts.machine(now) {
            self.feed(now, input);
        }
    }

    /// The event with its reader's group, of which the controller is told first; `None` of a reader that may read only
    /// so much in a second: the kernel reads ahead for it within that.
    fn with_group(&mut self, at: Nanos, input: Input) -> Option<Input> {
        let mut input = input;
        let (tgid, cgroup, is_read_for) = match &mut input {
            Input::Access(access) => (access.of.tgid, &mut access.cgroup, true),
            Input::FileMiss(miss) => (miss.of.tgid, &mut miss.cgroup, true),
            Input::Passed(passed) => (passed.of.tgid, &mut passed.cgroup, false),
            _ => return Some(input),
        };
        let (reader, told) = self.facts.reader(at, tgid);
        *cgroup = reader.group;
        if let Some(told) = told {
            self.feed(at, told);
        }
        let is_left_alone = reader.is_throttled && is_read_for;
        (!is_left_alone).then_some(input)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if !self.has_given_back {
            note_left(&self.give_back());
        }
    }
}

/// Says which windows stay as they are.
fn note_left(journal: &Journal) {
    let left = journal.len();
    if left > 0 {
        note(format_args!(
            "{left} open files keep the window they were given, as it could not be taken back; the \
             next start of bowwave does that"
        ));
    }
}
