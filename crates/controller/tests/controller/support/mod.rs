//! A model of a machine that carries out commands, and the inputs that tests are made of.

mod law;
mod machine;
mod manners;

use std::collections::BTreeMap;

use controller::ids::{
    BackingId, CgroupId, DeviceNumber, FileKey, FileRef, OpenFile, Target, Tgid, Ticket,
};
use controller::{
    Access, Advice, Charge, Command, Completed, Controller, DeviceFacts, Input, Kind, MemoryStats,
    Mounted, Nanos, Options, Origin, Passed, WindowOutcome,
};
use readahead::behind::Span;
use readahead::{Adaptive, DeviceCost, PAGE_BYTES, Past};

pub(crate) use machine::Machine;
pub(crate) use manners::Manners;

pub(crate) const MS: Nanos = 1_000_000;
pub(crate) const SECOND: Nanos = 1_000 * MS;

/// The file system of most tests, and its disk.
pub(crate) const DEV: DeviceNumber = DeviceNumber { major: 7, minor: 1 };
pub(crate) const DISK: BackingId = BackingId(1);

/// The device's own window.
pub(crate) const WINDOW: u32 = 32;

/// A disk whose accesses overlap, a few milliseconds away.
pub(crate) const VOLUME: DeviceCost =
    DeviceCost { latency_s: 0.005, bandwidth: 500e6, concurrency: 32.0 };

/// Pages of most files: 400 MB.
pub(crate) const FILE_PAGES: u64 = 100_000;

pub(crate) fn file(ino: u64) -> FileKey {
    FileKey { dev: DEV, ino }
}

pub(crate) fn reference(ino: u64, tgid: Tgid) -> FileRef {
    FileRef { file: file(ino), generation: 0, tgid }
}

pub(crate) fn span(start: u64, end: u64) -> Span {
    Span { start, end }
}

/// A miss of one page by process 1 through open file 9.
pub(crate) fn miss(ino: u64, page: u64) -> Access {
    Access {
        kind: Kind::Miss,
        of: reference(ino, 1),
        open_file: Some(OpenFile(9)),
        cgroup: CgroupId(0),
        page,
        request_pages: 1,
        previous: None,
        file_bytes: FILE_PAGES * PAGE_BYTES,
        kernel_window: WINDOW,
        mapped: false,
        advice: Advice::default(),
        past: Past::Unknown,
        mark: None,
    }
}

/// A page fault of process 1.
pub(crate) fn fault(ino: u64, page: u64) -> Access {
    Access { kind: Kind::Fault, open_file: None, mapped: true, ..miss(ino, page) }
}

/// Process 1 has read `pages` of the file.
pub(crate) fn passed(ino: u64, pages: Span) -> Passed {
    Passed {
        of: reference(ino, 1),
        cgroup: CgroupId(0),
        file_bytes: FILE_PAGES * PAGE_BYTES,
        written: false,
        mapped: false,
        foreground: false,
        span: pages,
    }
}

pub(crate) fn mounted(dev: DeviceNumber, backing: BackingId, device: DeviceFacts) -> Input {
    Input::Mounted(Mounted { dev, backing, device })
}

pub(crate) fn facts(cost: DeviceCost) -> DeviceFacts {
    DeviceFacts { cost, origin: Origin::Measured, is_counted: true }
}

/// This much memory is available, and no cgroup limits it.
pub(crate) fn memory(available_bytes: u64) -> Input {
    let available_bytes = Some(available_bytes);
    Input::MemoryStats(MemoryStats::Machine { available_bytes, own_cgroup_bytes: None })
}

pub(crate) fn adaptive(options: Options, out: &mut Vec<Command>) -> Controller {
    Controller::new(options, Box::new(Adaptive::default()), out)
}

pub(crate) fn charging(charge: Charge) -> Options {
    Options { charge, ..Options::default() }
}

/// A controller alone: a test gives inputs and examines commands.
pub(crate) struct Bench {
    pub(crate) controller: Controller,
    pub(crate) now: Nanos,
    /// The newest change of each target's window.
    pub(crate) asked: BTreeMap<Target, Ticket>,
}

impl Bench {
    /// With one volume on a device of this cost, and 8 GiB of memory.
    pub(crate) fn new(cost: DeviceCost, options: Options) -> Self {
        let mut bench = Bench::empty(options);
        bench.on(&mounted(DEV, DISK, facts(cost)));
        bench
    }

    /// With no volume.
    pub(crate) fn empty(options: Options) -> Self {
        let controller = adaptive(options, &mut Vec::new());
        let mut bench = Bench { controller, now: SECOND, asked: BTreeMap::new() };
        bench.on(&memory(8 << 30));
        bench
    }

    /// The commands after this input.
    pub(crate) fn on(&mut self, input: &Input) -> Vec<Command> {
        let mut out = Vec::new();
        self.controller.on(self.now, input, &mut out);
        self.asked.extend(out.iter().filter_map(|command| match command {
            Command::SetWindow { ticket, target, .. } => Some((*target, *ticket)),
            _ => None,
        }));
        out
    }

    /// Answers the newest change of this target's window.
    pub(crate) fn window_set(&mut self, target: Target, outcome: WindowOutcome) -> Vec<Command> {
        let ticket = self.asked.get(&target).copied();
        self.completed(Completed::WindowSet { ticket, target, outcome, during: (0, 0) })
    }

    /// Tells that the target's reader has closed its file, or ended.
    pub(crate) fn closed(&mut self, target: Target) -> Vec<Command> {
        let (outcome, during) = (WindowOutcome::Own, (0, 0));
        self.completed(Completed::WindowSet { ticket: None, target, outcome, during })
    }

    /// Lets `ns` pass, then gives the input.
    pub(crate) fn after(&mut self, ns: Nanos, input: &Input) -> Vec<Command> {
        self.now += ns;
        self.on(input)
    }

    pub(crate) fn access(&mut self, access: Access) -> Vec<Command> {
        self.after(MS, &Input::Access(access))
    }

    pub(crate) fn completed(&mut self, completed: Completed) -> Vec<Command> {
        self.on(&Input::Completed(completed))
    }

    pub(crate) fn tick(&mut self, ns: Nanos) -> Vec<Command> {
        self.after(ns, &Input::Tick)
    }
}

/// The pages that reads among these commands request.
pub(crate) fn reads(commands: &[Command]) -> Vec<Span> {
    let spans = commands.iter().filter_map(|command| match command {
        Command::Read { span, .. } => Some(*span),
        _ => None,
    });
    spans.collect()
}

/// The batch of the first read among these commands.
pub(crate) fn batch(commands: &[Command]) -> Option<Ticket> {
    commands.iter().find_map(|command| match command {
        Command::Read { ticket, .. } => Some(*ticket),
        _ => None,
    })
}
