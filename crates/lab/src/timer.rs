//! The timing half of the server: requests go into the model, replies come out on time.
//!
//! ```text
//!   FUSE thread --submit--> model  <--advance-- timing thread --small reply--> kernel
//!                                                    |
//!                                                    +--large reply--> copying threads --> kernel
//! ```
//!
//! A request that a fault delays waits on after the model has served it. One that hangs waits until the delays are
//! switched off.
//!
//! Copying a megabyte would make the next reply late, so other threads copy large replies. [`pacing`](crate::pacing)
//! keeps the model in step with replies that are late all the same.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use device::{Completion, Nanos, Request};
use linux::sys::monotonic_ns as now;

use crate::fault::{Answered, Fate, Faults, Kind};
use crate::injected::Injected;
use crate::pacing::Pacing;
use crate::real_time::take_precedence;
use crate::status::Status;

/// Other threads copy replies above this size: 32 KiB take about 5 us.
const LARGE_BYTES: u64 = 32 << 10;

/// Copying threads: one for each of the few cores that the timing thread leaves free.
const COPYING_THREADS: usize = 2;

/// Answers a request when its time has come.
pub(crate) type Reply = Box<dyn FnOnce() + Send>;

/// A request that is not answered yet.
struct Waiting {
    bytes: u64,
    answered: Answered,
    reply: Reply,
}

/// A large reply on its way to a copying thread.
struct Copy {
    /// `None` if a fault has delayed it: it does not measure how late replies are.
    completion: Option<Completion>,
    reply: Reply,
}

struct Inner {
    pacing: Pacing,
    /// Requests that the model has, by their number.
    waiting: HashMap<u64, Waiting>,
    /// Requests that the model has served and a fault delays: until when, by their number.
    held: BTreeMap<(Nanos, u64), Waiting>,
    next_id: u64,
    faults: Faults,
    /// When the device got these faults.
    faulty_since: Nanos,
    /// Without the figures of model and pacing, which [`Timer::status`] adds.
    status: Status,
}

/// The model in real time.
pub(crate) struct Timer {
    inner: Mutex<Inner>,
    changed: Condvar,
    /// When the delays were switched on; [`FAST`] if they are off.
    timed_since: AtomicU64,
}

/// The value of `timed_since` while requests are answered at once, without model and faults.
const FAST: Nanos = Nanos::MAX;

impl Timer {
    /// Starts the timing threads, which live as long as the process.
    pub(crate) fn start(pacing: Pacing, injected: Injected, faults: Faults) -> Arc<Self> {
        let (waiting, held) = (HashMap::new(), BTreeMap::new());
        let (next_id, faulty_since, status) = (0, now(), Status::default());
        let inner = Inner { pacing, waiting, held, next_id, faults, faulty_since, status };
        let timer = Arc::new(Timer {
            inner: Mutex::new(inner),
            changed: Condvar::new(),
            timed_since: AtomicU64::new(now()),
        });
        let copiers = (0..COPYING_THREADS).map(|_| start_copier(&timer)).collect();
        let timing = Arc::clone(&timer);
        thread::spawn(move || timing.keep_time(copiers, injected));
        timer
    }

    /// Switches the delays off or on. Switching them off answers everything that waits.
    pub(crate) fn set_fast(&self, is_fast: bool) {
        self.timed_since.store(if is_fast { FAST } else { now() }, Ordering::Relaxed);
        if is_fast {
            let waiting = self.lock().take_all();
            waiting.into_iter().for_each(|waiting| (waiting.reply)());
        }
    }

    /// Has these faults from now on, in place of all others.
    pub(crate) fn set_faults(&self, faults: Faults) {
        let mut inner = self.lock();
        (inner.faults, inner.faulty_since) = (faults, now());
    }

    /// What faults do to a request that comes now.
    pub(crate) fn fate(&self, kind: Kind, offset: u64, bytes: u64) -> Fate {
        match self.timed_since.load(Ordering::Relaxed) {
            FAST => Fate::good(bytes),
            timed_since => {
                let mut inner = self.lock();
                let age_ns = now().saturating_sub(timed_since.max(inner.faulty_since));
                let fate = inner.faults.fate(Duration::from_nanos(age_ns), kind, offset, bytes);
                inner.status.faults += u64::from(fate != Fate::good(bytes));
                fate
            }
        }
    }

    pub(crate) fn status(&self) -> Status {
        let inner = self.lock();
        let late = inner.pacing.lateness();
        Status {
            seeks: inner.pacing.counters().seeks,
            timed: late.replies,
            late_sum_us: late.sum_us,
            late_max_us: late.max_us,
            lost_us: late.lost_us,
            spread_us2: late.spread_us2,
            ..inner.status
        }
    }

    /// Answers with `reply` when the device would have served the request.
    pub(crate) fn submit(
        &self,
        kind: Kind,
        (offset, bytes): (u64, u64),
        answered: Answered,
        reply: Reply,
    ) {
        let mut inner = self.lock();
        inner.count(kind, bytes);
        // Under the lock, so that no request begins to wait after the delays were switched off.
        if self.timed_since.load(Ordering::Relaxed) == FAST {
            drop(inner);
            reply();
            return;
        }
        let id = inner.next_id;
        inner.next_id += 1;
        inner.waiting.insert(id, Waiting { bytes, answered, reply });
        inner.pacing.submit(now(), Request { id, offset, bytes });
        let depth = inner.pacing.in_flight() as u64;
        inner.status.depth_sum += depth;
        inner.status.depth_max = inner.status.depth_max.max(depth);
        drop(inner);
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The timing thread: sleeps until the next reply is due, and sends what is.
    fn keep_time(&self, copiers: Vec<Sender<Copy>>, mut injected: Injected) {
        take_precedence();
        let mut turn = 0;
        // The event for which this thread sleeps, and until when.
        let mut sleep: Option<(Nanos, Nanos)> = None;
        let mut inner = self.lock();
        loop {
            let Some(due) = inner.next_due() else {
                inner = self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let asleep = sleep.filter(|(asleep_for, _)| *asleep_for <= due);
            let (_, until) =
                *sleep.insert(asleep.unwrap_or_else(|| (due, due.max(now()) + injected.next())));
            let wait = until.saturating_sub(now());
            if wait > 0 {
                let woken = self.changed.wait_timeout(inner, Duration::from_nanos(wait));
                inner = woken.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            sleep = None;
            let ready = inner.take_due(now());
            drop(inner);
            let held = ready.held.into_iter().map(|waiting| (None, waiting));
            let served = ready.served.into_iter().map(|(done, waiting)| (Some(done), waiting));
            for (completion, waiting) in served.chain(held) {
                if waiting.bytes <= LARGE_BYTES {
                    (waiting.reply)();
                } else {
                    turn = (turn + 1) % copiers.len();
                    // The copying threads live as long as this one.
                    let _ = copiers[turn].send(Copy { completion, reply: waiting.reply });
                }
            }
            inner = self.lock();
        }
    }
}

/// Starts a thread that sends large replies.
fn start_copier(timer: &Arc<Timer>) -> Sender<Copy> {
    let (replies, inbox) = mpsc::channel::<Copy>();
    let timer = Arc::clone(timer);
    thread::spawn(move || {
        take_precedence();
        for Copy { completion, reply } in inbox {
            reply();
            if let Some(completion) = completion {
                timer.lock().pacing.sent(completion, now());
            }
        }
    });
    replies
}

/// Requests to answer now.
#[derive(Default)]
struct Ready {
    served: Vec<(Completion, Waiting)>,
    held: Vec<Waiting>,
}

impl Inner {
    /// When the next reply is due.
    fn next_due(&self) -> Option<Nanos> {
        let held = self.held.first_key_value().map(|((until, _), _)| *until);
        self.pacing.next_due().into_iter().chain(held.filter(|until| *until < Nanos::MAX)).min()
    }

    /// Removes and returns all waiting requests, served or not.
    fn take_all(&mut self) -> Vec<Waiting> {
        let waiting = std::mem::take(&mut self.waiting).into_values();
        waiting.chain(std::mem::take(&mut self.held).into_values()).collect()
    }

    fn count(&mut self, kind: Kind, bytes: u64) {
        match kind {
            Kind::Read => {
                self.status.reads += 1;
                self.status.bytes_read += bytes;
            }
            Kind::Write => {
                self.status.writes += 1;
                self.status.bytes_written += bytes;
            }
        }
    }

    /// Removes and returns what is due by `now`. Small replies count as sent: they go out at once.
    fn take_due(&mut self, now: Nanos) -> Ready {
        let mut ready = Ready::default();
        for completion in self.pacing.take_due(now) {
            let Some(waiting) = self.waiting.remove(&completion.id) else {
                // Switching the delays off has answered it.
                self.pacing.forget(completion);
                continue;
            };
            let until = match waiting.answered {
                Answered::InTime => None,
                Answered::Later(by) => Some(completion.at.saturating_add(by.as_nanos() as Nanos)),
                Answered::Never => Some(Nanos::MAX),
            };
            if until.is_some() || waiting.bytes <= LARGE_BYTES {
                self.pacing.sent(completion, now);
            }
            match until {
                Some(until) => drop(self.held.insert((until, completion.id), waiting)),
                None => ready.served.push((completion, waiting)),
            }
        }
        while let Some(first) = self.held.first_entry().filter(|first| first.key().0 <= now) {
            ready.held.push(first.remove());
        }
        ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A timer for an SSD with these faults.
    fn timer(faults: &[&str]) -> Arc<Timer> {
        let ssd = device::load("ssd").expect("it is in the catalogue").build(1 << 30);
        let faults = faults.iter().map(|fault| fault.parse().expect("a fault")).collect();
        Timer::start(Pacing::new(ssd, false), Injected::new(0.0, 1), Faults::new(faults))
    }

    /// Reads 4 KiB, and sends the number of bytes served to `replies`.
    fn read(timer: &Timer, replies: &Sender<Option<u64>>) {
        let fate = timer.fate(Kind::Read, 0, 4096);
        let replies = replies.clone();
        let reply = move || replies.send(fate.served).expect("somebody waits");
        timer.submit(Kind::Read, (0, 4096), fate.answered, Box::new(reply));
    }

    #[test]
    fn what_hangs_is_answered_when_the_delays_go_off() {
        let (timer, (replies, inbox)) = (timer(&["hang"]), mpsc::channel());
        read(&timer, &replies);
        while timer.lock().held.is_empty() {
            thread::yield_now();
        }
        assert!(inbox.try_recv().is_err(), "the model has served it, and nobody has answered");
        timer.set_fast(true);
        assert_eq!(inbox.recv(), Ok(Some(4096)));
        read(&timer, &replies);
        assert_eq!(inbox.recv(), Ok(Some(4096)), "at once");
        timer.set_fast(false);
        read(&timer, &replies);
        timer.set_fast(true);
        assert_eq!(inbox.recv(), Ok(Some(4096)), "also what the model has not served yet");
        assert_eq!(timer.status().faults, 2);
    }

    #[test]
    fn new_faults_take_the_place_of_the_old_ones() {
        let timer = timer(&["vanish"]);
        let served = || timer.fate(Kind::Read, 0, 4096).served;
        assert_eq!(served(), None);
        timer.set_faults(Faults::new(vec!["vanish@3600".parse().expect("a fault")]));
        assert_eq!(served(), Some(4096), "it comes an hour later");
        timer.set_faults(Faults::new(vec!["eio:7".parse().expect("a fault")]));
        assert_eq!(served(), None);
        timer.set_fast(true);
        assert_eq!(served(), Some(4096), "without delays there are no faults");
    }

    #[test]
    fn a_spike_holds_up_its_own_read_only() {
        let (timer, (replies, inbox)) = (timer(&["spike:3600000"]), mpsc::channel());
        for _ in 0..64 {
            read(&timer, &replies);
        }
        (0..63).for_each(|_| assert_eq!(inbox.recv(), Ok(Some(4096))));
        while timer.lock().held.is_empty() {
            thread::yield_now();
        }
        assert!(inbox.try_recv().is_err(), "the last one takes an hour");
    }

    #[test]
    fn a_device_that_has_vanished_answers_each_request_with_an_error() {
        let (timer, (replies, inbox)) = (timer(&["vanish"]), mpsc::channel());
        read(&timer, &replies);
        assert_eq!(inbox.recv(), Ok(None));
        assert_eq!(timer.fate(Kind::Write, 0, 512).served, None);
    }
}
