//! The policy on top of the kernel's: bowwave's controller, or the worst one possible.
//!
//! ```text
//!   read, fault, mark, stream step --> report --> [ controller ] --> commands
//!   block layer, memory, time ------->               ^                 |
//!                                                    |                 +--> at once: Mark, Listen, Watch ...
//!                                     answers <------+-- execute <-----+--> after REACTION_NS: Read, SetWindow ...
//! ```
//!
//! The controller is the one that runs live. It gets events as the eBPF programs send them: none for a muted file, and
//! one for each mark of its own.

mod behind;
mod disk;
mod execute;
mod remembered;
mod report;
mod walk;

use std::collections::{HashMap, VecDeque};

use controller::ids::{BackingId, CgroupId, DeviceNumber, FileKey, FileRef, Tgid};
use controller::{
    Command, Completed, Controller, DeviceFacts, Input, Interest, Listening, MemoryStats, Mounted,
    Options, Origin,
};
use readahead::{Access, Action, DeviceCost, FileId, Hint, Nanos, Plan, Policy};

use crate::account::LastWindow;
use crate::cache::PageCache;
use crate::view::View;
use crate::worst::Worst;
use behind::Streams;
use disk::Disk;
pub(crate) use disk::Started;
use remembered::Ranges;
use walk::{Heads, Listings};

/// Time from an event to the execution of a command: through a ring buffer, and a system call.
const REACTION_NS: Nanos = 100_000;

/// The one file system of the machine.
const DEV: DeviceNumber = DeviceNumber { major: 8, minor: 0 };

/// The memory cgroup of all readers.
const CGROUP: CgroupId = CgroupId(1);

/// The one device of the machine.
const BACKING: BackingId = BackingId(0);

/// The policy on top of the kernel's.
pub enum OnTop {
    /// Bowwave.
    Bowwave(Bowwave),
    /// The policy that does the most harm.
    Worst(Worst),
}

/// Bowwave: the controller's options and policy, and how much memory there is.
pub struct Bowwave {
    /// The controller's options.
    pub options: Options,
    /// Its policy.
    pub policy: Box<dyn Policy>,
    /// How much memory there is.
    pub memory: MemoryStats,
}

impl Bowwave {
    /// Bowwave with this policy. All readers together may have `ahead_bytes` ahead; nothing is dropped behind.
    pub fn new(policy: Box<dyn Policy>, ahead_bytes: u64) -> Self {
        /// The controller's budget is one part in this many of what its own cgroup may hold.
        const LIMIT_SHARE: u64 = 4;
        let own_cgroup_bytes = Some(ahead_bytes.saturating_mul(LIMIT_SHARE));
        let memory = MemoryStats::Machine { available_bytes: None, own_cgroup_bytes };
        Bowwave { options: Options::default(), policy, memory }
    }
}

/// What decides.
enum Decider {
    Bowwave(Box<Controller>),
    Worst(Worst, Plan),
}

/// Events under way.
#[derive(Debug)]
enum Due {
    /// A command reaches the kernel.
    Command(Command),
    /// The controller gets an input.
    Input(Input),
    /// Requests reach the block layer.
    Submit,
    /// The next file of a walk is read ahead.
    Heads(Heads),
    /// The next range of a remembered start is read ahead.
    Ranges(Ranges),
}

/// What surrounds the decider: the state of the eBPF programs, and what is under way.
pub(crate) struct Body {
    decider: Decider,
    /// In the order in which they are due.
    due: VecDeque<(Nanos, Due)>,
    /// Each turn takes it and gives it back, so that it is allocated once.
    out: Vec<Command>,
    /// What the controller wants to hear of each file, by its number.
    files: Vec<Listening>,
    listings: Listings,
    /// Which accesses are reported at all; none before the file system is watched.
    interest: Option<Interest>,
    disk: Disk,
    streams: Option<Streams>,
    /// The last request for a process's reading of a file.
    windows: HashMap<(Tgid, u32), LastWindow>,
    tick_at: Nanos,
}

impl Body {
    /// For a machine whose device has this cost.
    pub(crate) fn new(top: OnTop, cost: DeviceCost) -> Self {
        let mut out = Vec::new();
        let (decider, streams, memory) = match top {
            OnTop::Bowwave(Bowwave { options, policy, memory }) => {
                let streams = options.behind.as_ref().map(Streams::new);
                let controller = Controller::new(options, policy, &mut out);
                (Decider::Bowwave(Box::new(controller)), streams, Some(memory))
            }
            OnTop::Worst(worst) => (Decider::Worst(worst, Plan::new()), None, None),
        };
        let mut body = Body {
            decider,
            due: VecDeque::new(),
            out: Vec::new(),
            files: Vec::new(),
            listings: Listings::new(),
            interest: None,
            disk: Disk::default(),
            streams,
            windows: HashMap::new(),
            tick_at: Nanos::MAX,
        };
        if let Decider::Bowwave(controller) = &mut body.decider {
            let device = DeviceFacts { cost, origin: Origin::Measured, is_counted: true };
            let mounted = Input::Mounted(Mounted { dev: DEV, backing: BACKING, device });
            let first = memory.into_iter().map(Input::MemoryStats).chain([mounted]);
            first.for_each(|input| controller.on(0, &input, &mut out));
            body.tick_at = controller.next_tick(0);
        } else {
            body.interest = Some(Interest::All);
        }
        out.iter().for_each(|command| body.observe(0, command));
        body
    }

    /// Whether it does all the harm it may.
    pub(crate) fn is_worst(&self) -> bool {
        matches!(self.decider, Decider::Worst(..))
    }

    /// The time of its next event.
    pub(crate) fn next_event(&self) -> Option<Nanos> {
        self.due.front().map(|(at, _)| *at)
    }

    /// When it needs a tick, as long as other events go on.
    pub(crate) fn next_tick(&self) -> Nanos {
        self.tick_at
    }

    /// What is known of a file.
    fn listening(&self, file: u32) -> Listening {
        match &self.decider {
            Decider::Bowwave(_) => self.files.get(file as usize).copied().unwrap_or_default(),
            Decider::Worst(..) => Listening { marked_chunks: u64::MAX, ..Listening::default() },
        }
    }

    /// Carries out at once what the eBPF programs do. The rest is due when it reaches the kernel.
    fn observe(&mut self, now: Nanos, command: &Command) {
        match *command {
            Command::Listen(file, listening) => {
                let number = file.ino as usize;
                if self.files.len() <= number {
                    self.files.resize(number + 1, Listening::default());
                }
                self.files[number] = listening;
            }
            Command::Watch(_, interest) => self.interest = interest,
            Command::Count(_, is_counted) => self.disk.count(is_counted),
            Command::LookBehind(on) => {
                if let Some(streams) = &mut self.streams {
                    streams.look(on);
                }
            }
            Command::ForgetStream(stream) => {
                if let Some(streams) = &mut self.streams {
                    streams.forget(stream);
                }
            }
            Command::WatchProcess(tgid, is_watched) => {
                if let Some(streams) = &mut self.streams {
                    streams.watch(tgid, is_watched);
                }
            }
            Command::Touched(stream) => {
                let span = self.streams.as_ref().and_then(|streams| streams.touched(stream));
                self.arrange(
                    now,
                    Due::Input(Input::Completed(Completed::Touched { stream, span })),
                );
            }
            Command::ForgetListing(listing) => {
                self.listings.remove(&listing);
            }
            // `account` sets marks, in the cache. The device's cost is known.
            Command::Mark(..) | Command::Probe(_) | Command::Remember(..) => {}
            // All processes belong to the start that `begin_start` reports.
            Command::Recall(_) | Command::KeepStart { .. } => {}
            Command::Read { .. }
            | Command::List { .. }
            | Command::ReadFiles { .. }
            | Command::ReadRemembered { .. }
            | Command::SetWindow { .. }
            | Command::Describe(..)
            | Command::WriteOut { .. }
            | Command::Release { .. } => self.arrange(now, Due::Command(command.clone())),
        }
    }

    fn arrange(&mut self, now: Nanos, due: Due) {
        self.arrange_at(now + REACTION_NS, due);
    }

    /// Arranges an event behind those that are due at the same time.
    fn arrange_at(&mut self, at: Nanos, due: Due) {
        let place = self.due.partition_point(|(other, _)| *other <= at);
        self.due.insert(place, (at, due));
    }

    /// Gives an input to the decider.
    fn decide(
        &mut self,
        now: Nanos,
        input: &Input,
        cache: &PageCache,
        cost: DeviceCost,
        out: &mut Vec<Command>,
    ) {
        match &mut self.decider {
            Decider::Bowwave(controller) => {
                controller.on(now, input, out);
                let next = controller.next_tick(now);
                let is_tick = *input == Input::Tick;
                self.tick_at = if is_tick { next } else { self.tick_at.min(next) };
            }
            Decider::Worst(worst, plan) => {
                let Input::Access(access) = input else { return };
                let of = access.of;
                let file = of.file.ino as u32;
                let view = View { cache, file, cost, is_congested: false };
                plan.clear();
                let access = Access {
                    file: FileId(of.file.ino),
                    ..access.for_policy(now, Hint::Normal, access.kernel_window)
                };
                worst.on_access(&access, &view, plan);
                out.extend(plan.actions().iter().filter_map(|action| command(*action, of)));
            }
        }
    }
}

/// An action of a policy as a command.
fn command(action: Action, of: FileRef) -> Option<Command> {
    match action {
        Action::Read { start, pages, cause } => {
            let span = readahead::behind::Span { start, end: start + pages };
            let ticket = controller::ids::Ticket(0);
            Some(Command::Read { ticket, of, span, why: cause })
        }
        Action::Mark(mark) => Some(Command::Mark(of.file, mark)),
        Action::KernelWindow { .. } => None,
    }
}

/// The key of a file of the machine.
fn key_of(file: u32) -> FileKey {
    FileKey { dev: DEV, ino: u64::from(file) }
}
