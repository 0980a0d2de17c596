//! Keeps a device model in step with a clock on which replies go out late.
//!
//! ```text
//!   the model's time    request ----------> due, request' -----------> due'
//!   the real clock      request ----------> due ..late..> reply,       due' ..late..> reply'
//!                                                         request'
//! ```
//!
//! On a machine that has other work a reply goes out late, and the reader that waited for it asks for the
//! next bytes just as much later. So a request is handed to the model as if it had come earlier, by as much
//! as the last reply was late. Its own reply is then due when it would be on an idle machine: lateness does
//! not add up.
//!
//! The model stays as slow as described. No request is handed over before the reply that it follows was due,
//! nor before what the model has completed. What cannot be credited is counted as an error of the time
//! measured, in [`Lateness`]:
//!
//! - No request is credited more than [`MOST_CREDIT`].
//! - A lag expires after [`CREDIT`]: a request that comes later may not have waited for the reply.
//! - When several replies go out before the next request, it is not known which of them it follows.
//!
//! Pure: it is told the time with every call.

#[cfg(test)]
mod simulation;

use std::collections::HashMap;

use device::{Completion, Counters, Model, Nanos, Request};

/// A request that comes within this time after a reply is taken to follow it, in nanoseconds. A reader needs
/// a tenth of it to go on, and more on a busy machine.
const CREDIT: Nanos = 1_000_000;

/// A request is credited no more than this, in nanoseconds. On a machine that cannot keep up with a fast
/// device the lag would grow, and the device would race once the machine can.
const MOST_CREDIT: Nanos = 50_000_000;

/// How late replies were, and what that does to the time measured, in microseconds. Sums, so that the
/// difference of two is that of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Lateness {
    /// Replies that went out.
    pub(crate) replies: u64,
    /// Their lateness.
    pub(crate) sum_us: f64,
    /// The latest reply.
    pub(crate) max_us: f64,
    /// Delay that was not credited: what it may add to the time measured.
    pub(crate) lost_us: f64,
    /// What that delay adds beside itself, as a variance, in square microseconds: a disk may have turned away
    /// in the meantime, or not.
    pub(crate) spread_us2: f64,
}

/// What the model's time lags behind the clock by.
#[derive(Clone, Copy, Debug)]
struct Lag {
    /// How late the last reply was.
    late: Nanos,
    /// When it went out, by the clock.
    since: Nanos,
    /// Whether a request has followed.
    is_used: bool,
    /// What was counted as lost on the assumption that nothing follows.
    lost_us: f64,
    spread_us2: f64,
}

/// A model, and the clock that it is kept in step with.
pub(crate) struct Pacing {
    model: Box<dyn Model>,
    has_head: bool,
    /// The latest time that the model was told.
    model_time: Nanos,
    lag: Option<Lag>,
    /// When each request was handed to the model, by its time, until the reply goes out.
    submitted: HashMap<u64, Nanos>,
    /// Completed, to be taken.
    done: Vec<Completion>,
    /// What the device took for each request, summed, in microseconds.
    service_us: f64,
    lateness: Lateness,
}

impl Pacing {
    /// `has_head`: whether the device moves a head, so that a late request may find it elsewhere.
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

    /// Takes what is due by `now`, in order. [`sent`](Self::sent) must be told of each.
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

        // Readers wait side by side: holding up one of thirty costs all of them a thirtieth. Three times that,
        // as it may be the one that the others wait for.
        let share = (3.0 / in_flight).min(1.0);
        let is_recent = |lag: &Lag| now.saturating_sub(lag.since) <= CREDIT;
        if let Some(last) = self.lag.filter(|lag| !lag.is_used && is_recent(lag)) {
            // What follows the last reply will be credited what this one was late. Twice the difference, as
            // those who follow neither are credited as well.
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

    /// A request that comes late finds the head or the angle gone with a probability of lateness over service
    /// time, and then waits for another service time.
    fn spread_us2(&self, late_us: f64, service_us: f64) -> f64 {
        let typical_us = self.service_us / self.lateness.replies.max(1) as f64;
        late_us.min(typical_us) * typical_us.max(service_us)
    }

    /// How long before `now` a request is taken to have come.
    fn credit(&mut self, now: Nanos) -> Nanos {
        let Some(lag) = self.lag.as_mut().filter(|lag| now.saturating_sub(lag.since) <= CREDIT)
        else {
            return 0;
        };
        let credit = lag.late.min(MOST_CREDIT);
        if !std::mem::replace(&mut lag.is_used, true) {
            // Something follows, and is not held up.
            let part = if lag.late == 0 { 1.0 } else { credit as f64 / lag.late as f64 };
            self.lateness.lost_us -= lag.lost_us * part;
            self.lateness.spread_us2 -= lag.spread_us2 * part;
        }
        credit
    }

    /// Steps from event to event, so that the model's time stays at the last one.
    fn advance(&mut self, now: Nanos) {
        while let Some(at) = self.model.next_event().filter(|at| *at <= now) {
            self.model_time = self.model_time.max(at);
            self.model.advance(self.model_time, &mut self.done);
        }
    }

    /// Requests handed over and not answered.
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

    /// 5 ms a request, whatever else is under way.
    fn network() -> Pacing {
        Pacing::new(device::load("net").expect("it is in the catalogue").build(1 << 30), false)
    }

    fn request(id: u64) -> Request {
        Request { id, offset: id << 20, bytes: 512 }
    }

    /// Passes on a request at `now` and sends the reply so late; gives when it was due.
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
