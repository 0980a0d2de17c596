//! Elevators (I/O schedulers) of published Linux systems: pure, no I/O, no clock, no threads.
//!
//! A *body* (a simulator) hands an [`Elevator`] the requests of its processes and asks it for the
//! next command whenever the device can take one:
//!
//! ```text
//!   body                                                elevator
//!   ----                                                --------
//!   a process submits             -- add(Request) -->   merge, sort, file under its process
//!   the device can take one       <-- dispatch() ---    a Command; or: wait until then; or: empty
//!   the device has done it        -- completed ---->    start the clock of anticipation
//!   a process is gone             -- exited ------->    do not wait for it
//! ```
//!
//! A device without command queueing has one command at a time; others have as many as their depth.
//!
//! | name           | system               | rule                                                  |
//! |----------------|----------------------|-------------------------------------------------------|
//! | `noop`         | 2.4 and later        | arrival order, merging                                |
//! | `linus`        | 2.4                  | one sorted list; who was passed too often is a barrier|
//! | `deadline`     | 2.5, 2.6             | one-way sweep, batches, expiry by age                 |
//! | `base-2.5.61`  | 2.5.61 and its hacks | processes in turn, one request each                   |
//! | `cfq-1`        | February 2003        | a queue per process, drained last come, first served  |
//! | `anticipatory` | February 2003        | waits for the process that has just read              |
//! | `mq-deadline`  | today                | deadline, by priority class                           |
//! | `bfq`          | today                | a budget of sectors per process, idling               |
//!
//! Constants and rules were read in source, in documentation and in the postings of the time where
//! a module says nothing else; what is inferred from published measurements, or recalled from
//! memory, is marked so.

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
pub use mq_deadline::{Class, MqDeadline, MqDeadlineParameters};
pub use noop::Noop;
pub use registry::{NAMES, by_name};
pub use request::{Command, Direction, Nanos, ProcessId, Request, RequestId, RequestIds, Sector};

/// What an elevator answers when the device can take a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// To the device with this.
    Command(Command),
    /// Nothing now, though something is queued: ask again at this time, or when a request is added
    /// or a command completes, whichever is first. [`UNTIL_COMPLETION`] if no time is known.
    WaitUntil(Nanos),
    /// Nothing is queued.
    Empty,
}

/// The time to wait for where only a completion can help: the elevator has commands out.
pub const UNTIL_COMPLETION: Nanos = Nanos::MAX;

/// Decides which request is served next. Time never runs backwards between calls.
pub trait Elevator: Send {
    /// The elevator's name as users type it, for example `cfq-1`.
    fn name(&self) -> &'static str;

    /// Takes a request, which must have at least one sector and fit the device's largest request.
    fn add(&mut self, now: Nanos, request: Request);

    /// The next command for the device, which has room for it.
    fn dispatch(&mut self, now: Nanos) -> Dispatch;

    /// The device is done with a command; most elevators do not care.
    fn completed(&mut self, _now: Nanos, _command: &Command) {}

    /// A process has ended; nothing more comes from it. Most elevators do not care.
    fn exited(&mut self, _now: Nanos, _process: ProcessId) {}

    /// Requests added and not yet dispatched.
    fn queued(&self) -> usize;
}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/adding-an-elevator.md")]
struct AddingAnElevator;
