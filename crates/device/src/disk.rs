//! A disk: one head, a seek curve, a platter that really turns, a track buffer, a queue.
//!
//! ```text
//!   angle of a byte  = (offset mod track) / track          the platter's angle = (now mod turn) / turn
//!
//!   service = command + seek(distance) + wait for the angle + bytes / media rate
//!
//!        segment: what the last request read, and what the drive goes on reading while idle
//!        |-- last request --|-- read-ahead, grows at media rate, up to the segment's size --|
//!        a request that starts in here is served from the buffer and streams on from it
//! ```
//!
//! The queue is served shortest positioning time first; waiting makes a request nearer (`ageing`),
//! so that none starves. Tracks are laid so that the next one follows without a gap. Writes are
//! charged as reads; there is no write cache.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::model::{Completion, Counters, Model, Nanos, Request, nanos};
use crate::spec::Cost;

/// Parameters of [`Disk`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskSpec {
    /// Revolutions a minute.
    pub rpm: f64,
    /// MB/s off the platter.
    pub media_mb_s: f64,
    /// Microseconds of controller and bus per request.
    pub command_us: f64,
    /// Microseconds of the shortest seek.
    pub settle_us: f64,
    /// Microseconds that a seek over the whole capacity takes in addition.
    pub full_stroke_us: f64,
    /// Capacity over which the seek curve is stretched, in GB.
    pub capacity_gb: f64,
    /// Track buffer, in KiB.
    pub segment_kib: u64,
    /// Requests the drive chooses from.
    pub queue_depth: usize,
    /// Milliseconds of positioning that a request gains per millisecond of waiting.
    pub ageing: f64,
}

impl DiskSpec {
    pub(crate) fn check(&self) -> Result<(), String> {
        let positive = [
            ("rpm", self.rpm),
            ("media_mb_s", self.media_mb_s),
            ("capacity_gb", self.capacity_gb),
            ("ageing", self.ageing),
        ];
        let not_negative = [
            ("command_us", self.command_us),
            ("settle_us", self.settle_us),
            ("full_stroke_us", self.full_stroke_us),
        ];
        for (name, value) in positive {
            if !(value.is_finite() && value > 0.0) {
                return Err(format!("{name} must be above 0"));
            }
        }
        for (name, value) in not_negative {
            if !(value.is_finite() && value >= 0.0) {
                return Err(format!("{name} must be 0 or more"));
            }
        }
        if self.queue_depth == 0 {
            return Err("queue_depth must be at least 1".into());
        }
        Ok(())
    }

    /// A visit is a command, a seek over a tenth of the capacity and half a turn.
    pub(crate) fn cost(&self) -> Cost {
        let seek_s = (self.settle_us + self.full_stroke_us * 0.1f64.sqrt()) * 1e-6;
        Cost {
            latency_s: self.command_us * 1e-6 + seek_s + self.turn_s() / 2.0,
            bandwidth: self.media_mb_s * 1e6,
            concurrency: 1.0,
        }
    }

    fn turn_s(&self) -> f64 {
        60.0 / self.rpm
    }

    fn bytes_per_ns(&self) -> f64 {
        self.media_mb_s * 1e-3
    }

    fn track_bytes(&self) -> u64 {
        (self.media_mb_s * 1e6 * self.turn_s()) as u64
    }
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    request: Request,
    at: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Active {
    request: Request,
    done_at: Nanos,
}

/// What the drive holds in its buffer and reads on into.
#[derive(Clone, Copy, Debug)]
struct Segment {
    start: u64,
    /// Up to here the host has asked; the drive reads on for what the segment has room for.
    consumed: u64,
    /// The media passed this byte ...
    media_from: u64,
    /// ... at this moment, reading on ever since until the limit.
    media_at: Nanos,
}

/// A disk.
#[derive(Debug)]
pub struct Disk {
    spec: DiskSpec,
    size: u64,
    queue: VecDeque<Queued>,
    active: Option<Active>,
    segment: Option<Segment>,
    head: u64,
    counters: Counters,
}

impl Disk {
    /// An idle disk of `size` bytes with its head at the start.
    pub fn new(spec: DiskSpec, size: u64) -> Self {
        Disk {
            spec,
            size,
            queue: VecDeque::new(),
            active: None,
            segment: None,
            head: 0,
            counters: Counters::default(),
        }
    }

    /// How far the drive reads ahead: what the segment has room for, half of it at least.
    fn read_ahead_limit(&self, segment: &Segment) -> u64 {
        let size = self.spec.segment_kib * 1024;
        let room = size.saturating_sub(segment.consumed - segment.start).max(size / 2);
        (segment.consumed + room).min(self.size).max(segment.media_from)
    }

    /// The media's end of the segment at `now`: it grows at media rate up to the limit.
    fn read_ahead_end(&self, segment: &Segment, now: Nanos) -> u64 {
        let grown = now.saturating_sub(segment.media_at) as f64 * self.spec.bytes_per_ns();
        (segment.media_from + grown as u64).min(self.read_ahead_limit(segment))
    }

    /// When a request started at `now` would be done, and whether the head had to be positioned.
    fn service(&self, now: Nanos, request: &Request) -> (Nanos, bool) {
        let begin = now + nanos(self.spec.command_us * 1e-6);
        if let Some(segment) = &self.segment {
            let buffered = self.read_ahead_end(segment, now);
            let is_running = buffered < self.read_ahead_limit(segment);
            if (segment.start..=buffered).contains(&request.offset) {
                let end = request.offset + request.bytes;
                if end <= buffered {
                    return (begin, false);
                }
                if is_running {
                    let streamed = (end - segment.media_from) as f64 / self.spec.bytes_per_ns();
                    return ((segment.media_at + streamed as Nanos).max(begin), false);
                }
                // The drive had stopped reading ahead: the platter must come round again.
                let missing = end - buffered;
                let at = begin + self.turn_to(begin, buffered);
                return (at + (missing as f64 / self.spec.bytes_per_ns()) as Nanos, true);
            }
        }
        let arrived = begin + self.seek(request.offset);
        let at = arrived + self.turn_to(arrived, request.offset);
        (at + (request.bytes as f64 / self.spec.bytes_per_ns()) as Nanos, true)
    }

    fn seek(&self, offset: u64) -> Nanos {
        let track = self.spec.track_bytes();
        if self.head / track == offset / track {
            return 0;
        }
        let distance = self.head.abs_diff(offset) as f64 / (self.spec.capacity_gb * 1e9);
        nanos((self.spec.settle_us + self.spec.full_stroke_us * distance.sqrt()) * 1e-6)
    }

    /// How long until the platter brings `offset` under the head.
    fn turn_to(&self, now: Nanos, offset: u64) -> Nanos {
        let turn = nanos(self.spec.turn_s());
        let track = self.spec.track_bytes();
        let wanted = ((offset % track) as f64 / track as f64 * turn as f64) as Nanos;
        (wanted + turn - now % turn) % turn
    }

    /// Starts the request of the queue's first `queue_depth` that is nearest, its age considered.
    fn start_next(&mut self, now: Nanos) {
        let choice = self
            .queue
            .iter()
            .take(self.spec.queue_depth)
            .enumerate()
            .map(|(index, queued)| {
                let (done_at, _) = self.service(now, &queued.request);
                let transfer = queued.request.bytes as f64 / self.spec.bytes_per_ns();
                let positioning = done_at.saturating_sub(now) as f64 - transfer;
                let age = now.saturating_sub(queued.at) as f64;
                (positioning - self.spec.ageing * age, index)
            })
            .min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, index)) = choice else { return };
        let Some(queued) = self.queue.remove(index) else {
            return;
        };
        let (done_at, positioned) = self.service(now, &queued.request);
        self.counters.seeks += u64::from(positioned);
        self.active = Some(Active { request: queued.request, done_at });
    }

    fn finish(&mut self, active: Active) -> Completion {
        let request = active.request;
        let end = request.offset + request.bytes;
        self.segment = Some(self.segment_after(&request, end, active.done_at));
        self.head = end;
        self.counters.requests += 1;
        self.counters.bytes += request.bytes;
        Completion { id: request.id, at: active.done_at }
    }

    /// A request served from the buffer leaves the drive reading on; any other begins a segment.
    fn segment_after(&self, request: &Request, end: u64, done_at: Nanos) -> Segment {
        let size = self.spec.segment_kib * 1024;
        let fresh = Segment {
            start: request.offset.max(end.saturating_sub(size)),
            consumed: end,
            media_from: end,
            media_at: done_at,
        };
        let Some(mut segment) = self.segment else {
            return fresh;
        };
        let media = self.read_ahead_end(&segment, done_at);
        if !(segment.start..=media).contains(&request.offset) || end > media {
            return fresh;
        }
        if media == self.read_ahead_limit(&segment) {
            // It had stopped; to go on the platter must come round.
            segment.media_from = media;
            segment.media_at = done_at + self.turn_to(done_at, media);
        }
        segment.consumed = segment.consumed.max(end);
        segment.start = segment.start.max(segment.consumed.saturating_sub(size));
        segment
    }
}

impl Model for Disk {
    fn submit(&mut self, now: Nanos, request: Request) {
        self.queue.push_back(Queued { request, at: now });
        if self.active.is_none() {
            self.start_next(now);
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        self.active.map(|active| active.done_at)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while let Some(active) = self.active.filter(|active| active.done_at <= now) {
            self.active = None;
            done.push(self.finish(active));
            self.start_next(active.done_at);
        }
    }

    fn in_flight(&self) -> usize {
        self.queue.len() + usize::from(self.active.is_some())
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
