//! Properties of any machine, with any processes.

use historical::Linux6;
use proptest::prelude::*;
use readahead::adaptive::Limits;
use readahead::{Adaptive, DeviceCost, Nanos, PAGE_BYTES};
use sim::{Bowwave, CpuCosts, Listed, Machine, OnTop, Op, OpenFile, Parts, Reclaim};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A machine with a 7200 rpm disk and today's kernel, with or without bowwave on top.
fn machine(memory_bytes: u64, with_bowwave: bool) -> Machine {
    build(memory_bytes, with_bowwave, 32)
}

/// The same without bowwave, with another window of the kernel's.
fn machine_with_window(memory_bytes: u64, kernel_window: u32) -> Machine {
    build(memory_bytes, false, kernel_window)
}

fn build(memory_bytes: u64, with_bowwave: bool, kernel_window: u32) -> Machine {
    let spec = device::load("hdd").expect("the catalogue has it");
    let on_top = with_bowwave.then(|| {
        let limits = Limits {
            files: 16,
            plan_bytes: memory_bytes / 16,
            region_bytes: memory_bytes / 16,
            ahead_bytes: memory_bytes / 8,
        };
        let policy = Box::new(Adaptive::new(limits));
        OnTop::Bowwave(Bowwave::new(policy, memory_bytes / 4))
    });
    Machine::new(Parts {
        memory_pages: memory_bytes / PAGE_BYTES,
        kernel: Box::new(Linux6::new(64)),
        on_top,
        kernel_window,
        elevator: iosched::by_name("noop", 2560).expect("it is known"),
        device: spec.build(40 << 30),
        cost: spec.cost(),
        device_depth: 32,
        request_pages: 320,
        reclaim: Reclaim::UseOnceFirst,
        cpu: CpuCosts { call: 300, page: 400, decision: 200, wake: 5_000, ..CpuCosts::default() },
    })
}

fn scan(open: OpenFile, from: u64, to: u64, step: u64) -> impl Iterator<Item = Op> {
    (from..to).step_by(step as usize).map(move |at| Op::Read { open, at, bytes: step })
}

/// Reads a file of `bytes` bytes in requests of 4 KiB. Returns the seconds.
fn sequential(machine: &mut Machine, bytes: u64) -> f64 {
    let file = machine.add_file(bytes);
    let open = machine.open(file);
    let process = machine.spawn(0, Listed(scan(open, 0, bytes, 4096)));
    machine.run();
    machine.outcome(process).ended as f64 * 1e-9
}

#[test]
fn sequential_reading_comes_near_the_media_rate() {
    let seconds = sequential(&mut machine(512 * MIB, false), 100 * MIB);
    assert!((1.04..1.15).contains(&seconds), "{seconds}");
}

/// Reads `runs` runs of 1 MiB backward, in requests of 16 KiB. Returns the seconds.
fn backward_runs(machine: &mut Machine, runs: u64) -> f64 {
    let file = machine.add_file(runs * 8 * MIB);
    let open = machine.open(file);
    let run = move |start: u64| {
        (1..=64).map(move |i| Op::Read { open, at: start + MIB - i * 16_384, bytes: 16_384 })
    };
    let starts = (0..runs).map(move |i| (i * 5 % runs * 8 + 4) * MIB);
    let process = machine.spawn(0, Listed(starts.flat_map(run)));
    machine.run();
    machine.outcome(process).ended as f64 * 1e-9
}

/// Pages that runs left unread once counted as ahead for ten seconds. So in little memory most later runs were not read
/// ahead, and took five times as long.
#[test]
fn runs_that_end_leave_what_may_be_ahead_to_the_next() {
    let ample = backward_runs(&mut machine(512 * MIB, true), 32);
    let little = backward_runs(&mut machine(16 * MIB, true), 32);
    assert!(little < 2.0 * ample, "{little} s in little memory, {ample} s in ample");
}

#[test]
fn what_is_cached_needs_no_device() {
    let mut machine = machine(512 * MIB, false);
    let file = machine.add_file(100 * MIB);
    let open = machine.open(file);
    let twice = scan(open, 0, 100 * MIB, 65_536).chain(scan(open, 0, 100 * MIB, 65_536));
    machine.spawn(0, Listed(twice));
    machine.run();
    assert_eq!(machine.device_counters().bytes, 100 * MIB);
}

#[test]
fn a_sparse_file_needs_memory_but_no_device() {
    let mut machine = machine(512 * MIB, false);
    let file = machine.add_sparse_file(10 * MIB);
    let open = machine.open(file);
    let process = machine.spawn(0, Listed(scan(open, 0, 10 * MIB, 4096)));
    machine.run();
    assert_eq!(machine.device_counters().requests, 0);
    assert_eq!(machine.resident_pages(file), 2560);
    let outcome = machine.outcome(process);
    assert_eq!((outcome.stalls, outcome.ended), (0, outcome.cpu));
}

#[test]
fn backward_reading_is_served_from_what_bowwave_read() {
    let run = |with_bowwave| {
        let mut machine = machine(512 * MIB, with_bowwave);
        let file = machine.add_file(64 * MIB);
        let open = machine.open(file);
        let starts = (0..1024).rev().map(|i| i * 65_536);
        let reads = starts.map(move |at| Op::Read { open, at, bytes: 65_536 });
        let process = machine.spawn(0, Listed(reads));
        machine.run();
        machine.outcome(process).ended
    };
    let (stock, bowwave) = (run(false), run(true));
    assert!(bowwave * 5 < stock, "stock {stock}, bowwave {bowwave}");
}

#[test]
fn a_reader_that_waits_is_told_when_its_page_came() {
    let mut machine = machine(64 * MIB, false);
    let file = machine.add_file(4096);
    let open = machine.open(file);
    let process = machine.spawn(1_000, Listed(scan(open, 0, 4096, 4096)));
    machine.run();
    let outcome = machine.outcome(process);
    assert_eq!((outcome.stalls, outcome.pages), (1, 1));
    let running = outcome.cpu + 5_000;
    assert_eq!(outcome.ended - outcome.started, outcome.stalled + running);
}

#[test]
fn a_window_larger_than_memory_starves_nobody() {
    let mut machine = machine_with_window(MIB, 2048);
    let file = machine.add_file(16 * MIB);
    let open = machine.open(file);
    let faults = (0..4096).map(move |page| Op::Fault { open, page });
    let process = machine.spawn(0, Listed(faults));
    machine.run();
    assert_eq!(machine.outcome(process).pages, 4096);
}

/// Reads 40 pieces of 2 MB at scattered places, in one request each; returns the seconds.
fn pieces_in_one_request(mut machine: Machine) -> f64 {
    let file = machine.add_file(200 * MIB);
    let open = machine.open(file);
    let place = |number: u64| number * 7_919 % 25_000 * 8_192;
    let read = move |number| Op::Read { open, at: place(number), bytes: 2 * MIB };
    let process = machine.spawn(0, Listed((0..40).map(read)));
    machine.run();
    machine.outcome(process).ended as f64 * 1e-9
}

#[test]
fn a_request_longer_than_the_kernels_window_is_read_whole_and_nothing_beyond_it() {
    let [alone, wide, ours] =
        [machine(GIB, false), machine_with_window(GIB, 1024), machine(GIB, true)]
            .map(pieces_in_one_request);
    assert!(wide < 0.8 * alone, "{wide}, {alone}: the kernel looks ahead of each");
    assert!(ours < 1.05 * wide, "{ours}, {wide}");
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Read(u8, u16, u8),
    Write(u8, u16, u8),
    Fault(u8, u16),
    Pause(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (any::<u8>(), any::<u16>(), 1..40u8).prop_map(|(f, p, n)| Step::Read(f, p, n)),
        (any::<u8>(), any::<u16>(), 1..40u8).prop_map(|(f, p, n)| Step::Write(f, p, n)),
        (any::<u8>(), any::<u16>()).prop_map(|(f, p)| Step::Fault(f, p)),
        (0..20_000_000u32).prop_map(Step::Pause),
    ]
}

/// Pages of each of the two files of a random run.
const FILE_PAGES: u64 = 3000;

/// Runs scripts of steps side by side in little memory. Returns the figures of the run.
fn run(scripts: &[Vec<Step>], with_bowwave: bool) -> (Vec<(Nanos, u64)>, u64, u64) {
    let mut machine = machine(4 * MIB, with_bowwave);
    machine.keep_log();
    let files = [0, 1].map(|_| machine.add_file(FILE_PAGES * PAGE_BYTES));
    let processes: Vec<usize> = scripts
        .iter()
        .map(|steps| {
            let opens = files.map(|file| machine.open(file));
            let ops: Vec<Op> = steps.iter().map(|step| op(*step, opens)).collect();
            machine.spawn(0, Listed(ops.into_iter()))
        })
        .collect();
    machine.run();
    let ends = processes.iter().map(|p| machine.outcome(*p)).map(|o| (o.ended, o.pages)).collect();
    let resident = files.iter().map(|file| machine.resident_pages(*file)).sum();
    (ends, resident, machine.log().iter().map(|decision| decision.read).sum())
}

fn op(step: Step, opens: [OpenFile; 2]) -> Op {
    let open = |file: u8| opens[usize::from(file % 2)];
    let page = |page: u16| u64::from(page) % FILE_PAGES;
    let bytes = |pages: u8| u64::from(pages) * PAGE_BYTES;
    match step {
        Step::Read(f, p, n) => {
            Op::Read { open: open(f), at: page(p) * PAGE_BYTES, bytes: bytes(n) }
        }
        Step::Write(f, p, n) => {
            Op::Write { open: open(f), at: page(p) * PAGE_BYTES, bytes: bytes(n) }
        }
        Step::Fault(f, p) => Op::Fault { open: open(f), page: page(p) },
        Step::Pause(ns) => Op::Compute { ns: u64::from(ns) },
    }
}

fn wanted_pages(steps: &[Step]) -> u64 {
    let pages = |step: &Step| match *step {
        Step::Read(_, p, n) => u64::from(n).min(FILE_PAGES - u64::from(p) % FILE_PAGES),
        Step::Fault(..) => 1,
        Step::Write(..) | Step::Pause(_) => 0,
    };
    steps.iter().map(pages).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_process_ends_with_all_it_asked_for(
        scripts in prop::collection::vec(prop::collection::vec(step(), 1..80), 1..6),
        with_bowwave: bool,
    ) {
        let (ends, resident, _) = run(&scripts, with_bowwave);
        for ((ended, pages), steps) in ends.iter().zip(&scripts) {
            prop_assert!(*ended > 0);
            prop_assert_eq!(*pages, wanted_pages(steps));
        }
        prop_assert!(resident <= 4 * MIB / PAGE_BYTES);
    }

    #[test]
    fn the_same_input_gives_the_same_run(
        scripts in prop::collection::vec(prop::collection::vec(step(), 1..40), 1..5),
        with_bowwave: bool,
    ) {
        prop_assert_eq!(run(&scripts, with_bowwave), run(&scripts, with_bowwave));
    }
}

#[test]
fn the_device_is_busy_while_a_reader_waits_and_a_programs_own_cpu_is_told_apart() {
    let mut machine = machine(64 * MIB, false);
    let file = machine.add_file(4096);
    let open = machine.open(file);
    let read = Op::Read { open, at: 0, bytes: 4096 };
    let ops = [Op::LookUp { ns: 1_000 }, read, Op::Compute { ns: 2_000 }, read];
    let process = machine.spawn(0, Listed(ops.into_iter()));
    machine.run();
    let outcome = machine.outcome(process);
    let decision = 200;
    assert_eq!(machine.device_busy(), decision + outcome.stalled, "it begins before the wait does");
    assert_eq!(outcome.user, 2_000);
    assert_eq!(outcome.ended, outcome.cpu + outcome.stalled + 5_000, "and one wake-up");
}

#[test]
fn more_readers_than_memory_has_pages_all_come_to_an_end() {
    for readers in [200, 400, 700] {
        for bytes in [4096, 20_000] {
            let mut machine = machine(1 << 20, false);
            let mut processes = Vec::new();
            for number in 0..readers {
                let file = machine.add_file(40 * 4096);
                let open = machine.open(file);
                let reads = (0..6).map(move |i| Op::Read { open, at: i * 21_000, bytes });
                processes.push(machine.spawn(number % 7 * 100, Listed(reads)));
            }
            machine.run();
            for process in processes {
                assert!(machine.outcome(process).pages >= 6, "{readers} {bytes}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "stuck: 2 of 2 processes wait, and nothing is under way")]
fn a_machine_that_is_stuck_says_so() {
    let device = device::load("hdd").expect("the catalogue has it").build(1 << 30);
    let mut machine = Machine::new(Parts {
        memory_pages: 1024,
        kernel: Box::new(Linux6::new(64)),
        on_top: None,
        kernel_window: 32,
        elevator: iosched::by_name("noop", 2560).expect("it is known"),
        device,
        cost: DeviceCost::DISK,
        device_depth: 0,
        request_pages: 320,
        reclaim: Reclaim::UseOnceFirst,
        cpu: CpuCosts::default(),
    });
    let file = machine.add_file(4096);
    for _ in 0..2 {
        let open = machine.open(file);
        machine.spawn(0, Listed(scan(open, 0, 4096, 4096)));
    }
    machine.run();
}

#[test]
fn processes_that_wait_for_memory_wake_only_when_there_is_some() {
    const READERS: u64 = 2000;
    const READS: u64 = 3;
    let mut machine = machine(MIB, false);
    let mut processes = Vec::new();
    for _ in 0..READERS {
        let file = machine.add_file(READS * 64 * 4096);
        let open = machine.open(file);
        let reads = (0..READS).map(move |i| Op::Read { open, at: i * 64 * 4096, bytes: 4096 });
        processes.push(machine.spawn(0, Listed(reads)));
    }
    machine.run();
    let outcomes = || processes.iter().map(|process| machine.outcome(*process));
    assert!(outcomes().all(|outcome| outcome.pages == READS));
    let stalls: u64 = outcomes().map(|outcome| outcome.stalls).sum();
    let read = machine.matrix().pages_read();
    assert!(stalls <= 2 * (read + READERS * READS), "{stalls} for {read} pages read");
}

#[test]
fn many_readers_of_one_file_in_little_memory_all_come_to_an_end() {
    for sparse in [false, true] {
        let mut machine = machine(MIB, false);
        let add = if sparse { Machine::add_sparse_file } else { Machine::add_file };
        let file = add(&mut machine, 4 * MIB);
        let processes: Vec<usize> = (0..700)
            .map(|number| {
                let open = machine.open(file);
                let pages = (0..8).map(move |i| (number * 37 + i * 129) % 1024);
                let reads = pages.map(move |page| Op::Read { open, at: page * 4096, bytes: 4096 });
                let write = Op::Write { open, at: number % 1024 * 4096, bytes: 8192 };
                machine.spawn(number % 5 * 700, Listed(reads.chain([write])))
            })
            .collect();
        machine.run();
        assert!(processes.iter().all(|process| machine.outcome(*process).pages == 8));
    }
}

/// Bowwave narrows the window of a mapping that is read at random, if it finds the open file.
#[test]
fn a_mapping_without_a_descriptor_keeps_its_window() {
    let pages_read = |is_closed: bool| {
        let mut machine = machine(512 * MIB, true);
        let file = machine.add_file(700 * MIB);
        let open = machine.open(file);
        let close = is_closed.then_some(Op::Close { open });
        let faults = (0..300u64).map(move |n| Op::Fault { open, page: n * 7919 % 179_200 });
        machine.spawn(0, Listed(close.into_iter().chain(faults)));
        machine.run();
        machine.matrix().pages_read()
    };
    assert!(2 * pages_read(false) < pages_read(true));
}
