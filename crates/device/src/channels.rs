//! Devices without mechanics: requests wait in parallel, then share one pipe.
//!
//! ```text
//!   submit -> [queue] -> slot 1: |--- latency ---|= transfer =|
//!                        slot 2:  |--- latency ---|           |= transfer =|
//!                        slot Q:     ...                      one pipe, in order of readiness
//! ```
//!
//! A request occupies one of `concurrency` slots, waits there for its latency, passes the shared
//! pipe, and frees the slot. Latency may grow with size up to a plateau (`t = L + L1 * (1 -
//! e^(-s/s0))`, from an SSD's planes). A request larger than the cap becomes several commands, each
//! with its own latency. With `jitter`, waits vary by request, drawn from a fixed pseudo-random
//! sequence.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use readahead::DeviceCost;
use serde::{Deserialize, Serialize};

use crate::bounds::{self, within, within_or_absent};
use crate::model::{Completion, Counters, Model, Nanos, Request, nanos};
use crate::random;

/// Parameters of [`Channels`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelsSpec {
    /// Microseconds before the first byte of a command.
    pub latency_us: f64,
    /// MB/s of the pipe.
    pub bandwidth_mb_s: f64,
    /// Requests that can wait in parallel.
    pub concurrency: usize,
    /// Largest command in KiB; unlimited if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_cap_kib: Option<u64>,
    /// Additional wait of large commands in microseconds (`L1`).
    #[serde(default)]
    pub saturating_us: f64,
    /// Size in KiB at which 63 % of the additional wait apply (`s0`).
    #[serde(default)]
    pub saturating_kib: f64,
    /// How much a request's wait varies, as a share of itself, uniformly; 0.2 means 80 to 120 %. No
    /// two requests of a real device take the same time, and policies see that.
    #[serde(default)]
    pub jitter: f64,
    /// Seed of the sequence of variations.
    #[serde(default)]
    pub seed: u64,
}

impl ChannelsSpec {
    /// Checks that such a device could exist.
    ///
    /// # Errors
    /// Names the parameter that is out of its range.
    pub fn check(&self) -> Result<(), String> {
        let most_kib = *bounds::KIB.end();
        within("latency_us", self.latency_us, bounds::US)?;
        within("bandwidth_mb_s", self.bandwidth_mb_s, bounds::MB_S)?;
        within("concurrency", self.concurrency, bounds::DEPTH)?;
        within_or_absent("request_cap_kib", self.request_cap_kib, 1..=most_kib)?;
        within("saturating_us", self.saturating_us, bounds::US)?;
        within("saturating_kib", self.saturating_kib, 0.0..=most_kib as f64)?;
        within("jitter", self.jitter, 0.0..=1.0)
    }

    pub(crate) fn cost(&self) -> DeviceCost {
        let capped =
            self.request_cap_kib.map_or(0.0, |kib| self.latency_us / (kib as f64 * 1024.0));
        let byte_s = 1e-6 / self.bandwidth_mb_s + capped * 1e-6;
        DeviceCost {
            latency_s: self.latency_us * 1e-6,
            bandwidth: 1.0 / byte_s,
            concurrency: self.concurrency as f64,
        }
    }

    /// Nanoseconds that the request number `index` waits before its transfer.
    fn wait(&self, bytes: u64, index: u64) -> Nanos {
        let cap = self.request_cap_kib.map_or(u64::MAX, |kib| kib * 1024);
        let commands = bytes.div_ceil(cap).max(1);
        let saturating = if self.saturating_kib > 0.0 {
            let size = bytes.min(cap) as f64 / (self.saturating_kib * 1024.0);
            self.saturating_us * (1.0 - (-size).exp())
        } else {
            0.0
        };
        let seconds = commands as f64 * (self.latency_us + saturating) * 1e-6;
        if self.jitter == 0.0 {
            return nanos(seconds);
        }
        nanos(seconds * (1.0 + self.jitter * (2.0 * random::unit(self.seed, index) - 1.0)))
    }

    fn transfer(&self, bytes: u64) -> Nanos {
        nanos(bytes as f64 * 1e-6 / self.bandwidth_mb_s)
    }
}

/// A flash drive or network volume.
#[derive(Debug)]
pub struct Channels {
    spec: ChannelsSpec,
    queue: VecDeque<Request>,
    /// When each waiting request is ready. The pipe serves them in this order.
    ready: BinaryHeap<Reverse<(Nanos, u64, u64)>>,
    /// Requests in the pipe or done: completion time, id, bytes.
    leaving: VecDeque<(Nanos, u64, u64)>,
    pipe_free_at: Nanos,
    next_offset: u64,
    /// Number of requests that have occupied a slot.
    admitted: u64,
    counters: Counters,
}

impl Channels {
    /// Creates an idle device.
    pub fn new(spec: ChannelsSpec) -> Self {
        Channels {
            spec,
            queue: VecDeque::new(),
            ready: BinaryHeap::new(),
            leaving: VecDeque::new(),
            pipe_free_at: 0,
            next_offset: u64::MAX,
            admitted: 0,
            counters: Counters::default(),
        }
    }

    fn occupied(&self) -> usize {
        self.ready.len() + self.leaving.len()
    }

    fn admit(&mut self, now: Nanos) {
        while self.occupied() < self.spec.concurrency {
            let Some(request) = self.queue.pop_front() else {
                return;
            };
            if request.offset != self.next_offset {
                self.counters.seeks += 1;
            }
            self.next_offset = request.offset + request.bytes;
            let ready_at = now.saturating_add(self.spec.wait(request.bytes, self.admitted));
            self.admitted += 1;
            self.ready.push(Reverse((ready_at, request.id, request.bytes)));
        }
    }

    /// Processes the next event: a request enters the pipe or leaves it.
    fn step(&mut self, now: Nanos, done: &mut Vec<Completion>) -> bool {
        let entering = self.ready.peek().map(|Reverse((at, ..))| *at);
        let leaving = self.leaving.front().map(|(at, ..)| *at);
        match (entering, leaving) {
            (Some(enter), leave) if enter <= now && leave.is_none_or(|leave| enter <= leave) => {
                let Some(Reverse((_, id, bytes))) = self.ready.pop() else {
                    return false;
                };
                let begins_at = self.pipe_free_at.max(enter);
                let done_at = begins_at.saturating_add(self.spec.transfer(bytes));
                self.pipe_free_at = done_at;
                self.leaving.push_back((done_at, id, bytes));
                true
            }
            (_, Some(leave)) if leave <= now => {
                let Some((at, id, bytes)) = self.leaving.pop_front() else {
                    return false;
                };
                self.counters.requests += 1;
                self.counters.bytes += bytes;
                done.push(Completion { id, at });
                self.admit(at);
                true
            }
            _ => false,
        }
    }
}

impl Model for Channels {
    fn submit(&mut self, now: Nanos, request: Request) {
        self.queue.push_back(request);
        self.admit(now);
    }

    fn next_event(&self) -> Option<Nanos> {
        let entering = self.ready.peek().map(|Reverse((at, ..))| *at);
        let leaving = self.leaving.front().map(|(at, ..)| *at);
        entering.into_iter().chain(leaving).min()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while self.step(now, done) {}
    }

    fn in_flight(&self) -> usize {
        self.queue.len() + self.occupied()
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_spreads_the_waits_around_their_mean_and_repeats() {
        let spec = ChannelsSpec {
            jitter: 0.2,
            ..crate::load("net").expect("in the catalogue").channels.expect("channels")
        };
        let waits: Vec<_> = (0..2000).map(|index| spec.wait(4096, index)).collect();
        assert!(waits.iter().all(|wait| (4_000_000..=6_000_000).contains(wait)));
        let mean = waits.iter().sum::<u64>() as f64 / 2000.0;
        assert!((mean / 5e6 - 1.0).abs() < 0.01, "{mean}");
        assert_eq!(waits[7], spec.wait(4096, 7));
        assert!(waits[7] != ChannelsSpec { seed: 1, ..spec }.wait(4096, 7));
    }

    #[test]
    fn impossible_jitter_is_refused() {
        let net = crate::load("net").expect("in the catalogue").channels.expect("channels");
        for jitter in [-0.1, 1.1, f64::NAN] {
            assert!(ChannelsSpec { jitter, ..net.clone() }.check().unwrap_err().contains("jitter"));
        }
    }
}
