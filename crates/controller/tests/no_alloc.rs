//! An access to a known file allocates nothing: the controller is in the event path of a busy machine.

#![allow(unsafe_code)] // a global allocator is an unsafe trait; the invariant is written there

#[path = "../../readahead/tests/support/counting.rs"]
mod counting;

use controller::ids::{BackingId, CgroupId, DeviceNumber, FileKey, FileRef, OpenFile};
use controller::{
    Access, Advice, Command, Completed, Controller, DeviceFacts, Input, Kind, MemoryStats, Mounted,
    Nanos, Options, Origin, WindowOutcome, WindowSetting,
};
use counting::allocations;
use readahead::{Adaptive, DeviceCost, PAGE_BYTES, Past};

const DEV: DeviceNumber = DeviceNumber { major: 7, minor: 1 };
const DISK: BackingId = BackingId(1);
const FILES: u64 = 8;
const FILE_PAGES: u64 = 10_000_000;

fn access(ino: u64, page: u64) -> Access {
    Access {
        kind: Kind::Miss,
        of: FileRef { file: FileKey { dev: DEV, ino }, generation: 0, tgid: ino as u32 },
        open_file: Some(OpenFile(ino)),
        cgroup: CgroupId(ino as u32 % 2),
        page,
        request_pages: 4,
        previous: None,
        file_bytes: FILE_PAGES * PAGE_BYTES,
        kernel_window: 32,
        mapped: false,
        advice: Advice::default(),
        past: Past::Unknown,
        mark: None,
    }
}

struct Body {
    controller: Controller,
    out: Vec<Command>,
    answers: Vec<Completed>,
    now: Nanos,
    reads: u64,
    marks: u64,
    windows: u64,
}

impl Body {
    fn new() -> Self {
        let mut out = Vec::with_capacity(1024);
        let controller =
            Controller::new(Options::default(), Box::new(Adaptive::default()), &mut out);
        let answers = Vec::with_capacity(64);
        let (now, reads, marks, windows) = (0, 0, 0, 0);
        let mut body = Body { controller, out, answers, now, reads, marks, windows };
        let cost = DeviceCost { latency_s: 0.005, bandwidth: 500e6, concurrency: 32.0 };
        let device = DeviceFacts { cost, origin: Origin::Measured, is_counted: true };
        body.give(&Input::Mounted(Mounted { dev: DEV, backing: DISK, device }));
        let available_bytes = Some(8 << 30);
        let machine = MemoryStats::Machine { available_bytes, own_cgroup_bytes: None };
        body.give(&Input::MemoryStats(machine));
        body
    }

    fn give(&mut self, input: &Input) {
        self.out.clear();
        self.controller.on(self.now, input, &mut self.out);
        self.answer();
    }

    /// Prepares the answers to all commands; they are given with the next access.
    fn answer(&mut self) {
        for command in &self.out {
            let answer = match *command {
                Command::Read { ticket, .. } => {
                    self.reads += 1;
                    Completed::Read { ticket, failed: None }
                }
                Command::SetWindow { ticket, target, setting, .. } => {
                    self.windows += 1;
                    let outcome = match setting {
                        WindowSetting::Own => WindowOutcome::Own,
                        _ => WindowOutcome::Set { own_pages: 32 },
                    };
                    let (ticket, during) = (Some(ticket), (self.now, self.now));
                    Completed::WindowSet { ticket, target, outcome, during }
                }
                Command::Mark(..) => {
                    self.marks += 1;
                    continue;
                }
                _ => continue,
            };
            if self.answers.last() != Some(&answer) {
                self.answers.push(answer);
            }
        }
    }

    /// Eight readers: every other one goes backward, one reads at random. Now and then, pages that were read ahead are
    /// evicted.
    fn read(&mut self, steps: std::ops::Range<u64>) {
        for step in steps {
            for ino in 0..FILES {
                self.now += 100_000;
                let page = match ino {
                    7 => step.wrapping_mul(0x9E37_79B9_7F4A_7C15) % FILE_PAGES,
                    _ if ino % 2 == 0 => 4 * step,
                    _ => 5_000_000 - 4 * step,
                };
                let past = if ino == 6 && step % 5 == 0 { Past::Evicted } else { Past::Unknown };
                self.give(&Input::Access(Access { past, ..access(ino, page) }));
                while let Some(answer) = self.answers.pop() {
                    self.give(&Input::Completed(answer));
                }
            }
        }
    }
}

#[test]
fn an_access_to_a_known_file_allocates_nothing() {
    let mut body = Body::new();
    body.read(0..2_000);
    let (reads, marks) = (body.reads, body.marks);
    let before = allocations();
    body.read(2_000..10_000);
    let allocated = allocations() - before;
    assert!(body.reads > reads + 100 && body.marks > marks + 100);
    assert_eq!(allocated, 0, "in {} accesses", 8_000 * FILES);
}

#[test]
fn nor_does_one_whose_window_is_bounded_and_given_back() {
    let mut body = Body::new();
    let limit = |file_bytes| {
        Input::MemoryStats(MemoryStats::Cgroup {
            cgroup: CgroupId(0),
            file_bytes,
            stalled_percent: 0.0,
        })
    };
    let rounds = |body: &mut Body, rounds: std::ops::Range<u64>| {
        for round in rounds {
            body.give(&limit((round % 2 == 0).then_some(256 << 10)));
            body.read(10 * round..10 * round + 10);
        }
    };
    rounds(&mut body, 0..100);
    let windows = body.windows;
    let before = allocations();
    rounds(&mut body, 100..400);
    let allocated = allocations() - before;
    assert!(body.windows > windows + 300, "{}", body.windows - windows);
    assert_eq!(allocated, 0);
}
