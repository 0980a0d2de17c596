//! Keeps a device model in step with the clock although replies go out late.
//!
//! ```text
//!   the model's time    request ----------> due, request' -----------> due'
//!   the real clock      request ----------> due ..late..> reply,       due' ..late..> reply'
//!                                                         request'
//! ```
//!
//! On a machine with other work, a reply goes out late, and the reader that waited for it sends its next request just
//! as late. So the model gets that request as if it had come earlier, by the delay of the last reply. Its own reply is
//! then due when it would be on an idle machine: delays do not add up.
//!
//! The model is never faster than described. No request goes to the model before the reply that it follows was due, nor
//! before the time of the model's last completion. [`Lateness`] counts what cannot be credited as an error of the
//! measured time:
//!
//! - A request gets a credit of at most [`MOST_CREDIT`].
//! - A lag expires after [`CREDIT`]: a later request may not have waited for the reply.
//! - If several replies go out before the next request, it is unknown which of them it follows.
//!
//! This module has no clock: each call passes the time.

#[cfg(test)]
mod simulation;

use std::collections::HashMap;

use device::{Completion, Counters, Model, Nanos, Request};

/// A request that comes within this time after a reply counts as following it, in nanoseconds. A reader needs a tenth
/// of that, and more on a busy machine.
const CREDIT: Nanos = 1_000_000;

/// The largest credit of a request, in nanoseconds. If the machine cannot keep up with a fast device, the lag grows;
/// without this bound, the device would race once the machine can keep up.
const MOST_CREDIT: Nanos = 50_000_000;

/// How late replies were, and how that affects measured times, in microseconds. All but `max_us` are sums, so the
/// difference of two is that of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Lateness {
    /// Number of replies.
    pub(crate) replies: u64,
    /// Sum of their delays.
    pub(crate) sum_us: f64,
    /// The longest delay.
    pub(crate) max_us: f64,
    /// Delay that was not credited, and so may have been added to the measured time.
    pub(crate) lost_us: f64,
    /// The variance that the delay adds, in square microseconds: a disk may have turned away in the meantime, or not.
    pub(crate) spread_us2: f64,
}

/// How far the model's time lags behind the clock.
#[derive(Clone, Copy, Debug)]
struct Lag {
    /// How late the last reply was.
    late: Nanos,
    /// When it went out.
    since: Nanos,
    /// Whether a request has followed.
    is_used: bool,
    /// Delay counted as lost, on the assumption that no request follows.
    lost_us: f64,
    spread_us2: f64,
}

/// A model in step with the clock.
pub(crate) struct Pacing {
    model: Box<dyn Model>,
    has_head: bool,
    /// The latest time that the model knows.
    model_time: Nanos,
    lag: Option<Lag>,
    /// When each request went to the model, in the model's time, until its reply goes out.
    submitted: HashMap<u64, Nanos>,
    /// Completed requests, to be taken.
    done: Vec<Completion>,
    /// Sum of the device's service times, in microseconds.
    service_us: f64,
    lateness: Lateness,
}

impl Pacing {
    /// `has_head`: whether the device has a head, which may have moved before a late request.
    pub(crate) fn new(model: Box<dyn Model>, has_head: bool) -> Self {
        Pacing {
            model,
            has_head,
            model_time: 0,
            lag: None,
            service_us: 0.0,
            submitted: HashMap::new(),
            done: Vec::new(),
            lateness: Lateness::default(),
        }
    }

    /// Passes on a request that has come at `now`.
    pub(crate) fn submit(&mut self, now: Nanos, request: Request) {
        let credit = self.credit(now);
        let at = now.saturating_sub(credit).max(self.model_time);
        self.advance(at);
        self.model_time = at;
        self.submitted.insert(request.id, at);
        self.model.submit(at, request);
    }

    /// When the next reply is due; in the past if it is late.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        self.done.first().map(|reply| reply.at).or_else(|| self.model.next_event())
    }

    /// Removes and returns what is due by `now`, in order. Call [`sent`](Self::sent) for each.
    pub(crate) fn take_due(&mut self, now: Nanos) -> Vec<Completion> {
        self.advance(now);
        std::mem::take(&mut self.done)
    }

    /// Notes that nobody waits for the reply.
    pub(crate) fn forget(&mut self, reply: Completion) {
        self.submitted.remove(&reply.id);
    }

    /// Notes that the reply went out at `now`.
    pub(crate) fn sent(&mut self, reply: Completion, now: Nanos) {
        let late = now.saturating_sub(reply.at);
        let in_flight = self.submitted.len().max(1) as f64;
        let service = self.submitted.remove(&reply.id).map_or(0, |at| reply.at.saturating_sub(at));
        let late_us = micros(late);
        self.service_us += micros(service);
        self.lateness.replies += 1;
        self.lateness.sum_us += late_us;
        self.lateness.max_us = self.lateness.max_us.max(late_us);

        // Readers wait side by side: delaying one of thirty costs all of them a thirtieth. Count three times that,
        // since the others may wait for this one.
        let share = (3.0 / in_flight).min(1.0);
        let is_recent = |lag: &Lag| now.saturating_sub(lag.since) <= CREDIT;
        if let Some(last) = self.lag.filter(|lag| !lag.is_used && is_recent(lag)) {
            // The request after the last reply gets this reply's delay as its credit. Count twice the difference, since
            // requests that follow neither are credited as well.
            self.lateness.lost_us -= last.lost_us;
            self.lateness.lost_us +=
                2.0 * micros(last.late.abs_diff(late.min(MOST_CREDIT))) * share;
        }
        let lost_us = late_us * share;
        let spread_us2 =
            if self.has_head { self.spread_us2(late_us, micros(service)) } else { 0.0 };
        self.lateness.lost_us += lost_us;
        self.lateness.spread_us2 += spread_us2;
        self.lag = Some(Lag { late, since: now, is_used: false, lost_us, spread_us2 });
    }

    /// A late request finds that the head or the angle has moved, with a probability of lateness over service time. It
    /// then waits for another service time.
    fn spread_us2(&self, late_us: f64, service_us: f64) -> f64 {
        let typical_us = self.service_us / self.lateness.replies.max(1) as f64;
        late_us.min(typical_us) * typical_us.max(service_us)
    }

    /// How much earlier than `now` a request counts as having come.
    fn credit(&mut self, now: Nanos) -> Nanos {
        let Some(lag) = self.lag.as_mut().filter(|lag| now.saturating_sub(lag.since) <= CREDIT)
        else {
            return 0;
        };
        let credit = lag.late.min(MOST_CREDIT);
        if !std::mem::replace(&mut lag.is_used, true) {
            // A request follows, and is not delayed.
            let part = if lag.late == 0 { 1.0 } else { credit as f64 / lag.late as f64 };
            self.lateness.lost_us -= lag.lost_us * part;
            self.lateness.spread_us2 -= lag.spread_us2 * part;
        }
        credit
    }

    /// Steps from event to event, so that the model's time stays at the last event.
    fn advance(&mut self, now: Nanos) {
        while let Some(at) = self.model.next_event().filter(|at| *at <= now) {
            self.model_time = self.model_time.max(at);
            self.model.advance(self.model_time, &mut self.done);
        }
    }

    /// Requests that the model has and that are not answered.
    pub(crate) fn in_flight(&self) -> usize {
        self.submitted.len()
    }

    pub(crate) fn counters(&self) -> Counters {
        self.model.counters()
    }

    pub(crate) fn lateness(&self) -> Lateness {
        self.lateness
    }
}

fn micros(time: Nanos) -> f64 {
    time as f64 * 1e-3
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    /// 5 ms for each request, whatever else is in flight.
    fn network() -> Pacing {
        Pacing::new(device::load("net").expect("it is in the catalogue").build(1 << 30), false)
    }

    fn request(id: u64) -> Request {
        Request { id, offset: id << 20, bytes: 512 }
    }

    /// Submits a request at `now` and sends its reply `late`. Returns when it was due.
    fn ask(pacing: &mut Pacing, id: u64, now: Nanos, late: Nanos) -> Nanos {
        pacing.submit(now, request(id));
        let replies = pacing.take_due(now + 100 * MS);
        let [reply] = replies[..] else { panic!("one is under way") };
        pacing.sent(reply, reply.at + late);
        reply.at
    }

    #[test]
    fn a_late_reply_is_credited_to_the_request_that_follows_it() {
        let mut pacing = network();
        let service = ask(&mut pacing, 0, 0, MS / 2);
        let due = ask(&mut pacing, 1, service + MS / 2, 0);
        assert_eq!(due, 2 * service, "as if none had been late");
        assert_eq!(pacing.lateness().lost_us, 0.0);
        assert_eq!(pacing.lateness().sum_us, 500.0);
    }

    #[test]
    fn a_request_that_comes_long_after_gets_no_credit_and_the_delay_is_counted() {
        let mut pacing = network();
        let service = ask(&mut pacing, 0, 0, MS / 2);
        let now = service + MS / 2 + CREDIT + 1;
        assert_eq!(ask(&mut pacing, 1, now, 0), now + service);
        assert_eq!(pacing.lateness().lost_us, 500.0);
    }

    #[test]
    fn the_credit_is_bounded_and_the_rest_is_counted() {
        let mut pacing = network();
        let service = ask(&mut pacing, 0, 0, 4 * MOST_CREDIT);
        let now = service + 4 * MOST_CREDIT;
        assert_eq!(ask(&mut pacing, 1, now, 0), now - MOST_CREDIT + service);
        assert_eq!(pacing.lateness().lost_us, 3.0 * micros(MOST_CREDIT));
    }

    #[test]
    fn a_reply_on_time_gives_nothing_to_credit() {
        let mut pacing = network();
        let service = ask(&mut pacing, 0, 0, 0);
        assert_eq!(ask(&mut pacing, 1, service, 0), 2 * service);
        assert_eq!(pacing.lateness(), Lateness { replies: 2, ..Lateness::default() });
    }

    #[test]
    fn no_request_is_handed_over_before_what_the_model_has_completed() {
        let mut pacing = network();
        let service = ask(&mut network(), 0, 0, 0);
        pacing.submit(0, request(0));
        pacing.submit(MS / 10, request(1));
        let now = service + MS;
        let replies = pacing.take_due(now);
        let last = replies.last().expect("both are due").at;
        assert_eq!(replies.len(), 2);
        replies.into_iter().for_each(|reply| pacing.sent(reply, now));
        assert_eq!(ask(&mut pacing, 2, now, 0), last + service);
        assert!(pacing.lateness().lost_us > 0.0, "the first reader has lost some of its time");
    }
}
