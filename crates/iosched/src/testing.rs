//! Short forms of requests and outcomes for unit tests.

use crate::request::{Command, Direction, Nanos, ProcessId, Request, RequestId, Sector};
use crate::{Dispatch, Elevator};

pub(crate) const MS: Nanos = 1_000_000;

pub(crate) fn read(id: u64, process: u32, start: Sector, sectors: u32) -> Request {
    Request {
        id: RequestId(id),
        process: ProcessId(process),
        start,
        sectors,
        direction: Direction::Read,
        is_sync: true,
    }
}

pub(crate) fn write(id: u64, process: u32, start: Sector, sectors: u32) -> Request {
    Request { direction: Direction::Write, is_sync: false, ..read(id, process, start, sectors) }
}

/// Dispatches a command at `now`. Panics if there is none.
pub(crate) fn take(elevator: &mut dyn Elevator, now: Nanos) -> Command {
    match elevator.dispatch(now) {
        Dispatch::Command(command) => command,
        other => panic!("no command but {other:?}"),
    }
}

/// Dispatches and completes a command at once. Returns its first sector.
pub(crate) fn serve(elevator: &mut dyn Elevator, now: Nanos) -> Sector {
    let command = take(elevator, now);
    elevator.completed(now, &command);
    command.start
}

/// Serves everything at once. Returns the first sectors in order.
pub(crate) fn drain(elevator: &mut dyn Elevator, now: Nanos) -> Vec<Sector> {
    let mut order = Vec::new();
    while elevator.queued() > 0 {
        order.push(serve(elevator, now));
    }
    order
}
