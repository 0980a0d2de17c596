//! The processes of a trace as scripts.

use std::collections::HashMap;
use std::vec::IntoIter;

use readahead::{Nanos, PAGE_BYTES, Page};

use super::{Layout, Pace, Setup};
use crate::{FileIndex, Machine, Op, OpenFile, Script};
use trace::{Record, Trace, TraceOp};

/// One operation, after a pause.
#[derive(Clone, Copy, Debug)]
struct Step {
    think: Nanos,
    /// `None` if the machine has nothing to do for it, such as for closing.
    op: Option<Op>,
    /// The last page of a mapping to touch after the first.
    touch_to: Page,
}

/// A process that plays its part of a trace.
struct Player {
    steps: IntoIter<Step>,
    /// The operation after the pause.
    next: Option<Op>,
    /// The next page of a mapping to touch, and the first not to.
    touch: Option<(OpenFile, Page, Page)>,
}

impl Script for Player {
    fn next(&mut self, now: Nanos) -> Op {
        loop {
            if let Some(op) = self.next.take() {
                return op;
            }
            if let Some((open, page, end)) = self.touch.take_if(|(_, page, end)| page < end) {
                self.touch = Some((open, page + 1, end));
                return Op::Fault { open, page };
            }
            let Some(step) = self.steps.next() else { return Op::Exit };
            self.next = step.op;
            if let Some(Op::Fault { open, page }) = step.op {
                self.touch = Some((open, page + 1, step.touch_to));
            }
            if step.think > 0 {
                return Op::SleepUntil { at: now + step.think };
            }
        }
    }
}

/// A process that is being put together.
#[derive(Default)]
struct Part {
    steps: Vec<Step>,
    /// The files that it has open, by their numbers in the trace.
    opens: HashMap<u32, OpenFile>,
    started: Nanos,
    /// When its last operation ended.
    ended: Nanos,
}

/// The times of a trace from its start, without what is too long of the times in which nothing happens.
struct Clock {
    longest_idle: Nanos,
    /// What is left out: everything before the start, and of each pause.
    left_out: Nanos,
    /// The end of all that has begun.
    busy_until: Nanos,
}

impl Clock {
    fn new(trace: &Trace, longest_idle: Option<Nanos>) -> Self {
        let start = trace.records().first().map_or(0, |record| record.at);
        let longest_idle = longest_idle.unwrap_or(Nanos::MAX);
        Clock { longest_idle, left_out: start, busy_until: start }
    }

    /// When the next record begins.
    fn at(&mut self, record: &Record) -> Nanos {
        let idle = record.at.saturating_sub(self.busy_until);
        self.left_out += idle.saturating_sub(self.longest_idle);
        self.busy_until = self.busy_until.max(record.at + record.took);
        record.at - self.left_out
    }
}

/// What `strace` adds to a call, at most, as measured on a busy machine (Linux 6.18).
const TRACER_NS: Nanos = 120_000;

/// Starts a trace's processes, which read these files; returns their numbers.
pub(super) fn spawn(
    trace: &Trace,
    setup: &Setup,
    files: &[FileIndex],
    machine: &mut Machine,
) -> Vec<usize> {
    let pace = setup.pace;
    let mut parts: Vec<Part> = trace.processes().iter().map(|_| Part::default()).collect();
    let mut clock = Clock::new(trace, setup.longest_idle);
    for record in trace.records() {
        let part = &mut parts[record.process as usize];
        let at = if pace == Pace::None { 0 } else { clock.at(record) };
        if part.steps.is_empty() {
            part.started = at;
            part.ended = at;
        }
        let op = match record.op {
            TraceOp::Close => {
                part.opens.remove(&record.file);
                None
            }
            TraceOp::Read | TraceOp::Mmap | TraceOp::Write if record.bytes == 0 => None,
            _ => {
                let file = files[record.file as usize];
                let open = part.opens.entry(record.file).or_insert_with(|| machine.open(file));
                let bytes = trace.files()[record.file as usize].bytes;
                op_of(record, *open, bytes)
            }
        };
        let end = record.end().min(trace.files()[record.file as usize].bytes);
        let think = at.saturating_sub(part.ended);
        let think = if pace == Pace::Untraced { think.saturating_sub(TRACER_NS) } else { think };
        part.steps.push(Step { think, op, touch_to: end.div_ceil(PAGE_BYTES) });
        part.ended = if pace == Pace::None { 0 } else { part.ended.max(at + record.took) };
    }
    let mut spawn = |(name, part): (&String, Part)| {
        let steps = part.steps.into_iter();
        let number = machine.spawn(part.started, Player { steps, next: None, touch: None });
        machine.name_process(number, name);
        number
    };
    let parts = trace.processes().iter().zip(parts);
    match setup.layout {
        Layout::AsTraced | Layout::ByDirectory => parts.map(spawn).collect(),
        Layout::Shuffled => {
            let mut numbers: Vec<usize> = parts.rev().map(&mut spawn).collect();
            numbers.reverse();
            numbers
        }
    }
}

/// An operation on a file of `file_bytes`; `None` if it is wholly beyond the end.
fn op_of(record: &Record, open: OpenFile, file_bytes: u64) -> Option<Op> {
    let Record { offset: at, bytes, .. } = *record;
    let is_beyond = at >= file_bytes && !matches!(record.op, TraceOp::Advise(_));
    if is_beyond {
        return None;
    }
    Some(match record.op {
        TraceOp::Advise(advice) => Op::Advise { open, advice },
        TraceOp::Mmap => Op::Fault { open, page: at / PAGE_BYTES },
        TraceOp::Write => Op::Write { open, at, bytes },
        // `spawn` has no operation for closing.
        TraceOp::Read | TraceOp::Close => Op::Read { open, at, bytes },
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Setup, replay};
    use super::*;

    fn run(trace: &str, policy: &str, setup: &Setup) -> super::super::Replay {
        let trace = Trace::parse(trace.as_bytes()).expect("valid");
        replay(&trace, policy, setup).expect("all of it exists")
    }

    fn backward() -> String {
        let read = |i: u64| format!("{},p,a,read,{},65536,9000\n", i * 10_000, (400 - i) << 16);
        let reads: String = (1..=400).map(read).collect();
        format!("time_us,process,file,op,offset,bytes,took_us\n{reads}")
    }

    #[test]
    fn a_time_in_which_nobody_does_anything_may_be_cut() {
        // Two hours after the first read ends, while the second process still reads for one of them.
        let text = "time_us,process,file,op,offset,bytes,took_us\n\
            0,p,a,read,0,4096,1000\n\
            1000,q,b,read,0,4096,3600000000\n\
            7200000000,p,a,read,4096,4096,1000\n\
            7260000000,q,b,read,4096,4096,1000\n";
        let ends = |longest_idle| {
            let replay = run(text, "none", &Setup { longest_idle, ..Setup::default() });
            [0, 1].map(|number: usize| replay.processes[number].ended_s.round())
        };
        assert_eq!(ends(None), [7200.0, 7260.0 - 3600.0]);
        assert_eq!(ends(Some(60_000_000_000)), [3660.0, 120.0]);
        assert_eq!(ends(Some(7_200_000_000_000)), ends(None));
    }

    #[test]
    fn thinking_is_kept_or_left_out() {
        // Not a disk, which rotates during the pauses of its reader.
        let setup = Setup { device: Some("net".into()), ..Setup::default() };
        let kept = run(&backward(), "linux-6", &setup);
        let without = Setup { pace: Pace::None, ..setup };
        let left_out = run(&backward(), "linux-6", &without);
        let thought = kept.seconds - left_out.seconds;
        assert!((0.3..0.6).contains(&thought), "399 times a millisecond, not {thought}");
        assert_eq!(kept.pages_read, left_out.pages_read);
    }

    #[test]
    fn what_a_tracer_may_have_added_to_each_pause_is_left_out() {
        let setup = Setup { device: Some("net".into()), ..Setup::default() };
        let traced = run(&backward(), "linux-6", &setup);
        let untraced = run(&backward(), "linux-6", &Setup { pace: Pace::Untraced, ..setup });
        let less = traced.seconds - untraced.seconds;
        assert!((0.047..0.049).contains(&less), "399 times 0.12 ms, not {less}");
    }

    #[test]
    fn a_better_policy_shows() {
        let setup = Setup { pace: Pace::None, keeps_log: true, ..Setup::default() };
        let stock = run(&backward(), "linux-6", &setup);
        let adaptive = run(&backward(), "adaptive", &setup);
        assert!(adaptive.seconds * 4.0 < stock.seconds, "{adaptive:?}");
        assert_eq!(stock.pages_needed, 400 * 16);
        assert!(stock.read_per_needed() >= 1.0 && stock.stalled_s() > 0.0);
        assert_eq!(stock.log.len() as u64, stock.matrix.total().requests);
    }

    #[test]
    fn what_takes_no_time_takes_as_long_as_the_first() {
        let nothing = replay(&Trace::default(), "linux-6", &Setup::default()).expect("all exists");
        assert_eq!((nothing.seconds, nothing.seconds_to(&nothing)), (0.0, 1.0));
        assert_eq!(nothing.mb_per_s(), None);
    }

    #[test]
    fn what_is_read_again_after_its_use_is_a_refault_and_no_thrashing() {
        // Twice through 8 MiB, in 4 MiB of memory: every page is evicted before its turn comes again.
        let read = |i: u64| format!("{i},p,a,read,{},65536\n", (i % 128) << 16);
        let reads: String = (0..256).map(read).collect();
        let trace = format!("time_us,process,file,op,offset,bytes\n{reads}");
        let setup = |mib: u64| Setup { memory_bytes: Some(mib << 20), ..Setup::default() };
        let small = run(&trace, "none", &setup(4));
        assert_eq!((small.refaulted, small.read_again), (2048, 0));
        assert_eq!(run(&trace, "none", &setup(16)).refaulted, 0);
    }

    /// The largest request of `policy`, and all pages it reads, of 1024 that are read forward in requests of four after
    /// this advice.
    fn largest_and_all(policy: &str, advice: &str) -> (u64, u64) {
        let read = |i: u64| format!("{},p,a,read,{},16384\n", i + 1, i << 14);
        let reads: String = (0..256).map(read).collect();
        let trace = format!(
            "file_bytes,file\n8388608,a\ntime_us,process,file,op,offset,bytes\n{advice}{reads}"
        );
        let replay = run(&trace, policy, &Setup { keeps_log: true, ..Setup::default() });
        let largest = replay.log.iter().map(|decision| decision.asked).max();
        (largest.unwrap_or(0), replay.pages_read)
    }

    #[test]
    fn advice_holds_for_the_open_file_until_it_is_changed_or_closed() {
        let random = "0,p,a,advise random\n";
        let sequential = "0,p,a,advise sequential\n";
        let (window, read) = largest_and_all("linux-6", "");
        assert_eq!((window, read > 1024), (32, true), "it reads on beyond the last request");
        assert_eq!(largest_and_all("linux-6", random), (4, 1024), "what is asked for");
        assert_eq!(largest_and_all("linux-6", sequential).0, 64);
        for back in ["0.5,p,a,advise normal\n", "0.5,p,a,close\n"] {
            for advice in [random, sequential] {
                assert_eq!(largest_and_all("linux-6", &format!("{advice}{back}")).0, 32);
            }
        }
        assert_eq!(largest_and_all("linux-6", "0,q,a,advise random\n").0, 32, "another's");
        assert_eq!(largest_and_all("stock-2.6.17", random), (0, 1024));
        assert_eq!(largest_and_all("stock-2.6.17", sequential).0, 64);
        assert_eq!(largest_and_all("adaptive-v16", random), (4, 1024));
        assert_eq!(largest_and_all("adaptive", random), (4, 1024));
    }

    #[test]
    fn a_mapping_is_touched_page_by_page() {
        let mapped = "time_us,process,file,op,offset,bytes\n0,p,a,mmap,4096,12288\n";
        let replay = run(mapped, "none", &Setup::default());
        assert_eq!((replay.matrix.misses, replay.pages_read), (3, 3));
    }

    #[test]
    fn a_file_that_was_closed_is_opened_again() {
        let opens = |close: &str| {
            let head = "time_us,process,file,op,offset,bytes\n0,p,a,read,0,4096\n";
            let text = format!("{head}{close}2,p,a,read,4096,4096\n");
            let trace = Trace::parse(text.as_bytes()).expect("valid");
            let spec = super::super::machine_of(&Setup::default(), 8192);
            let mut machine = spec.build("none").expect("it is known");
            let files = super::super::files::add(&trace, Layout::AsTraced, &mut machine);
            spawn(&trace, &Setup::default(), &files, &mut machine);
            machine.opens.len()
        };
        assert_eq!((opens(""), opens("1,p,a,close\n")), (1, 2));
    }

    #[test]
    fn what_does_not_exist_is_named_with_what_does() {
        let error = |policy: &str, setup: Setup| {
            super::super::check(policy, &setup).unwrap_err().to_string()
        };
        assert!(error("linux-7", Setup::default()).contains("linux-6, adaptive"));
        for no_kernel in ["adaptive@adaptive", "adaptive@"] {
            assert!(error(no_kernel, Setup::default()).contains("there is no policy"));
        }
        let floppy = Setup { device: Some("floppy".into()), ..Setup::default() };
        assert!(error("linux-6", floppy).contains("hdd, hdd-fifo"));
        let lift = Setup { elevator: Some("lift".into()), ..Setup::default() };
        assert!(error("linux-6", lift).contains("mq-deadline"));
    }
}
