//! The machine: processes events in the order of time.
//!
//! Time is virtual. The machine always takes the earliest event: a process continues, a transfer completes, an
//! elevator's timer ends, a command of bowwave's reaches the kernel. A process runs on while no other event is due, so
//! that cached reading costs no events. Events at the same time happen in the order in which they were scheduled, and
//! nothing is random: the same input gives the same run, to the byte.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use device::Model;
use historical::KernelPolicy;
use iosched::Elevator;
use readahead::{Cause, DeviceCost, Hint, Nanos, PAGE_BYTES, Page};

use crate::account::{Decision, LastWindow, Matrix};
use crate::block::{Block, NO_WAITER, earlier};
use crate::cache::{CacheCounters, PageCache, Reclaim};
use crate::costs::CpuCosts;
use crate::directories::Directories;
use crate::maps::{MAP, Maps};
use crate::on_top::{Body, OnTop};
use crate::process::{Doing, FileIndex, Open, OpenFile, Outcome, Process, Script};
use crate::writeback::Writeback;

/// The parts of a machine.
pub struct Parts {
    /// Pages of memory for the page cache.
    pub memory_pages: u64,
    /// The kernel's policy.
    pub kernel: Box<dyn KernelPolicy>,
    /// The policy on top of it.
    pub on_top: Option<OnTop>,
    /// Most pages that the kernel reads ahead (`ra_pages`).
    pub kernel_window: u32,
    /// Orders requests.
    pub elevator: Box<dyn Elevator>,
    /// Serves them.
    pub device: Box<dyn Model>,
    /// The device's cost, as policies know it.
    pub cost: DeviceCost,
    /// Commands that the device takes at once.
    pub device_depth: usize,
    /// Largest transfer, in pages.
    pub request_pages: u64,
    /// Which pages are evicted when memory runs short.
    pub reclaim: Reclaim,
    /// The processor.
    pub cpu: CpuCosts,
}

/// A machine in virtual time.
pub struct Machine {
    pub(crate) cache: PageCache,
    pub(crate) directories: Directories,
    pub(crate) block: Block,
    pub(crate) maps: Maps,
    pub(crate) kernel: Box<dyn KernelPolicy>,
    pub(crate) plan: historical::Plan,
    pub(crate) body: Option<Box<Body>>,
    pub(crate) cost: DeviceCost,
    pub(crate) kernel_window: u32,
    pub(crate) request_pages: u64,
    pub(crate) cpu: CpuCosts,
    pub(crate) opens: Vec<Open>,
    pub(crate) processes: Vec<Process>,
    pub(crate) matrix: Matrix,
    pub(crate) log: Option<Vec<Decision>>,
    pub(crate) writeback: Writeback,
    /// When processes continue: the time, the number of this entry, the process.
    wakes: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    /// The number of the next entry. It keeps those of the same time in order.
    next_wake: u64,
    /// Where the next file begins on the device, in bytes.
    next_offset: u64,
    /// Completed transfers. Each turn takes it and gives it back, so that it is allocated once.
    done: Vec<u32>,
    /// No process runs ahead beyond this moment.
    pub(crate) limit: Nanos,
}

/// Why a process stopped running for now.
pub(crate) enum Pause {
    /// It continues at this time.
    Until(Nanos),
    /// It waits for a transfer, or for dirty pages to be written.
    Blocked,
    /// Its operation ended at this time.
    Finished(Nanos),
}

impl Machine {
    /// A machine on which nothing has happened.
    pub fn new(parts: Parts) -> Self {
        Machine {
            cache: PageCache::new(parts.memory_pages, parts.reclaim),
            directories: Directories::default(),
            maps: Maps::default(),
            block: Block::new(parts.elevator, parts.device, parts.device_depth),
            kernel: parts.kernel,
            plan: historical::Plan::new(),
            body: parts.on_top.map(|top| Box::new(Body::new(top, parts.cost))),
            cost: parts.cost,
            kernel_window: parts.kernel_window,
            request_pages: parts.request_pages.max(1),
            cpu: parts.cpu,
            opens: Vec::new(),
            processes: Vec::new(),
            matrix: Matrix::default(),
            log: None,
            writeback: Writeback::new(parts.memory_pages),
            wakes: BinaryHeap::new(),
            next_wake: 0,
            next_offset: 0,
            done: Vec::new(),
            limit: Nanos::MAX,
        }
    }

    /// Keeps a log of the requested chunks.
    pub fn keep_log(&mut self) {
        self.log = Some(Vec::new());
    }

    /// Makes `share` of memory a separate zone, whose lists reclaim examines in turn with the others'. Call it before
    /// anything has run.
    pub fn divide_memory(&mut self, share: f64) {
        self.cache.divide(share);
    }

    /// Adds a file of `bytes` bytes, after the one added before it.
    pub fn add_file(&mut self, bytes: u64) -> FileIndex {
        self.add_file_at(bytes, self.next_offset)
    }

    /// Adds a file of `bytes` bytes at byte `offset` of the device.
    pub fn add_file_at(&mut self, bytes: u64, offset: u64) -> FileIndex {
        let pages = bytes.div_ceil(PAGE_BYTES);
        self.next_offset = offset + pages * PAGE_BYTES;
        FileIndex(self.cache.add_file(pages, offset))
    }

    /// Adds a file of `bytes` bytes without blocks on the device: reading it takes only memory and processor time.
    pub fn add_sparse_file(&mut self, bytes: u64) -> FileIndex {
        FileIndex(self.cache.add_sparse_file(bytes.div_ceil(PAGE_BYTES)))
    }

    /// Opens a file.
    pub fn open(&mut self, file: FileIndex) -> OpenFile {
        self.opens.push(Open {
            file: file.0,
            previous: None,
            hint: Hint::Normal,
            previous_written: None,
            kernel_window: None,
            own_window: None,
            is_without_look_ahead: false,
            is_closed: false,
            mapped_by: None,
            kernel_asked: LastWindow::default(),
            kernel_read: (0, 0),
        });
        OpenFile((self.opens.len() - 1) as u32)
    }

    /// Starts a process at a moment; returns its number.
    pub fn spawn(&mut self, at: Nanos, script: impl Script + Send + 'static) -> usize {
        let number = self.processes.len();
        self.processes.push(Process {
            name: String::new(),
            script: Box::new(script),
            doing: Doing::Next,
            next_waiter: NO_WAITER,
            waits_since: at,
            outcome: Outcome { started: at, ended: at, ..Outcome::default() },
        });
        self.wake_at(at, number as u32);
        number
    }

    /// Gives a process a name, as rules of bowwave know it.
    pub fn name_process(&mut self, process: usize, name: &str) {
        name.clone_into(&mut self.processes[process].name);
    }

    /// Caches pages of a file that was used before, unless they are cached. Returns how many pages were absent and are
    /// cached now. Call it before anything has run.
    pub fn cache_pages(&mut self, file: FileIndex, pages: Range<Page>) -> u64 {
        let mut cached = 0;
        for page in pages.start..pages.end.min(self.file_pages_of(file)) {
            if self.cache.lookup(file.0, page).is_some() {
                continue;
            }
            let Some(id) = self.cache.insert(file.0, page, ALONE) else { break };
            self.cache.arrived(id);
            self.cache.mark_accessed(id);
            cached += 1;
        }
        cached
    }

    /// Runs until every process has ended.
    ///
    /// # Panics
    /// If the machine is stuck, for example because its device takes no command. It then has no figures.
    pub fn run(&mut self) {
        self.run_until(Nanos::MAX);
    }

    /// Runs until every process has ended, or until `end`. Returns whether all have ended before.
    ///
    /// # Panics
    /// As [`Machine::run`].
    pub fn run_until(&mut self, end: Nanos) -> bool {
        let is_waiting = |process: &Process| !matches!(process.doing, Doing::Ended);
        while self.processes.iter().any(is_waiting) {
            let Some(now) = self.next_event() else {
                let waiting = self.processes.iter().filter(|process| is_waiting(process)).count();
                panic!(
                    "the simulated machine is stuck: {waiting} of {} processes wait, and nothing is under way that could wake them; see its memory, device_depth and scripts",
                    self.processes.len()
                );
            };
            if now >= end {
                return false;
            }
            self.turn(now);
        }
        true
    }

    /// The figures of a process.
    pub fn outcome(&self, process: usize) -> &Outcome {
        &self.processes[process].outcome
    }

    /// The figures of each class of read-ahead.
    pub fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    /// The requested chunks, if a log is kept.
    pub fn log(&self) -> &[Decision] {
        self.log.as_deref().unwrap_or_default()
    }

    /// The counters of the page cache.
    pub fn cache_counters(&self) -> CacheCounters {
        self.cache.counters()
    }

    /// The counters of the device.
    pub fn device_counters(&self) -> device::Counters {
        self.block.counters()
    }

    /// Pages of a file.
    pub fn file_pages_of(&self, file: FileIndex) -> u64 {
        self.cache.file(file.0).pages()
    }

    /// Nanoseconds during which the device was busy.
    pub fn device_busy(&self) -> Nanos {
        self.block.busy()
    }

    /// The most commands that the device ever had at once.
    pub fn most_in_flight(&self) -> usize {
        self.block.most_in_flight()
    }

    /// Where a file begins on the device, in bytes.
    pub fn offset_of(&self, file: FileIndex) -> u64 {
        self.cache.file(file.0).offset
    }

    /// Pages of a file that are cached.
    pub fn resident_pages(&self, file: FileIndex) -> u64 {
        self.cache.resident(file.0)
    }

    /// Processes one event that is due at `now`: of the block layer first, then of bowwave, then of a process.
    pub(crate) fn turn(&mut self, now: Nanos) {
        if self.block.next_event().is_some_and(|at| at <= now) {
            return self.complete(now);
        }
        if self.process_due_event(now) {
            return;
        }
        if let Some(Reverse((at, _, process))) = self.wakes.pop() {
            self.run_process(at, process);
        }
    }

    /// The time of the next event.
    pub(crate) fn next_event(&self) -> Option<Nanos> {
        let wake = self.wakes.peek().map(|Reverse((at, ..))| *at);
        let due = self.body.as_ref().and_then(|body| body.next_event());
        let next = earlier(earlier(wake, due), self.block.next_event())?;
        // A tick alone ends no wait: beside no other event it would keep a stuck machine going for ever.
        Some(self.body.as_ref().map_or(next, |body| body.next_tick().min(next)))
    }

    /// Until when a process may run ahead.
    pub(crate) fn horizon(&self) -> Nanos {
        self.next_event().map_or(self.limit, |at| at.min(self.limit))
    }

    /// Lets a process continue at a moment, after all that continue at the same one and were arranged before.
    pub(crate) fn wake_at(&mut self, at: Nanos, process: u32) {
        self.wakes.push(Reverse((at, self.next_wake, process)));
        self.next_wake += 1;
    }

    /// Lets a process run.
    fn run_process(&mut self, mut now: Nanos, process: u32) {
        loop {
            let pause = match self.processes[process as usize].doing {
                Doing::Ended | Doing::Parked => return,
                Doing::Next => self.begin(now, process),
                Doing::Reading(reading) => self.read_on(now, process, reading),
                Doing::Writing { open, page, end } => self.write_on(now, process, open, page, end),
            };
            match pause {
                Pause::Blocked => return,
                Pause::Until(at) => return self.wake_at(at, process),
                Pause::Finished(at) => {
                    now = at;
                    if now > self.horizon() {
                        return self.wake_at(now, process);
                    }
                }
            }
        }
    }

    /// Handles completed transfers: their pages have arrived, and waiting processes continue.
    fn complete(&mut self, now: Nanos) {
        let mut done = std::mem::take(&mut self.done);
        self.block.advance(now, &mut done);
        for id in done.drain(..) {
            let transfer = *self.block.transfer(id);
            if transfer.file == MAP {
                self.map_arrived(now, id);
                self.block.retire(id);
                continue;
            }
            for page in transfer.start..transfer.start + transfer.pages {
                self.arrived(transfer.file, page, transfer.is_write);
            }
            if let Some(started) = transfer.started {
                self.note_ended(now, transfer.file, transfer.pages, started);
            }
            self.wake_waiters(now, transfer.waiters);
            self.block.retire(id);
            if transfer.is_write {
                self.written(now);
            }
            self.wake_for_frames(now, transfer.pages);
        }
        self.done = done;
    }

    /// A page was read, or written to the device.
    pub(crate) fn arrived(&mut self, file: u32, page: u64, is_write: bool) {
        let Some(id) = self.cache.lookup(file, page) else { return };
        if is_write {
            return self.cache.clear_dirty(id);
        }
        self.cache.arrived(id);
    }
}

/// The process of the policy on top of the kernel; no process of the machine.
pub(crate) const USER: u32 = u32::MAX - 1;

/// The process that writes dirty pages.
pub(crate) const FLUSHER: u32 = u32::MAX - 2;

/// A page that only its reader requested.
pub(crate) const ALONE: Cause = Cause::Random;
