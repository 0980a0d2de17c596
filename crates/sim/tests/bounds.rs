//! Bounds that no policy on top of a kernel's can break, and that none can beat.

use historical::{KernelPolicy, Linux6};
use proptest::prelude::*;
use readahead::{PAGE_BYTES, Page};
use sim::{CpuCosts, Listed, Machine, OnTop, Op, Oracle, Parts, Reclaim, Worst};

/// Pages of memory, and of each file.
const MEMORY_PAGES: u64 = 256;
const FILE_PAGES: u64 = 800;
const FILES: usize = 2;

/// Commands that the device takes at once.
const DEPTH: usize = 8;

fn machine(device: &str, kernel: Box<dyn KernelPolicy>, worst: Option<Worst>) -> Machine {
    let spec = device::load(device).expect("the catalogue has it");
    Machine::new(Parts {
        memory_pages: MEMORY_PAGES,
        kernel,
        on_top: worst.map(OnTop::Worst),
        kernel_window: 32,
        elevator: iosched::by_name("noop", 2560).expect("it is known"),
        device: spec.build(1 << 30),
        cost: spec.cost(),
        device_depth: DEPTH,
        request_pages: 320,
        reclaim: Reclaim::UseOnceFirst,
        cpu: CpuCosts { call: 300, page: 400, decision: 200, wake: 5_000, ..CpuCosts::default() },
    })
}

/// A read or fault: first page, pages (0: a fault).
type Step = (u64, u64);

fn pages((page, count): Step) -> std::ops::Range<Page> {
    page..(page + count.max(1)).min(FILE_PAGES)
}

fn traces(scripts: &[Vec<Step>]) -> Vec<Vec<Page>> {
    let mut traces = vec![Vec::new(); FILES];
    for (index, steps) in scripts.iter().enumerate() {
        traces[index % FILES].extend(steps.iter().copied().flat_map(pages));
    }
    traces
}

/// Runs a process for each script. Returns the pages that each has used.
fn run(mut machine: Machine, scripts: &[Vec<Step>]) -> (Vec<u64>, Machine) {
    let files: Vec<_> = (0..FILES).map(|_| machine.add_file(FILE_PAGES * PAGE_BYTES)).collect();
    let mut processes = Vec::new();
    for (index, steps) in scripts.iter().enumerate() {
        let open = machine.open(files[index % FILES]);
        let op = move |(page, count): Step| match count {
            0 => Op::Fault { open, page },
            _ => Op::Read { open, at: page * PAGE_BYTES, bytes: count * PAGE_BYTES },
        };
        let ops: Vec<Op> = steps.iter().copied().map(op).chain([Op::Stamp { label: 1 }]).collect();
        processes.push(machine.spawn(0, Listed(ops.into_iter())));
    }
    machine.run();
    for process in &processes {
        assert_eq!(machine.outcome(*process).stamps.len(), 1, "process {process} came to its end");
    }
    let resident: u64 = files.iter().map(|file| machine.resident_pages(*file)).sum();
    assert!(resident <= MEMORY_PAGES);
    assert!(machine.most_in_flight() <= DEPTH);
    let used = processes.iter().map(|process| machine.outcome(*process).pages).collect();
    (used, machine)
}

fn scripts() -> impl Strategy<Value = Vec<Vec<Step>>> {
    let step = (0..FILE_PAGES, 0..40u64);
    prop::collection::vec(prop::collection::vec(step, 1..40), 1..6)
}

fn device_name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["hdd", "net", "ssd", "sd", "hdd-fifo"])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_worst_policy_delays_readers_and_does_no_other_harm(
        scripts in scripts(), device in device_name(), plan_pages in 1..2000u64,
    ) {
        let (alone, _) = run(machine(device, Box::new(Linux6::new(64)), None), &scripts);
        let worst = Worst::new(&traces(&scripts), plan_pages);
        let (beside, _) = run(machine(device, Box::new(Linux6::new(64)), Some(worst)), &scripts);
        prop_assert_eq!(&alone, &beside);
        let wanted: Vec<u64> = scripts
            .iter()
            .map(|steps| steps.iter().map(|step| pages(*step).count() as u64).sum())
            .collect();
        prop_assert_eq!(alone, wanted);
    }

    #[test]
    fn the_oracle_reads_what_is_wanted_and_nothing_else(
        script in prop::collection::vec((0..FILE_PAGES, 0..40u64), 1..40), device in device_name(),
        batch in 1..128u64,
    ) {
        let scripts = [script];
        let traces = traces(&scripts);
        let mut distinct = traces[0].clone();
        distinct.sort_unstable();
        distinct.dedup();
        let oracle: Box<dyn KernelPolicy> = Box::new(Oracle::new(traces, MEMORY_PAGES / 2, batch, false));
        let (_, machine) = run(machine(device, oracle, None), &scripts);
        // Pages that memory cannot hold are read again.
        if distinct.len() as u64 <= MEMORY_PAGES / 2 {
            prop_assert_eq!(machine.device_counters().bytes, distinct.len() as u64 * PAGE_BYTES);
        }
    }
}

#[test]
fn the_worst_policy_does_read_what_nobody_wants() {
    let scripts = [(0..50).map(|page| (page * 3, 1)).collect::<Vec<Step>>()];
    let (_, alone) = run(machine("net", Box::new(Linux6::new(64)), None), &scripts);
    let worst = Worst::new(&traces(&scripts), 200);
    let (_, beside) = run(machine("net", Box::new(Linux6::new(64)), Some(worst)), &scripts);
    assert!(beside.device_counters().bytes > 10 * alone.device_counters().bytes);
}

#[test]
fn the_oracle_reads_backward_at_the_devices_pace() {
    let script: Vec<Step> = (0..FILE_PAGES / 4).rev().map(|page| (page * 4, 4)).collect();
    let scripts = [script];
    let oracle: Box<dyn KernelPolicy> =
        Box::new(Oracle::new(traces(&scripts), MEMORY_PAGES / 2, MEMORY_PAGES / 4, false));
    let (_, machine) = run(machine("net", oracle, None), &scripts);
    let seconds = machine.outcome(0).ended as f64 * 1e-9;
    assert!(seconds < 0.06, "{seconds}: 3 MB at 500 MB/s, and 5 ms a batch");
}
