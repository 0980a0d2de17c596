//! RAID 5: disks behind one controller, with data in chunks over all disks and rotating parity.
//!
//! ```text
//!          disk 0  disk 1  disk 2            submit -> controller_us -> parts, each into the queue
//!   row 0    0       1       P               of its disk -> with the last of them, into the
//!   row 1    3       P       2               controller, one request after another -> completes
//!   row 2    P       4       5
//!   left-symmetric: the first chunk of a row follows its parity, as in Linux md's default
//! ```
//!
//! Reads skip the parity. Writes are charged as reads, as in the other models, without the cost of
//! the parity. If chunks of one request are adjacent on a disk, they form one part.

use std::collections::{HashMap, VecDeque};

use readahead::DeviceCost;
use serde::{Deserialize, Serialize};

use crate::bounds::{self, within, within_or_absent};
use crate::disk::{Disk, DiskSpec};
use crate::model::{Completion, Counters, Model, Nanos, Request, nanos};

/// Parameters of [`Raid5`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raid5Spec {
    /// Number of disks, including one for parity.
    pub disks: u64,
    /// KiB on one disk before the next disk follows.
    pub chunk_kib: u64,
    /// Microseconds that the controller needs per request. Requests do not delay each other there.
    pub controller_us: f64,
    /// Microseconds of the controller's only processor for each request that it passes on.
    #[serde(default)]
    pub controller_busy_us: f64,
    /// MB/s through the controller for all disks together. If absent, it is never the bottleneck.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller_mb_s: Option<f64>,
    /// Parameters of each disk. The first disk uses this seed, the others the following ones.
    pub disk: DiskSpec,
}

/// The part of a request that one disk serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    disk: usize,
    offset: u64,
    bytes: u64,
}

impl Raid5Spec {
    pub(crate) fn check(&self) -> Result<(), String> {
        const MOST_DISKS: u64 = 256;
        within("disks", self.disks, 3..=MOST_DISKS)?;
        within("chunk_kib", self.chunk_kib, 1..=*bounds::KIB.end())?;
        within("controller_us", self.controller_us, bounds::US)?;
        within("controller_busy_us", self.controller_busy_us, bounds::US)?;
        within_or_absent("controller_mb_s", self.controller_mb_s, bounds::MB_S)?;
        self.disk.check().map_err(|reason| format!("disk: {reason}"))
    }

    pub(crate) fn cost(&self) -> DeviceCost {
        let member = self.disk.cost();
        let data_disks = member.bandwidth * (self.disks - 1) as f64;
        DeviceCost {
            latency_s: (self.controller_us + self.controller_busy_us) * 1e-6 + member.latency_s,
            bandwidth: data_disks.min(self.controller_mb_s.unwrap_or(f64::INFINITY) * 1e6),
            concurrency: self.disks as f64,
        }
    }

    fn chunk_bytes(&self) -> u64 {
        self.chunk_kib * 1024
    }

    /// Bytes per disk in an array of `size` bytes.
    fn member_bytes(&self, size: u64) -> u64 {
        size.div_ceil(self.chunk_bytes() * (self.disks - 1)) * self.chunk_bytes()
    }

    fn parts(&self, request: &Request) -> Vec<Part> {
        let (chunk, data_disks) = (self.chunk_bytes(), self.disks - 1);
        let mut parts: Vec<Part> = Vec::new();
        let (mut offset, end) = (request.offset, request.offset + request.bytes);
        loop {
            let (index, within) = (offset / chunk, offset % chunk);
            let (row, column) = (index / data_disks, index % data_disks);
            let parity = data_disks - row % self.disks;
            let disk = ((parity + 1 + column) % self.disks) as usize;
            let bytes = (chunk - within).min(end - offset);
            let part = Part { disk, offset: row * chunk + within, bytes };
            match parts.iter_mut().rfind(|known| known.disk == disk) {
                Some(known) if known.offset + known.bytes == part.offset => known.bytes += bytes,
                _ => parts.push(part),
            }
            offset += bytes;
            if offset >= end {
                return parts;
            }
        }
    }
}

#[derive(Debug)]
struct Pending {
    request: Request,
    parts_left: usize,
}

/// A RAID 5 array.
#[derive(Debug)]
pub struct Raid5 {
    spec: Raid5Spec,
    members: Vec<Disk>,
    /// Requests in the controller, and until when.
    arriving: VecDeque<(Nanos, Request)>,
    /// Requests under way, by their number.
    pending: HashMap<u64, Pending>,
    /// Parts at the disks, and the request they belong to.
    parts: HashMap<u64, u64>,
    /// Requests that the controller passes on: completion time, number.
    leaving: VecDeque<(Nanos, u64)>,
    pipe_free_at: Nanos,
    next_number: u64,
    counters: Counters,
    /// Buffer for the completions of the disks.
    served: Vec<Completion>,
}

impl Raid5 {
    /// Creates an idle array of `size` bytes.
    pub fn new(spec: Raid5Spec, size: u64) -> Self {
        let member_bytes = spec.member_bytes(size);
        let members = (0..spec.disks)
            .map(|index| {
                let seed = spec.disk.seed.wrapping_add(index);
                Disk::new(DiskSpec { seed, ..spec.disk.clone() }, member_bytes)
            })
            .collect();
        Raid5 {
            spec,
            members,
            arriving: VecDeque::new(),
            pending: HashMap::new(),
            parts: HashMap::new(),
            leaving: VecDeque::new(),
            pipe_free_at: 0,
            next_number: 0,
            counters: Counters::default(),
            served: Vec::new(),
        }
    }

    /// Submits the parts of a request to their disks.
    fn split(&mut self, at: Nanos, request: Request) {
        let parts = self.spec.parts(&request);
        let number = self.next_number;
        self.next_number += 1 + parts.len() as u64;
        self.pending.insert(number, Pending { request, parts_left: parts.len() });
        for (id, part) in (number + 1..).zip(parts) {
            self.parts.insert(id, number);
            let request = Request { id, offset: part.offset, bytes: part.bytes };
            self.members[part.disk].submit(at, request);
        }
    }

    /// Collects what the disks have completed at `now`. The controller passes a request on when it has all of it.
    fn collect(&mut self, now: Nanos) {
        for member in &mut self.members {
            member.advance(now, &mut self.served);
        }
        for part in self.served.drain(..) {
            let Some(number) = self.parts.remove(&part.id) else { continue };
            let Some(pending) = self.pending.get_mut(&number) else { continue };
            pending.parts_left -= 1;
            if pending.parts_left > 0 {
                continue;
            }
            let megabytes = pending.request.bytes as f64 * 1e-6;
            let transfer_s = self.spec.controller_mb_s.map_or(0.0, |mb_s| megabytes / mb_s);
            let busy = nanos(self.spec.controller_busy_us * 1e-6 + transfer_s);
            self.pipe_free_at = self.pipe_free_at.max(part.at).saturating_add(busy);
            self.leaving.push_back((self.pipe_free_at, number));
        }
    }

    fn leave(&mut self, at: Nanos, number: u64, done: &mut Vec<Completion>) {
        let Some(Pending { request, .. }) = self.pending.remove(&number) else { return };
        self.counters.requests += 1;
        self.counters.bytes += request.bytes;
        done.push(Completion { id: request.id, at });
    }
}

impl Model for Raid5 {
    fn submit(&mut self, now: Nanos, request: Request) {
        let at = now.saturating_add(nanos(self.spec.controller_us * 1e-6));
        self.arriving.push_back((at, request));
    }

    fn next_event(&self) -> Option<Nanos> {
        let arriving = self.arriving.front().map(|(at, _)| *at);
        let leaving = self.leaving.front().map(|(at, _)| *at);
        let members = self.members.iter().filter_map(Model::next_event);
        members.chain(arriving).chain(leaving).min()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while let Some(at) = self.next_event().filter(|at| *at <= now) {
            self.collect(at);
            if let Some(&(due, number)) = self.leaving.front()
                && due <= at
            {
                self.leaving.pop_front();
                self.leave(due, number, done);
            }
            if let Some(&(due, request)) = self.arriving.front()
                && due <= at
            {
                self.arriving.pop_front();
                self.split(due, request);
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.arriving.len() + self.pending.len()
    }

    fn counters(&self) -> Counters {
        let seeks = self.members.iter().map(|member| member.counters().seeks).sum();
        Counters { seeks, ..self.counters }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: u64 = 64 << 10;

    fn spec() -> Raid5Spec {
        crate::load("raid5-pe1750").expect("in the catalogue").raid5.expect("an array")
    }

    fn chunk(index: u64) -> Request {
        Request { id: 0, offset: index * CHUNK, bytes: CHUNK }
    }

    #[test]
    fn data_and_parity_lie_left_symmetric() {
        let spec = Raid5Spec { disks: 3, chunk_kib: 64, ..spec() };
        let places: Vec<_> = (0..7)
            .flat_map(|index| spec.parts(&chunk(index)))
            .map(|part| (part.disk, part.offset / CHUNK))
            .collect();
        assert_eq!(places, [(0, 0), (1, 0), (2, 1), (0, 1), (1, 2), (2, 2), (0, 3)]);
    }

    #[test]
    fn a_request_is_split_at_chunks_and_neighbours_on_a_disk_stay_together() {
        let spec = Raid5Spec { disks: 3, chunk_kib: 64, ..spec() };
        let part = |disk, offset, bytes| Part { disk, offset, bytes };
        let request = Request { id: 0, offset: 4096, bytes: 4 * CHUNK };
        let expected = [
            part(0, 4096, CHUNK - 4096 + CHUNK),
            part(1, 0, CHUNK),
            part(2, CHUNK, CHUNK),
            part(1, 2 * CHUNK, 4096),
        ];
        assert_eq!(spec.parts(&request), expected);
    }

    #[test]
    fn an_impossible_array_is_refused_with_a_reason() {
        let reason = |spec: Raid5Spec| spec.check().unwrap_err();
        assert!(reason(Raid5Spec { disks: 2, ..spec() }).contains("disks must be 3"));
        assert!(reason(Raid5Spec { chunk_kib: 0, ..spec() }).contains("chunk_kib"));
        assert!(reason(Raid5Spec { controller_us: -1.0, ..spec() }).contains("controller_us"));
        let disk = DiskSpec { rpm: 0.0, ..spec().disk };
        assert!(reason(Raid5Spec { disk, ..spec() }).contains("disk: rpm"));
    }
}
