//! Elevators (I/O schedulers) of published Linux systems: pure, no I/O, no clock, no threads.
//!
//! A simulator hands an [`Elevator`] the requests of its processes. Whenever the device can take a
//! command, it asks for the next one:
//!
//! ```text
//!   simulator                                           elevator
//!   ---------                                           --------
//!   a process submits             -- add(Request) -->   merge, sort, file under its process
//!   the device can take one       <-- dispatch() ---    a command; or: wait until then; or: empty
//!   the device has done it        -- completed ---->    start the clock of anticipation
//!   a process has ended           -- exited ------->    do not wait for it
//! ```
//!
//! A device without command queueing has one command at a time. Others have up to their queue
//! depth.
//!
//! | name           | system               | rule                                                  |
//! |----------------|----------------------|-------------------------------------------------------|
//! | `noop`         | 2.4 and later        | arrival order, merging                                |
//! | `linus`        | 2.4                  | one sorted list; often passed requests become barriers|
//! | `deadline`     | 2.5, 2.6             | one-way sweep, batches, expiry by age                 |
//! | `base-2.5.61`  | 2.5.61 with patches  | processes in turn, one request each                   |
//! | `cfq-1`        | February 2003        | a queue per process, drained last come, first served  |
//! | `anticipatory` | February 2003        | waits for the process that has just read              |
//! | `mq-deadline`  | today                | deadline, its next request looked up when needed      |
//! | `bfq`          | today                | a budget of sectors per process, idling               |
//!
//! Unless a module says otherwise, rules and constants come from source code, documentation and
//! postings of the time. Modules mark what is inferred from published measurements or recalled from
//! memory.

mod anticipatory;
mod average;
mod base;
mod bfq;
mod cfq;
mod deadline;
mod linus;
mod mq_deadline;
mod noop;
mod registry;
mod request;
mod sorted;
mod sweep;
#[cfg(test)]
mod testing;

pub use anticipatory::{Anticipatory, AnticipatoryParameters};
pub use base::Base2561;
pub use bfq::{Bfq, BfqParameters};
pub use cfq::Cfq1;
pub use deadline::{Deadline, DeadlineParameters};
pub use linus::{Linus, LinusParameters};
pub use mq_deadline::{MqDeadline, MqDeadlineParameters};
pub use noop::Noop;
pub use registry::{NAMES, by_name};
pub use request::{Command, Direction, Nanos, ProcessId, Request, RequestId, RequestIds, Sector};

/// What an elevator answers when the device can take a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// Send this command to the device.
    Command(Command),
    /// Send nothing now, although requests are queued. Ask again at this time, or earlier if a
    /// request is added or a command completes. The time is [`UNTIL_COMPLETION`] if none is known.
    WaitUntil(Nanos),
    /// Nothing is queued.
    Empty,
}

/// The time to return if only a completion can help. Then the device has commands.
pub const UNTIL_COMPLETION: Nanos = Nanos::MAX;

/// Decides which request to serve next. Time never runs backwards between calls.
pub trait Elevator: Send {
    /// The elevator's name as users type it, for example `cfq-1`.
    fn name(&self) -> &'static str;

    /// Adds a request of at least one sector, no larger than the device's largest request.
    fn add(&mut self, now: Nanos, request: Request);

    /// The next command for a device that has room for it.
    fn dispatch(&mut self, now: Nanos) -> Dispatch;

    /// The device has completed a command. Most elevators ignore this.
    fn completed(&mut self, _now: Nanos, _command: &Command) {}

    /// A process has ended and will send nothing more. Most elevators ignore this.
    fn exited(&mut self, _now: Nanos, _process: ProcessId) {}

    /// Number of requests added and not dispatched yet.
    fn queued(&self) -> usize;
}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/adding-an-elevator.md")]
struct AddingAnElevator;
