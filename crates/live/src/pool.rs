//! A pool of threads that start when there is work, and end when there was none for a while.
//!
//! ```text
//!   submit --> thread free? --no--> may start one? --no--> may the job queue? --no--> refused
//!                  |yes                  |yes                     |yes                   |
//!                  '-------------------- '------ Mutex<State> ----'                      |
//!                                             threads take jobs, run them --> Answers <--'
//! ```
//!
//! Each job that has an answer is answered once, even if its thread panics or cannot be started.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use controller::Completed;

use crate::execute::Answers;

/// A thread that has had no job for this long ends at its next upkeep.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// What a thread of the pool does.
pub(crate) trait Worker: 'static {
    type Job: Send + 'static;

    /// The answer if nobody does the job; `None` if nobody waits for an answer.
    fn refused(job: &Self::Job) -> Option<Completed>;

    /// Does a job and returns its answer.
    fn run(&mut self, job: Self::Job) -> Option<Completed>;

    /// How often to call [`upkeep`](Self::upkeep), and to check whether the thread may end.
    fn upkeep_interval(&self) -> Duration {
        self.idle_timeout()
    }

    /// After how long without a job the thread ends.
    fn idle_timeout(&self) -> Duration {
        IDLE_TIMEOUT
    }

    /// Does what is due without a job, and returns the answers.
    fn upkeep(&mut self) -> Vec<Completed> {
        Vec::new()
    }

    /// Whether the thread may end when there is no job.
    fn may_end(&self) -> bool {
        true
    }

    /// Called before the thread ends.
    fn finish(&mut self) {}
}

#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) threads: usize,
    /// Whether jobs queue while all threads are busy. Otherwise they are refused.
    pub(crate) queues: bool,
}

/// One thread with a queue.
pub(crate) const ONE: Size = Size { threads: 1, queues: true };

/// Threads for jobs of one kind. When it is dropped, they finish the queued jobs and end.
pub(crate) struct Pool<W: Worker> {
    shared: Arc<Shared<W::Job>>,
    make: Arc<dyn Fn() -> W + Send + Sync>,
    name: &'static str,
    size: Size,
}

struct Shared<J> {
    state: Mutex<State<J>>,
    /// Signals threads that a job has come, or that the pool is closed.
    work: Condvar,
    /// Signals that a job is answered.
    answered: Condvar,
    answers: Answers,
}

struct State<J> {
    queue: VecDeque<J>,
    threads: usize,
    busy: usize,
    /// Jobs that are queued or run, or whose answer is not sent yet.
    unanswered: usize,
    is_closed: bool,
}

/// What a thread does next.
enum Next<J> {
    Run(J),
    Upkeep,
    End,
}

impl<W: Worker> Pool<W> {
    /// A pool without threads yet; `make` makes the worker of each.
    pub(crate) fn new(
        name: &'static str,
        size: Size,
        answers: Answers,
        make: impl Fn() -> W + Send + Sync + 'static,
    ) -> Self {
        let queue = VecDeque::new();
        let state = State { queue, threads: 0, busy: 0, unanswered: 0, is_closed: false };
        let (state, work, answered) = (Mutex::new(state), Condvar::new(), Condvar::new());
        let shared = Arc::new(Shared { state, work, answered, answers });
        Pool { shared, make: Arc::new(make), name, size }
    }

    /// Gives a job to a thread, or refuses it.
    pub(crate) fn submit(&self, job: W::Job) {
        let mut state = self.shared.lock();
        let mut has_thread = state.threads - state.busy > state.queue.len();
        if !has_thread && state.threads < self.size.threads && self.start() {
            state.threads += 1;
            has_thread = true;
        }
        if has_thread || (self.size.queues && state.threads > 0) {
            state.queue.push_back(job);
            state.unanswered += 1;
            drop(state);
            self.shared.work.notify_one();
        } else {
            drop(state);
            self.shared.answers.send_all(W::refused(&job));
        }
    }

    /// Whether there is a thread.
    pub(crate) fn is_running(&self) -> bool {
        self.shared.lock().threads > 0
    }

    /// Waits up to `timeout` until all jobs are answered.
    pub(crate) fn wait(&self, timeout: Duration) {
        let is_busy = |state: &mut State<_>| state.unanswered > 0;
        drop(self.shared.answered.wait_timeout_while(self.shared.lock(), timeout, is_busy));
    }

    fn start(&self) -> bool {
        let (shared, make) = (Arc::clone(&self.shared), Arc::clone(&self.make));
        let serve = move || shared.serve(make());
        thread::Builder::new().name(self.name.into()).spawn(serve).is_ok()
    }
}

impl<W: Worker> Drop for Pool<W> {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.work.notify_all();
    }
}

impl<J: Send + 'static> Shared<J> {
    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What each thread does.
    fn serve<W: Worker<Job = J>>(&self, mut worker: W) {
        let (mut last_upkeep, mut last_job) = (Instant::now(), Instant::now());
        loop {
            match self.next(worker.upkeep_interval().saturating_sub(last_upkeep.elapsed())) {
                Next::Run(job) => {
                    self.run(&mut worker, job);
                    last_job = Instant::now();
                }
                Next::Upkeep => {
                    last_upkeep = Instant::now();
                    // After a panic there is nothing to answer, as nobody waits.
                    let answers = catch_unwind(AssertUnwindSafe(|| worker.upkeep()));
                    self.answers.send_all(answers.unwrap_or_default());
                    let is_idle = last_job.elapsed() >= worker.idle_timeout();
                    if is_idle && worker.may_end() && self.leave() {
                        break;
                    }
                }
                Next::End => break,
            }
        }
        worker.finish();
    }

    /// Waits up to `timeout` for a job.
    fn next(&self, timeout: Duration) -> Next<J> {
        if timeout.is_zero() {
            return Next::Upkeep;
        }
        let has_none = |state: &mut State<J>| state.queue.is_empty() && !state.is_closed;
        let waited = self.work.wait_timeout_while(self.lock(), timeout, has_none);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match state.queue.pop_front() {
            Some(job) => {
                state.busy += 1;
                Next::Run(job)
            }
            None if state.is_closed => Next::End,
            None => Next::Upkeep,
        }
    }

    fn run<W: Worker<Job = J>>(&self, worker: &mut W, job: J) {
        let refused = W::refused(&job);
        let answer = catch_unwind(AssertUnwindSafe(|| worker.run(job))).unwrap_or(refused);
        // First free this thread: the answer may bring the next job.
        self.lock().busy -= 1;
        self.answers.send_all(answer);
        self.lock().unanswered -= 1;
        self.answered.notify_all();
    }

    /// Takes the calling thread out of the pool, unless there is a job for it.
    fn leave(&self) -> bool {
        let mut state = self.lock();
        let may_leave = state.queue.is_empty();
        state.threads -= usize::from(may_leave);
        may_leave
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Receiver, Sender};

    use controller::ids::Ticket;
    use controller::{Failure, Input};

    use super::*;

    /// Waits for `go`, then answers, or panics if `panics` is set.
    struct Task {
        ticket: u64,
        go: Receiver<()>,
        panics: bool,
    }

    fn read(ticket: u64, failed: Option<Failure>) -> Completed {
        Completed::Read { ticket: Ticket(ticket), failed }
    }

    struct TestWorker;

    impl Worker for TestWorker {
        type Job = Task;

        fn refused(task: &Task) -> Option<Completed> {
            Some(read(task.ticket, Some(Failure::Refused)))
        }

        fn run(&mut self, task: Task) -> Option<Completed> {
            let _ = task.go.recv();
            assert!(!task.panics, "as it was told to");
            Some(read(task.ticket, None))
        }

        fn idle_timeout(&self) -> Duration {
            Duration::from_millis(5)
        }
    }

    /// Says when its upkeep is done.
    struct Tidy(Sender<()>);

    impl Worker for Tidy {
        type Job = ();

        fn refused((): &()) -> Option<Completed> {
            None
        }

        fn run(&mut self, (): ()) -> Option<Completed> {
            None
        }

        fn upkeep_interval(&self) -> Duration {
            Duration::from_millis(1)
        }

        fn upkeep(&mut self) -> Vec<Completed> {
            let _ = self.0.send(());
            Vec::new()
        }
    }

    struct Bench {
        pool: Pool<TestWorker>,
        answers: Answers,
        seen: Vec<Completed>,
    }

    impl Bench {
        fn new(size: Size) -> Self {
            let answers = Answers::new().expect("a descriptor");
            let pool = Pool::new("bowwave-test", size, answers.clone(), || TestWorker);
            Bench { pool, answers, seen: Vec::new() }
        }

        /// Submits a task that continues when the sender is dropped.
        fn submit(&self, ticket: u64, panics: bool) -> Sender<()> {
            let (begin, go) = mpsc::channel();
            self.pool.submit(Task { ticket, go, panics });
            begin
        }

        /// Waits for `count` answers in all.
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
        let mut bench = Bench::new(Size { threads: 3, queues: false });
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
    fn upkeep_between_jobs_ends_no_thread() {
        let (done, tidied) = mpsc::channel();
        let answers = Answers::new().expect("a descriptor");
        let pool = Pool::new("bowwave-test", ONE, answers, move || Tidy(done.clone()));
        pool.submit(());
        for _ in 0..3 {
            tidied.recv_timeout(Duration::from_secs(60)).expect("it tidies");
        }
        assert!(pool.is_running());
    }

    #[test]
    fn a_job_without_a_free_thread_is_refused_or_queued() {
        let mut bench = Bench::new(Size { threads: 1, queues: false });
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
    fn a_job_that_panics_is_answered_and_costs_no_thread() {
        let mut bench = Bench::new(Size { threads: 1, queues: false });
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
    fn a_dropped_pool_finishes_its_queue() {
        let Bench { pool, answers, .. } = Bench::new(ONE);
        let mut bench = Bench { pool, answers, seen: Vec::new() };
        let task = bench.submit(1, false);
        drop(bench.submit(2, false));
        let other = Pool::new("bowwave-test", ONE, bench.answers.clone(), || TestWorker);
        drop(std::mem::replace(&mut bench.pool, other));
        drop(task);
        assert_eq!(bench.answers(2), [read(1, None), read(2, None)]);
    }

    #[test]
    fn waiting_for_all_jobs_ends_at_the_timeout() {
        let mut bench = Bench::new(ONE);
        let task = bench.submit(1, false);
        bench.pool.wait(Duration::from_millis(1));
        assert!(bench.seen.is_empty());
        drop(task);
        bench.pool.wait(Duration::from_secs(60));
        assert_eq!(bench.answers(1), [read(1, None)]);
    }

    #[test]
    fn who_has_waited_for_all_jobs_finds_their_answers() {
        let bench = Bench::new(ONE);
        for ticket in 0..2000 {
            drop(bench.submit(ticket, false));
            bench.pool.wait(Duration::from_secs(60));
            assert_eq!(bench.answers.take().len(), 1, "job {ticket}");
        }
    }
}
