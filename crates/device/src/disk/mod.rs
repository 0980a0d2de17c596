//! A disk: one head, a seek curve, a platter that turns in virtual time, a track buffer, a queue.
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
//! The queue is served shortest positioning time first. A waiting request counts as nearer
//! (`ageing`), so none starves. Tracks are laid out so that the next one follows without a gap.
//! Writes cost as much as reads; there is no write cache.
//!
//! Optional: zones (`inner_mb_s`), a bus (`bus_mb_s`), reading whole tracks from wherever the head
//! arrives (`reads_whole_tracks`), random angles (`random_rotation`).

mod buffer;
mod kept;
mod service;
mod spec;
mod surface;

use std::collections::VecDeque;

use self::buffer::{Lap, ReadAhead, Segment};
use self::kept::Kept;
use self::service::Service;
pub use self::spec::DiskSpec;
use self::surface::Surface;
use crate::model::{Completion, Counters, Model, Nanos, Request, nanos};
use crate::random;

#[derive(Clone, Copy, Debug)]
struct Queued {
    request: Request,
    at: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Active {
    request: Request,
    service: Service,
}

/// A disk.
#[derive(Debug)]
pub struct Disk {
    spec: DiskSpec,
    surface: Surface,
    read_ahead: ReadAhead,
    queue: VecDeque<Queued>,
    active: Option<Active>,
    segment: Option<Segment>,
    /// What earlier segments left in the buffer.
    kept: Kept,
    head: u64,
    counters: Counters,
}

impl Disk {
    /// Creates an idle disk of `size` bytes with its head at the start.
    pub fn new(spec: DiskSpec, size: u64) -> Self {
        Disk {
            surface: spec.surface(),
            read_ahead: ReadAhead::new(&spec, size),
            kept: Kept::new(spec.segments - 1),
            spec,
            queue: VecDeque::new(),
            active: None,
            segment: None,
            head: 0,
            counters: Counters::default(),
        }
    }

    /// How a request would be served from `now` on.
    fn service(&self, now: Nanos, request: &Request) -> Service {
        let begin = now.saturating_add(nanos(self.spec.command_us * 1e-6));
        if let Some(segment) = &self.segment
            && let Some(service) = self.served_from_buffer(segment, now, begin, request)
        {
            return service;
        }
        if self.kept.holds(request.offset, request.offset + request.bytes) {
            let done_at = begin.saturating_add(self.bus(request.bytes));
            return Service { is_kept: true, ..Service::buffered(done_at) };
        }
        let (offset, end) = self.missing(now, request);
        let arrived = begin.saturating_add(self.seek(offset));
        let wait = self.turn_to(arrived, offset);
        let lap = self.lap(arrived, wait, offset, end);
        if let Some(read_at) = lap.and_then(|lap| lap.serves(&self.surface, arrived, offset, end)) {
            let done_at = read_at.max(begin.saturating_add(self.bus(request.bytes)));
            return Service { lap, ..Service::positioned(done_at) };
        }
        let read_from = self.spec.reads_whole_tracks.then(|| self.passed(wait, offset));
        let done_at = arrived.saturating_add(wait).saturating_add(self.transfer(offset, end));
        Service { read_from, ..Service::positioned(done_at) }
    }

    /// The first byte of `offset`'s track that passes the head during a wait for `offset`: the byte
    /// at the angle where the head arrived, or the track's first byte if that lies behind `offset`.
    fn passed(&self, wait: Nanos, offset: u64) -> u64 {
        let first = self.surface.track_start(self.surface.track(offset));
        match self.surface.angle(offset).checked_sub(wait) {
            Some(angle) => self.surface.reached(first, angle).min(offset),
            None => first,
        }
    }

    /// Serves a request that starts in the buffer or where the drive is currently reading.
    fn served_from_buffer(
        &self,
        segment: &Segment,
        now: Nanos,
        begin: Nanos,
        request: &Request,
    ) -> Option<Service> {
        let end = self.kept.end_of(request.offset, request.offset + request.bytes);
        let sent = begin.saturating_add(self.bus(request.bytes));
        if let Some(read_at) =
            segment.lap.and_then(|lap| lap.serves(&self.surface, now, request.offset, end))
        {
            return Some(Service::buffered(read_at.max(sent)));
        }
        let buffered = self.read_ahead.end(segment, &self.surface, now);
        let limit = self.read_ahead.limit(segment);
        let is_running = buffered < limit;
        let known = self.known_end(segment, now, buffered, limit);
        if !(segment.start..=known).contains(&request.offset) {
            return None;
        }
        if end <= buffered {
            return Some(Service::buffered(sent));
        }
        if is_running {
            let streamed = self.surface.passing(segment.media_from, end) as Nanos;
            return Some(Service::buffered(segment.media_at.saturating_add(streamed).max(sent)));
        }
        // The drive had stopped reading ahead, so the platter must turn to that angle again.
        let at = begin.saturating_add(self.turn_to(begin, buffered));
        let done_at = at.saturating_add(self.surface.passing(buffered, end) as Nanos);
        Some(Service::positioned(done_at.max(sent)))
    }

    /// Up to where a request is served by reading on. With true angles, it is known what will pass
    /// the head. With random ones, the drive reads on to data that arrives within half a
    /// revolution, as it does when a stream skips something.
    fn known_end(&self, segment: &Segment, now: Nanos, buffered: u64, limit: u64) -> u64 {
        if self.spec.random_rotation && segment.media_at <= now {
            return self.surface.reached(buffered, self.surface.turn / 2).min(limit);
        }
        buffered
    }

    /// What the drive has to read: the request without the end that is in the buffer already.
    fn missing(&self, now: Nanos, request: &Request) -> (u64, u64) {
        let end = request.offset + request.bytes;
        let end = self.kept.end_of(request.offset, end);
        match &self.segment {
            Some(segment)
                if self.spec.reads_whole_tracks
                    && (request.offset + 1..end).contains(&segment.start)
                    && segment.holds(&self.surface, now, segment.start, end) =>
            {
                (request.offset, segment.start)
            }
            _ => (request.offset, end),
        }
    }

    /// The revolution over `offset`'s track, if the drive reads whole tracks and the request does
    /// not continue on the next one.
    fn lap(&self, arrived: Nanos, wait: Nanos, offset: u64, end: u64) -> Option<Lap> {
        let track = self.surface.track(offset);
        let (start, track_end) =
            (self.surface.track_start(track), self.surface.track_start(track + 1));
        let turn = self.surface.turn;
        let angle = (self.surface.angle(offset) + turn - wait % turn) % turn;
        (self.spec.reads_whole_tracks && end <= track_end).then_some(Lap {
            start,
            end: track_end,
            at: arrived,
            angle,
        })
    }

    /// Nanoseconds from the platter to the host. The slower of media and bus counts.
    fn transfer(&self, from: u64, to: u64) -> Nanos {
        (self.surface.passing(from, to) as Nanos).max(self.bus(to - from))
    }

    fn bus(&self, bytes: u64) -> Nanos {
        self.spec.bus_mb_s.map_or(0, |mb_s| nanos(bytes as f64 * 1e-6 / mb_s))
    }

    fn seek(&self, offset: u64) -> Nanos {
        if self.surface.track(self.head) == self.surface.track(offset) {
            return 0;
        }
        let distance = self.head.abs_diff(offset) as f64 / (self.spec.capacity_gb * 1e9);
        nanos((self.spec.settle_us + self.spec.full_stroke_us * distance.sqrt()) * 1e-6)
    }

    /// Nanoseconds until `offset` is under the head.
    fn turn_to(&self, now: Nanos, offset: u64) -> Nanos {
        let turn = self.surface.turn;
        if self.spec.random_rotation {
            // A number for this seek and offset: the count goes to high bits that no offset uses.
            let place = self.counters.seeks.rotate_right(20) ^ offset;
            return (random::unit(self.spec.seed, place) * turn as f64) as Nanos;
        }
        (self.surface.angle(offset) + turn - now % turn) % turn
    }

    /// Starts the nearest of the queue's first `queue_depth` requests, considering their ages.
    fn start_next(&mut self, now: Nanos) {
        let choice = self
            .queue
            .iter()
            .take(self.spec.queue_depth)
            .enumerate()
            .map(|(index, queued)| {
                let request = &queued.request;
                let done_at = self.service(now, request).done_at;
                let transfer = self.surface.passing(request.offset, request.offset + request.bytes);
                let positioning = done_at.saturating_sub(now) as f64 - transfer;
                let age = now.saturating_sub(queued.at) as f64;
                (positioning - self.spec.ageing * age, index)
            })
            .min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, index)) = choice else { return };
        let Some(queued) = self.queue.remove(index) else {
            return;
        };
        let service = self.service(now, &queued.request);
        self.counters.seeks += u64::from(service.is_positioned);
        if let Some(segment) = self.segment.filter(|_| service.is_positioned) {
            for run in self.read_ahead.held(&segment, &self.surface, now) {
                self.kept.keep(run);
            }
        }
        self.active = Some(Active { request: queued.request, service });
    }

    fn finish(&mut self, active: Active) -> Completion {
        let Active { request, service } = active;
        self.counters.requests += 1;
        self.counters.bytes += request.bytes;
        let completion = Completion { id: request.id, at: service.done_at };
        if service.is_kept {
            return completion;
        }
        let end = request.offset + request.bytes;
        self.segment = Some(match service.lap {
            Some(lap) => Segment::lapping(lap, end, &self.surface),
            None => self.segment_after(&request, end, &service),
        });
        // During a lap, the head stays on the track, wherever the request ended.
        self.head = service.lap.map_or(end, |lap| lap.start);
        completion
    }

    /// The segment after a request. If it was served from the buffer, the drive reads on; any other
    /// request begins a new segment.
    fn segment_after(&self, request: &Request, end: u64, service: &Service) -> Segment {
        let size = self.read_ahead.buffer;
        let done_at = service.done_at;
        let read_from = service.read_from.unwrap_or(request.offset);
        let fresh = Segment {
            start: read_from.max(end.saturating_sub(size)),
            consumed: end,
            media_from: end,
            media_at: done_at,
            lap: None,
        };
        let Some(mut segment) = self.segment else {
            return fresh;
        };
        let media = self.read_ahead.end(&segment, &self.surface, done_at);
        if !(segment.start..=media).contains(&request.offset) {
            return fresh;
        }
        if end > media {
            // Start a new segment if the head was positioned. Otherwise continue: data kept
            // elsewhere, or present in time except for rounding of bytes and nanoseconds.
            let start = if service.is_positioned { fresh.start } else { segment.start };
            return Segment { start: start.max(end.saturating_sub(size)), ..fresh };
        }
        if media == self.read_ahead.limit(&segment) {
            // The drive had stopped. To continue, the platter must turn there, after the lap if
            // there is one.
            let lap_over = segment.lap.map_or(0, |_| segment.media_at);
            segment.media_from = media;
            segment.media_at = done_at.saturating_add(self.turn_to(done_at, media)).max(lap_over);
        }
        segment.consumed = segment.consumed.max(end);
        segment.trim(size);
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
        self.active.map(|active| active.service.done_at)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while let Some(active) = self.active.filter(|active| active.service.done_at <= now) {
            self.active = None;
            done.push(self.finish(active));
            self.start_next(active.service.done_at);
        }
    }

    fn in_flight(&self) -> usize {
        self.queue.len() + usize::from(self.active.is_some())
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
