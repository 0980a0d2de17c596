//! The timing half of the server: requests go into the model, replies come out on time.
//!
//! ```text
//!   FUSE thread --submit--> model  <--advance-- timing thread --small reply--> kernel
//!                                                    |
//!                                                    +--large reply--> copying threads --> kernel
//! ```
//!
//! Copying a megabyte would make the next reply late, so large replies are copied elsewhere. How the model is
//! kept in step with replies that are late all the same is in [`pacing`](crate::pacing).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use device::{Completion, Nanos, Request};

use crate::injected::Injected;
use crate::pacing::Pacing;
use crate::real_time::{now, take_precedence};
use crate::status::Status;

/// Replies above this size are copied by other threads: 32 KiB take some 5 us.
const LARGE_BYTES: u64 = 32 << 10;

/// One for each core that is not answering.
const COPYING_THREADS: usize = 2;

/// What answers a request when its time has come.
pub(crate) type Reply = Box<dyn FnOnce() + Send>;

struct Waiting {
    bytes: u64,
    reply: Reply,
}

/// A large reply on its way to a copying thread.
struct Copy {
    completion: Completion,
    reply: Reply,
}

struct Inner {
    pacing: Pacing,
    waiting: HashMap<u64, Waiting>,
    next_id: u64,
    status: Status,
}

/// The model under real time.
pub(crate) struct Timer {
    inner: Mutex<Inner>,
    changed: Condvar,
    /// Answer at once, without the model.
    is_fast: AtomicBool,
}

/// What a request is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
}

impl Timer {
    /// Starts the timing threads, which live as long as the process.
    pub(crate) fn start(pacing: Pacing, injected: Injected) -> Arc<Self> {
        let inner =
            Inner { pacing, waiting: HashMap::new(), next_id: 0, status: Status::default() };
        let timer = Arc::new(Timer {
            inner: Mutex::new(inner),
            changed: Condvar::new(),
            is_fast: AtomicBool::new(false),
        });
        let copiers = (0..COPYING_THREADS).map(|_| start_copier(&timer)).collect();
        let timing = Arc::clone(&timer);
        thread::spawn(move || timing.keep_time(copiers, injected));
        timer
    }

    pub(crate) fn set_fast(&self, is_fast: bool) {
        self.is_fast.store(is_fast, Ordering::Relaxed);
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
    pub(crate) fn submit(&self, kind: Kind, offset: u64, bytes: u64, reply: Reply) {
        let mut inner = self.lock();
        inner.count(kind, bytes);
        if self.is_fast.load(Ordering::Relaxed) {
            drop(inner);
            reply();
            return;
        }
        let id = inner.next_id;
        inner.next_id += 1;
        inner.waiting.insert(id, Waiting { bytes, reply });
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

    fn keep_time(&self, copiers: Vec<Sender<Copy>>, mut injected: Injected) {
        take_precedence();
        let mut turn = 0;
        // What this thread sleeps for, and until when.
        let mut sleep: Option<(Nanos, Nanos)> = None;
        let mut inner = self.lock();
        loop {
            let Some(due) = inner.pacing.next_due() else {
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
            for (completion, waiting) in ready {
                if waiting.bytes <= LARGE_BYTES {
                    (waiting.reply)();
                } else {
                    turn = (turn + 1) % copiers.len();
                    // The copiers live as long as this thread.
                    let _ = copiers[turn].send(Copy { completion, reply: waiting.reply });
                }
            }
            inner = self.lock();
        }
    }
}

fn start_copier(timer: &Arc<Timer>) -> Sender<Copy> {
    let (replies, inbox) = mpsc::channel::<Copy>();
    let timer = Arc::clone(timer);
    thread::spawn(move || {
        take_precedence();
        for Copy { completion, reply } in inbox {
            reply();
            timer.lock().pacing.sent(completion, now());
        }
    });
    replies
}

impl Inner {
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

    /// Takes out what is due by `now`. Small replies count as sent: they go out at once.
    fn take_due(&mut self, now: Nanos) -> Vec<(Completion, Waiting)> {
        let mut ready = Vec::new();
        for completion in self.pacing.take_due(now) {
            let Some(waiting) = self.waiting.remove(&completion.id) else { continue };
            if waiting.bytes <= LARGE_BYTES {
                self.pacing.sent(completion, now);
            }
            ready.push((completion, waiting));
        }
        ready
    }
}
