//! Threads that start when there is work, and end when there was none for a while.
//!
//! ```text
//!   submit --> a thread is free? --> a new one may start? --> may it wait? --> refused
//!                   |                     |                     |                |
//!                   '------------------ run ------------------- '--> answer <----'
//! ```
//!
//! A job is answered once, also if its thread panics or none can be started.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use controller::Completed;

use super::Answers;

/// A thread looks this often whether it is still needed.
const IDLE: Duration = Duration::from_secs(10);

/// Something to do.
pub(super) trait Job: Send + 'static {
    /// The answer if it is not done; `None` where nobody waits for one.
    fn refused(&self) -> Option<Completed>;
}

/// What a thread of the pool does.
pub(super) trait Worker: 'static {
    /// Its jobs.
    type Job: Job;

    /// Does one; gives its answer.
    fn run(&mut self, job: Self::Job) -> Option<Completed>;

    /// How often [`look_after`](Self::look_after) is called.
    fn pause(&self) -> Duration {
        IDLE
    }

    /// What has to be done without being asked; gives answers.
    fn look_after(&mut self) -> Vec<Completed> {
        Vec::new()
    }

    /// Whether its thread may end.
    fn is_idle(&self) -> bool {
        true
    }

    /// The last thing that its thread does.
    fn end(&mut self) {}
}

/// How many threads there may be, and what becomes of a job when all are busy.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) threads: usize,
    /// It waits; else it is refused.
    pub(super) waits: bool,
}

/// One thread, behind which jobs wait.
pub(super) const ONE: Size = Size { threads: 1, waits: true };

/// The threads of one kind of one device. Those that are left when it is dropped do what waits, and end.
pub(super) struct Pool<W: Worker> {
    shared: Arc<Shared<W::Job>>,
    make: Arc<dyn Fn() -> W + Send + Sync>,
    name: &'static str,
    size: Size,
}

struct Shared<J> {
    state: Mutex<State<J>>,
    /// There is a job, or no more will come.
    news: Condvar,
    /// A job is done.
    done: Condvar,
    answers: Answers,
}

struct State<J> {
    waiting: VecDeque<J>,
    threads: usize,
    busy: usize,
    is_over: bool,
}

/// What a thread does next.
enum Next<J> {
    Run(J),
    LookAfter,
    End,
}

impl<W: Worker> Pool<W> {
    /// Without a thread yet; each has a worker of its own.
    pub(super) fn new(
        name: &'static str,
        size: Size,
        answers: Answers,
        make: impl Fn() -> W + Send + Sync + 'static,
    ) -> Self {
        let state = State { waiting: VecDeque::new(), threads: 0, busy: 0, is_over: false };
        let (state, news, done) = (Mutex::new(state), Condvar::new(), Condvar::new());
        let shared = Arc::new(Shared { state, news, done, answers });
        Pool { shared, make: Arc::new(make), name, size }
    }

    /// Gives a job to a thread. If nobody can do it, it is answered at once.
    pub(super) fn submit(&self, job: W::Job) {
        let mut state = self.shared.lock();
        let mut is_taken = state.threads - state.busy > state.waiting.len();
        if !is_taken && state.threads < self.size.threads && self.start() {
            state.threads += 1;
            is_taken = true;
        }
        if is_taken || (self.size.waits && state.threads > 0) {
            state.waiting.push_back(job);
            drop(state);
            self.shared.news.notify_one();
        } else {
            drop(state);
            self.shared.answers.send_all(job.refused());
        }
    }

    /// Whether there is a thread.
    pub(super) fn is_running(&self) -> bool {
        self.shared.lock().threads > 0
    }

    /// Waits until all jobs are done, for so long at most.
    pub(super) fn wait(&self, most: Duration) {
        let is_busy = |state: &mut State<_>| state.busy > 0 || !state.waiting.is_empty();
        drop(self.shared.done.wait_timeout_while(self.shared.lock(), most, is_busy));
    }

    fn start(&self) -> bool {
        let (shared, make) = (Arc::clone(&self.shared), Arc::clone(&self.make));
        let serve = move || shared.serve(make());
        thread::Builder::new().name(self.name.into()).spawn(serve).is_ok()
    }
}

impl<W: Worker> Drop for Pool<W> {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.news.notify_all();
    }
}

impl<J: Job> Shared<J> {
    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The life of a thread.
    fn serve<W: Worker<Job = J>>(&self, mut worker: W) {
        let mut looked_at = Instant::now();
        loop {
            match self.next(worker.pause().saturating_sub(looked_at.elapsed())) {
                Next::Run(job) => self.run(&mut worker, job),
                Next::LookAfter => {
                    looked_at = Instant::now();
                    // What it does unasked has no answer that somebody waits for.
                    let answers = catch_unwind(AssertUnwindSafe(|| worker.look_after()));
                    self.answers.send_all(answers.unwrap_or_default());
                    if worker.is_idle() && self.may_end() {
                        break;
                    }
                }
                Next::End => break,
            }
        }
        worker.end();
    }

    /// Waits for a job, for so long at most.
    fn next(&self, wait: Duration) -> Next<J> {
        if wait.is_zero() {
            return Next::LookAfter;
        }
        let has_none = |state: &mut State<J>| state.waiting.is_empty() && !state.is_over;
        let waited = self.news.wait_timeout_while(self.lock(), wait, has_none);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match state.waiting.pop_front() {
            Some(job) => {
                state.busy += 1;
                Next::Run(job)
            }
            None if state.is_over => Next::End,
            None => Next::LookAfter,
        }
    }

    fn run<W: Worker<Job = J>>(&self, worker: &mut W, job: J) {
        let refused = job.refused();
        let answer = catch_unwind(AssertUnwindSafe(|| worker.run(job))).unwrap_or(refused);
        // Before the answer, which may bring the next job.
        self.lock().busy -= 1;
        self.done.notify_all();
        self.answers.send_all(answer);
    }

    /// Takes a thread off, unless there is a job for it.
    fn may_end(&self) -> bool {
        let mut state = self.lock();
        let may_end = state.waiting.is_empty();
        state.threads -= usize::from(may_end);
        may_end
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Receiver, Sender};

    use controller::ids::Ticket;
    use controller::{Failure, Input};

    use super::*;

    /// Waits for `go`, then does what `panics` says.
    struct Task {
        ticket: u64,
        go: Receiver<()>,
        panics: bool,
    }

    fn read(ticket: u64, failed: Option<Failure>) -> Completed {
        Completed::Read { ticket: Ticket(ticket), failed }
    }

    impl Job for Task {
        fn refused(&self) -> Option<Completed> {
            Some(read(self.ticket, Some(Failure::Refused)))
        }
    }

    struct Hand;

    impl Worker for Hand {
        type Job = Task;

        fn run(&mut self, task: Task) -> Option<Completed> {
            let _ = task.go.recv();
            assert!(!task.panics, "as it was told to");
            Some(read(task.ticket, None))
        }

        fn pause(&self) -> Duration {
            Duration::from_millis(5)
        }
    }

    struct Bench {
        pool: Pool<Hand>,
        answers: Answers,
        seen: Vec<Completed>,
    }

    impl Bench {
        fn new(size: Size) -> Self {
            let answers = Answers::new().expect("a descriptor");
            let pool = Pool::new("bowwave-test", size, answers.clone(), || Hand);
            Bench { pool, answers, seen: Vec::new() }
        }

        /// Submits a task that goes on once the sender is dropped.
        fn submit(&self, ticket: u64, panics: bool) -> Sender<()> {
            let (begin, go) = mpsc::channel();
            self.pool.submit(Task { ticket, go, panics });
            begin
        }

        /// Waits for so many answers in all.
        fn answers(&mut self, count: usize) -> &[Completed] {
            let until = Instant::now() + Duration::from_secs(60);
            while self.seen.len() < count && Instant::now() < until {
                for (_, input) in self.answers.take() {
                    let Input::Completed(completed) = input else { panic!("{input:?}") };
                    self.seen.push(completed);
                }
                thread::yield_now();
            }
            &self.seen
        }

        fn await_threads(&self, count: usize) {
            let until = Instant::now() + Duration::from_secs(60);
            while self.pool.shared.lock().threads != count && Instant::now() < until {
                thread::yield_now();
            }
            assert_eq!(self.pool.shared.lock().threads, count);
        }
    }

    #[test]
    fn threads_start_when_they_are_needed_and_end_when_they_are_not() {
        let mut bench = Bench::new(Size { threads: 3, waits: false });
        assert!(!bench.pool.is_running());
        let tasks = [bench.submit(1, false), bench.submit(2, false)];
        assert_eq!(bench.pool.shared.lock().threads, 2);
        drop(tasks);
        assert_eq!(bench.answers(2).len(), 2);
        bench.await_threads(0);
        drop(bench.submit(3, false));
        assert_eq!(bench.answers(3)[2], read(3, None), "and start again");
    }

    #[test]
    fn a_job_for_which_no_thread_is_free_is_refused_or_waits() {
        let mut bench = Bench::new(Size { threads: 1, waits: false });
        let task = bench.submit(1, false);
        drop(bench.submit(2, false));
        assert_eq!(bench.answers(1), [read(2, Some(Failure::Refused))]);
        drop(task);
        bench.answers(2);

        let mut bench = Bench::new(ONE);
        let task = bench.submit(1, false);
        drop(bench.submit(2, false));
        drop(task);
        assert_eq!(bench.answers(2), [read(1, None), read(2, None)]);
    }

    #[test]
    fn a_panic_is_answered_and_costs_no_thread() {
        let mut bench = Bench::new(Size { threads: 1, waits: false });
        for ticket in 0..3 {
            drop(bench.submit(2 * ticket, true));
            bench.answers(2 * ticket as usize + 1);
            drop(bench.submit(2 * ticket + 1, false));
            bench.answers(2 * ticket as usize + 2);
        }
        let refused = Some(Failure::Refused);
        let expected = (0..6).map(|n| read(n, if n % 2 == 0 { refused } else { None }));
        assert_eq!(bench.seen, expected.collect::<Vec<_>>());
    }

    #[test]
    fn what_waits_when_the_pool_is_dropped_is_done() {
        let Bench { pool, answers, .. } = Bench::new(ONE);
        let mut bench = Bench { pool, answers, seen: Vec::new() };
        let task = bench.submit(1, false);
        drop(bench.submit(2, false));
        let other = Pool::new("bowwave-test", ONE, bench.answers.clone(), || Hand);
        drop(std::mem::replace(&mut bench.pool, other));
        drop(task);
        assert_eq!(bench.answers(2), [read(1, None), read(2, None)]);
    }

    #[test]
    fn waiting_for_all_jobs_has_an_end() {
        let mut bench = Bench::new(ONE);
        let task = bench.submit(1, false);
        bench.pool.wait(Duration::from_millis(1));
        assert!(bench.seen.is_empty());
        drop(task);
        bench.pool.wait(Duration::from_secs(60));
        assert_eq!(bench.answers(1), [read(1, None)]);
    }
}
