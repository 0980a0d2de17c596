//! The block layer: transfers go through an elevator to the device, some at a time.
//!
//! ```text
//!   transfers --> elevator --(commands, up to `depth` at once)--> device
//!                                                                   |
//!   whoever waits for one <-- completed, in the order the device finished
//! ```
//!
//! A transfer is a run of one file's pages, no longer than the device's largest request. It goes to the elevator at
//! once. As with a plugged queue, the device gets work only when the caller has no more to add ([`Block::dispatch`]).

use device::{Completion, Model};
use iosched::{
    Command, Direction, Dispatch, Elevator, ProcessId, Request, RequestId, UNTIL_COMPLETION,
};
use readahead::{Nanos, PAGE_BYTES, Page};

use crate::on_top::Started;

/// Bytes of a sector, the elevators' unit.
const SECTOR_BYTES: u64 = 512;

/// No process waits: the end of a chain of waiters.
pub(crate) const NO_WAITER: u32 = u32::MAX;

/// The earlier of two events.
pub(crate) fn earlier(one: Option<Nanos>, other: Option<Nanos>) -> Option<Nanos> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// A run of pages in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    pub(crate) file: u32,
    pub(crate) start: Page,
    pub(crate) pages: u64,
    pub(crate) is_write: bool,
    /// When a read began, if that is counted.
    pub(crate) started: Option<Started>,
    /// First of the processes that wait for it; the rest are chained through the processes.
    pub(crate) waiters: u32,
}

/// The queue and the device.
pub(crate) struct Block {
    elevator: Box<dyn Elevator>,
    device: Box<dyn Model>,
    /// Commands that the device takes at once.
    depth: usize,
    /// By number; those of completed ones are used again.
    transfers: Vec<Transfer>,
    /// Numbers of completed transfers.
    free: Vec<u32>,
    /// The commands that the device has, by the number under which it knows them.
    commands: Vec<Option<Command>>,
    /// How many these are.
    in_flight: usize,
    /// Since when the device has been busy, and for how long it was busy before.
    busy_since: Nanos,
    busy: Nanos,
    most_in_flight: usize,
    /// When to ask the elevator again.
    pub(crate) elevator_timer: Option<Nanos>,
    completions: Vec<Completion>,
    /// Number of read transfers that are not completed.
    reads: usize,
}

/// A queue with this many reads is congested: 7/8 of its 128 requests.
const CONGESTED_READS: usize = 113;

impl Block {
    pub(crate) fn new(elevator: Box<dyn Elevator>, device: Box<dyn Model>, depth: usize) -> Self {
        Block {
            elevator,
            device,
            depth,
            transfers: Vec::new(),
            free: Vec::new(),
            commands: Vec::new(),
            in_flight: 0,
            busy_since: 0,
            busy: 0,
            most_in_flight: 0,
            elevator_timer: None,
            completions: Vec::new(),
            reads: 0,
        }
    }

    pub(crate) fn transfer(&self, id: u32) -> &Transfer {
        &self.transfers[id as usize]
    }

    pub(crate) fn transfer_mut(&mut self, id: u32) -> &mut Transfer {
        &mut self.transfers[id as usize]
    }

    pub(crate) fn is_congested(&self) -> bool {
        self.reads >= CONGESTED_READS
    }

    /// Reads queued or under way.
    pub(crate) fn reads(&self) -> usize {
        self.reads
    }

    /// Nanoseconds during which the device was busy, up to the last time it fell idle.
    pub(crate) fn busy(&self) -> Nanos {
        self.busy
    }

    /// The most commands that the device ever had at once.
    pub(crate) fn most_in_flight(&self) -> usize {
        self.most_in_flight
    }

    pub(crate) fn counters(&self) -> device::Counters {
        self.device.counters()
    }

    /// Gives a transfer of `process`'s, whose first page is at byte `offset`, to the elevator.
    pub(crate) fn add(
        &mut self,
        now: Nanos,
        transfer: Transfer,
        offset: u64,
        process: u32,
        is_sync: bool,
    ) -> u32 {
        let id = self.reserve(transfer);
        self.queue(now, id, offset, process, is_sync);
        id
    }

    /// Notes a transfer that is to be queued later.
    pub(crate) fn reserve(&mut self, transfer: Transfer) -> u32 {
        self.reads += usize::from(!transfer.is_write);
        match self.free.pop() {
            Some(id) => {
                self.transfers[id as usize] = transfer;
                id
            }
            None => {
                self.transfers.push(transfer);
                (self.transfers.len() - 1) as u32
            }
        }
    }

    /// Gives a noted transfer to the elevator.
    pub(crate) fn queue(&mut self, now: Nanos, id: u32, offset: u64, process: u32, is_sync: bool) {
        let transfer = self.transfer(id);
        let direction = if transfer.is_write { Direction::Write } else { Direction::Read };
        let request = Request {
            id: RequestId(u64::from(id)),
            process: ProcessId(process),
            start: offset / SECTOR_BYTES,
            sectors: (transfer.pages * PAGE_BYTES / SECTOR_BYTES) as u32,
            direction,
            is_sync,
        };
        self.elevator.add(now, request);
    }

    /// Gives the device the elevator's commands, as many as it takes.
    pub(crate) fn dispatch(&mut self, now: Nanos) {
        self.elevator_timer = None;
        while self.in_flight < self.depth {
            match self.elevator.dispatch(now) {
                Dispatch::Command(command) => self.send(now, command),
                Dispatch::WaitUntil(at) => {
                    self.elevator_timer = Some(at).filter(|at| *at < UNTIL_COMPLETION);
                    return;
                }
                Dispatch::Empty => return,
            }
        }
    }

    fn send(&mut self, now: Nanos, command: Command) {
        let slot = self.commands.iter().position(Option::is_none).unwrap_or_else(|| {
            self.commands.push(None);
            self.commands.len() - 1
        });
        let request = device::Request {
            id: slot as u64,
            offset: command.start * SECTOR_BYTES,
            bytes: u64::from(command.sectors) * SECTOR_BYTES,
        };
        self.commands[slot] = Some(command);
        if self.in_flight == 0 {
            self.busy_since = now;
        }
        self.in_flight += 1;
        self.most_in_flight = self.most_in_flight.max(self.in_flight);
        self.device.submit(now, request);
    }

    /// When the device or the elevator next needs attention.
    pub(crate) fn next_event(&self) -> Option<Nanos> {
        earlier(self.device.next_event(), self.elevator_timer)
    }

    /// Lets time pass until `now`. Appends completed transfers to `done`.
    pub(crate) fn advance(&mut self, now: Nanos, done: &mut Vec<u32>) {
        self.device.advance(now, &mut self.completions);
        let completions = std::mem::take(&mut self.completions);
        for completion in &completions {
            let Some(command) = self.commands[completion.id as usize].take() else { continue };
            self.in_flight -= 1;
            if self.in_flight == 0 {
                self.busy += now - self.busy_since;
            }
            self.elevator.completed(now, &command);
            done.extend(command.requests.iter().map(|id| id.0 as u32));
        }
        self.completions = completions;
        self.completions.clear();
        self.dispatch(now);
    }

    /// Forgets a completed transfer.
    pub(crate) fn retire(&mut self, id: u32) {
        self.reads -= usize::from(!self.transfers[id as usize].is_write);
        self.free.push(id);
    }

    /// Tells the elevator that a process ended.
    pub(crate) fn exited(&mut self, now: Nanos, process: u32) {
        self.elevator.exited(now, ProcessId(process));
    }
}
