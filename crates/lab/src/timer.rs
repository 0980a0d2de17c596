//! The timing half of the server: requests go into the model, replies come out on time.
//!
//! ```text
//!   FUSE thread --submit--> model  <--advance-- timing thread --small reply--> kernel
//!                                                    |
//!                                                    +--large reply--> copying threads --> kernel
//! ```
//!
//! Copying a megabyte takes longer than a reply may be late, so large replies are copied elsewhere.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use device::{Completion, Model, Request};

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

struct Inner {
    model: Box<dyn Model>,
    waiting: HashMap<u64, Waiting>,
    done: Vec<Completion>,
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
    pub(crate) fn start(model: Box<dyn Model>) -> Arc<Self> {
        let inner = Inner {
            model,
            waiting: HashMap::new(),
            done: Vec::new(),
            next_id: 0,
            status: Status::default(),
        };
        let timer = Arc::new(Timer {
            inner: Mutex::new(inner),
            changed: Condvar::new(),
            is_fast: AtomicBool::new(false),
        });
        let copiers = (0..COPYING_THREADS).map(|_| start_copier()).collect();
        let timing = Arc::clone(&timer);
        thread::spawn(move || timing.keep_time(copiers));
        timer
    }

    pub(crate) fn set_fast(&self, is_fast: bool) {
        self.is_fast.store(is_fast, Ordering::Relaxed);
    }

    pub(crate) fn status(&self) -> Status {
        let inner = self.lock();
        Status { seeks: inner.model.counters().seeks, ..inner.status }
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
        let Inner { model, done, .. } = &mut *inner;
        let now = now();
        model.advance(now, done);
        model.submit(now, Request { id, offset, bytes });
        let depth = model.in_flight() as u64;
        inner.status.depth_sum += depth;
        inner.status.depth_max = inner.status.depth_max.max(depth);
        drop(inner);
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep_time(&self, copiers: Vec<Sender<Reply>>) {
        take_precedence();
        let mut turn = 0;
        let mut inner = self.lock();
        loop {
            let now_ns = now();
            let ready = inner.take_ready(now_ns);
            if !ready.is_empty() {
                drop(inner);
                for waiting in ready {
                    if waiting.bytes <= LARGE_BYTES {
                        (waiting.reply)();
                    } else {
                        turn = (turn + 1) % copiers.len();
                        // The copiers live as long as this thread.
                        let _ = copiers[turn].send(waiting.reply);
                    }
                }
                inner = self.lock();
                continue;
            }
            inner = match inner.model.next_event() {
                None => self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner),
                Some(at) => {
                    let wait = Duration::from_nanos(at.saturating_sub(now_ns));
                    let woken = self.changed.wait_timeout(inner, wait);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

fn start_copier() -> Sender<Reply> {
    let (replies, inbox) = mpsc::channel::<Reply>();
    thread::spawn(move || {
        take_precedence();
        inbox.into_iter().for_each(|reply| reply());
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

    /// Takes out what is done by `now`, noting how late it is noticed.
    fn take_ready(&mut self, now: u64) -> Vec<Waiting> {
        self.model.advance(now, &mut self.done);
        let mut ready = Vec::new();
        for completion in self.done.drain(..) {
            let late_us = now.saturating_sub(completion.at) as f64 * 1e-3;
            self.status.timed += 1;
            self.status.late_sum_us += late_us;
            self.status.late_max_us = self.status.late_max_us.max(late_us);
            ready.extend(self.waiting.remove(&completion.id));
        }
        ready
    }
}
