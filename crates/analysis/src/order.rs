//! The order in which a stream reads, step by step.

use readahead::PAGE_BYTES;

/// Runs that are remembered of a stream: a program that reads in more places at once seems to jump.
const MOST_RUNS: usize = 32;

/// Pages that the kernel maps around a fault if they are cached (`fault_around_bytes`, 64 KiB). What is read of them
/// causes no further fault, so a tracer does not see it.
const MAPPED_AROUND: u64 = 16;

/// How an operation follows the earlier ones of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is the first one.
    First,
    /// It begins where the last one ended.
    Forward,
    /// It goes on forward where the stream was before it read elsewhere, or before the file was closed.
    Resumed,
    /// It ends where an earlier one began.
    Backward,
    /// It begins a run as far from the last run as that was from the one before.
    Strided,
    /// It begins a run elsewhere.
    Jump,
    /// It reads a part of what an earlier run has read.
    Again,
}

/// How many steps of each kind a stream has made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps([u64; 7]);

impl Steps {
    /// Counts a step.
    pub(crate) fn add(&mut self, step: Step) {
        self.0[step as usize] += 1;
    }

    /// The number of these steps.
    pub fn count(&self, step: Step) -> u64 {
        self.0[step as usize]
    }

    /// The number of runs: adjacent reads, forward or backward.
    pub fn runs(&self) -> u64 {
        [Step::First, Step::Strided, Step::Jump].map(|step| self.count(step)).iter().sum()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

/// Adjacent reads.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Bytes that they cover.
    start: u64,
    end: u64,
    /// Known from the second read on.
    direction: Option<Direction>,
}

impl Run {
    /// How a read would continue the run. `skipped` pages between the two are no gap.
    fn step(&self, start: u64, end: u64, skipped: u64) -> Option<Step> {
        let page = |byte: u64| byte / PAGE_BYTES;
        let last = page(self.end.saturating_sub(1));
        if self.start <= start && end <= self.end {
            return Some(Step::Again);
        }
        let may_go = |direction| self.direction.is_none_or(|own| own == direction);
        let is_next = start >= self.start && (last..=last + 1 + skipped).contains(&page(start));
        if is_next && end > self.end && may_go(Direction::Forward) {
            return Some(Step::Forward);
        }
        let before = page(end.saturating_sub(1)) + 1 + skipped;
        let is_before =
            before >= page(self.start) && page(end.saturating_sub(1)) <= page(self.start);
        (is_before && start < self.start && may_go(Direction::Backward)).then_some(Step::Backward)
    }
}

/// Follows one stream.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// The run that was continued last is the last one.
    runs: Vec<Run>,
    /// Where the last run began, and how far from the one before.
    last_start: u64,
    distance: Option<i64>,
    /// Pages that may be left out between two reads of a run.
    skipped: u64,
    is_reopened: bool,
}

impl Order {
    /// A stream before its first read.
    pub(crate) fn new(is_mapped: bool) -> Self {
        Order {
            runs: Vec::new(),
            last_start: 0,
            distance: None,
            skipped: if is_mapped { MAPPED_AROUND - 1 } else { 0 },
            is_reopened: false,
        }
    }

    /// The file is closed: the kernel forgets where the stream is.
    pub(crate) fn close(&mut self) {
        self.is_reopened = true;
    }

    /// The next operation reads the bytes from `start` to `end`.
    pub(crate) fn step(&mut self, start: u64, end: u64) -> Step {
        let is_reopened = std::mem::take(&mut self.is_reopened);
        let found = self.runs.iter().enumerate().rev();
        let mut found =
            found.filter_map(|(at, run)| Some((at, run.step(start, end, self.skipped)?)));
        let Some((at, step)) = found.next() else { return self.begin(start, end) };
        if step == Step::Again {
            return step;
        }
        let is_elsewhere = is_reopened || at + 1 != self.runs.len();
        let mut run = self.runs.remove(at);
        run.direction =
            Some(if step == Step::Forward { Direction::Forward } else { Direction::Backward });
        (run.start, run.end) = (run.start.min(start), run.end.max(end));
        self.runs.push(run);
        if step == Step::Forward && is_elsewhere { Step::Resumed } else { step }
    }

    /// Begins a run.
    fn begin(&mut self, start: u64, end: u64) -> Step {
        let distance = start as i64 - self.last_start as i64;
        let step = match (self.runs.is_empty(), self.distance) {
            (true, _) => Step::First,
            (false, Some(last)) if last == distance => Step::Strided,
            (false, _) => Step::Jump,
        };
        self.distance = (step != Step::First).then_some(distance);
        self.last_start = start;
        if self.runs.len() == MOST_RUNS {
            self.runs.remove(0);
        }
        self.runs.push(Run { start, end, direction: None });
        step
    }
}

#[cfg(test)]
mod tests {
    use patterns::order::{Read, backward, forward, random, streams, stride};
    use proptest::prelude::*;

    use super::*;

    const K: u64 = 1024;

    fn steps(reads: &[Read]) -> Steps {
        let mut order = Order::new(false);
        let mut steps = Steps::default();
        reads.iter().for_each(|(at, bytes)| steps.add(order.step(*at, at + bytes)));
        steps
    }

    fn counted(reads: &[Read]) -> Vec<(Step, u64)> {
        use Step::{Again, Backward, First, Forward, Jump, Resumed, Strided};
        let kinds = [First, Forward, Resumed, Backward, Strided, Jump, Again];
        let steps = steps(reads);
        kinds.map(|kind| (kind, steps.count(kind))).into_iter().filter(|(_, n)| *n > 0).collect()
    }

    #[test]
    fn forward_reading_goes_on_where_it_was_in_reads_of_any_size() {
        for each in [1, 100, 4096, 64 * K] {
            let reads = forward(0, 23 * each, each);
            assert_eq!(counted(&reads), [(Step::First, 1), (Step::Forward, 22)], "{each}");
        }
    }

    #[test]
    fn backward_reading_ends_where_it_began_before() {
        for each in [100, 4096, 64 * K] {
            let reads = backward(101 * each, 101 * each, each);
            assert_eq!(counted(&reads), [(Step::First, 1), (Step::Backward, 100)], "{each}");
        }
    }

    #[test]
    fn a_stride_shows_at_its_third_run() {
        let reads = stride(23 * 256 * K, 64 * K, 256 * K);
        let strided = [(Step::First, 1), (Step::Strided, 21), (Step::Jump, 1)];
        assert_eq!(counted(&reads), strided);
        let mut down = reads.clone();
        down.reverse();
        assert_eq!(counted(&down), strided, "downward, too");
        let pieces: Vec<Read> = reads.iter().flat_map(|(at, n)| forward(*at, *n, 16 * K)).collect();
        let expected =
            [(Step::First, 1), (Step::Forward, 69), (Step::Strided, 21), (Step::Jump, 1)];
        assert_eq!(counted(&pieces), expected, "each run is of four reads");
    }

    #[test]
    fn places_that_take_turns_are_resumed() {
        let reads = streams(7, 11 * 64 * K, 3 << 20, 64 * K);
        // The starts of seven streams are equally far apart.
        let starts = [(Step::Resumed, 70), (Step::Strided, 5), (Step::Jump, 1)];
        assert_eq!(counted(&reads), [&[(Step::First, 1)][..], &starts].concat());
        assert_eq!(steps(&reads).runs(), 7);
    }

    #[test]
    fn random_reading_jumps() {
        let steps = steps(&random(997, 4096, 4 << 30));
        assert!(steps.count(Step::Jump) > 980, "{steps:?}");
    }

    #[test]
    fn a_second_pass_reads_again() {
        let reads = [forward(0, 13 * 4096, 4096), forward(0, 13 * 4096, 4096)].concat();
        let expected = [(Step::First, 1), (Step::Forward, 12), (Step::Again, 13)];
        assert_eq!(counted(&reads), expected);
    }

    #[test]
    fn who_reopens_the_file_resumes() {
        let mut order = Order::new(false);
        assert_eq!(order.step(0, 4096), Step::First);
        order.close();
        assert_eq!(order.step(4096, 8192), Step::Resumed);
        assert_eq!(order.step(8192, 9000), Step::Forward);
    }

    #[test]
    fn what_the_kernel_maps_around_a_fault_is_no_gap() {
        let faults: Vec<u64> = (0..20).map(|fault| fault * 64 * K).collect();
        let mut order = Order::new(true);
        let steps: Vec<Step> = faults.iter().map(|at| order.step(*at, at + 4096)).collect();
        assert!(steps[1..].iter().all(|step| *step == Step::Forward), "{steps:?}");
        let mut order = Order::new(true);
        let steps: Vec<Step> = faults.iter().rev().map(|at| order.step(*at, at + 4096)).collect();
        assert!(steps[1..].iter().all(|step| *step == Step::Backward), "{steps:?}");
    }

    proptest! {
        #[test]
        fn each_read_is_one_step_and_only_the_first_is_first(
            reads in prop::collection::vec((0..1u64 << 40, 1..1u64 << 31), 1..80)
        ) {
            let steps = steps(&reads);
            prop_assert_eq!(steps.0.iter().sum::<u64>(), reads.len() as u64);
            prop_assert_eq!(steps.count(Step::First), 1);
        }
    }
}
