//! Requests, which go into an elevator, and commands, which come out of it.
//!
//! ```text
//!   requests    [ 7: 0..8 ]  [ 8: 8..16 ]  [ 9: 16..24 ]        of the same direction, contiguous
//!                       \         |         /
//!   command           [ 0..24, requests 7, 8, 9 ]               merged
//! ```

pub use readahead::Nanos;

/// A sector of 512 bytes on the device, by number.
pub type Sector = u64;

/// A process as the elevator sees it: its requests share a queue and anticipation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub u32);

/// The caller's number of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Whether data moves from the device or to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the device.
    Read,
    /// To the device.
    Write,
}

/// A request for contiguous sectors, no larger than the device's largest request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The caller's number.
    pub id: RequestId,
    /// Who sends it.
    pub process: ProcessId,
    /// The first sector.
    pub start: Sector,
    /// How many sectors, at least one.
    pub sectors: u32,
    /// Whether they are read or written.
    pub direction: Direction,
    /// Whether a process waits for it: reads and synchronous writes.
    pub is_sync: bool,
}

impl Request {
    /// The sector after the last one.
    pub fn end(&self) -> Sector {
        self.start + Sector::from(self.sectors)
    }
}

/// A command for the device, made of one or more merged requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The first sector.
    pub start: Sector,
    /// How many sectors.
    pub sectors: u32,
    /// Whether they are read or written.
    pub direction: Direction,
    /// The requests, sorted by sector.
    pub requests: RequestIds,
    /// The process of the request that the others merged with. It need not be that of the first one.
    pub process: ProcessId,
}

impl Command {
    /// A command of one request.
    pub fn new(request: &Request) -> Self {
        Command {
            start: request.start,
            sectors: request.sectors,
            direction: request.direction,
            requests: RequestIds::new(request.id),
            process: request.process,
        }
    }

    /// The sector after the last one.
    pub fn end(&self) -> Sector {
        self.start + Sector::from(self.sectors)
    }

    /// Whether both have the same direction and are small enough together.
    fn fits(&self, sectors: u32, direction: Direction, max_sectors: u32) -> bool {
        let together = self.sectors.checked_add(sectors);
        self.direction == direction && together.is_some_and(|sectors| sectors <= max_sectors)
    }

    /// Whether `request` can merge at the back: it begins where this command ends.
    pub(crate) fn takes_behind(&self, request: &Request, max_sectors: u32) -> bool {
        self.end() == request.start && self.fits(request.sectors, request.direction, max_sectors)
    }

    /// Whether `request` can merge at the front: it ends where this command begins.
    pub(crate) fn takes_in_front(&self, request: &Request, max_sectors: u32) -> bool {
        request.end() == self.start && self.fits(request.sectors, request.direction, max_sectors)
    }

    /// Whether `next` can coalesce with this command.
    pub(crate) fn takes_whole(&self, next: &Command, max_sectors: u32) -> bool {
        self.end() == next.start && self.fits(next.sectors, next.direction, max_sectors)
    }

    pub(crate) fn merge_behind(&mut self, request: &Request) {
        self.sectors += request.sectors;
        self.requests.rest.push(request.id);
    }

    pub(crate) fn merge_in_front(&mut self, request: &Request) {
        self.start = request.start;
        self.sectors += request.sectors;
        let second = std::mem::replace(&mut self.requests.first, request.id);
        self.requests.rest.insert(0, second);
    }

    /// Coalesces with the command that begins where this one ends.
    pub(crate) fn absorb(&mut self, next: &Command) {
        self.sectors += next.sectors;
        self.requests.rest.extend(next.requests.iter());
    }
}

/// The requests of a command, at least one. A single request needs no allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestIds {
    first: RequestId,
    rest: Vec<RequestId>,
}

impl RequestIds {
    fn new(first: RequestId) -> Self {
        RequestIds { first, rest: Vec::new() }
    }

    /// The request with the lowest sectors.
    pub fn first(&self) -> RequestId {
        self.first
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        1 + self.rest.len()
    }

    /// All of them, sorted by sector.
    pub fn iter(&self) -> impl Iterator<Item = RequestId> + '_ {
        std::iter::once(self.first).chain(self.rest.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    #[test]
    fn merged_requests_are_listed_by_sector() {
        let mut command = Command::new(&read(2, 0, 16, 8));
        command.merge_behind(&read(3, 0, 24, 8));
        command.merge_in_front(&read(1, 0, 8, 8));
        let mut before = Command::new(&read(0, 1, 0, 8));
        before.absorb(&command);
        assert_eq!(before.requests.iter().map(|id| id.0).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!((before.start, before.sectors, before.process.0), (0, 32, 1));
    }

    #[test]
    fn only_contiguous_requests_of_one_direction_and_together_small_enough_merge() {
        let command = Command::new(&read(0, 0, 8, 8));
        assert!(command.takes_behind(&read(1, 0, 16, 8), 16));
        assert!(!command.takes_behind(&read(1, 0, 17, 8), 16), "a gap");
        assert!(!command.takes_behind(&read(1, 0, 16, 9), 16), "too large");
        let write = Request { direction: Direction::Write, ..read(1, 0, 16, 8) };
        assert!(!command.takes_behind(&write, 16), "another direction");
    }
}
