//! The events matrix: which events count for each class of read-ahead.

mod support;

use historical::{
    Access, AdaptiveV16, KernelPolicy, KernelView, Linux6, Plan, Stock, StockRelease,
};
use readahead::{Cause, Nanos, PAGE_BYTES};
use sim::{CpuCosts, Listed, Machine, Op, OpenFile, Parts, Row};

const FILE_PAGES: u64 = 2048;

fn machine(memory_pages: u64, kernel: Box<dyn KernelPolicy>) -> Machine {
    let cpu = CpuCosts { call: 300, page: 400, ..CpuCosts::default() };
    Machine::new(Parts { cpu, ..support::parts("net", memory_pages, kernel) })
}

fn read(open: OpenFile, page: u64) -> Op {
    Op::Read { open, at: page * PAGE_BYTES, bytes: PAGE_BYTES }
}

/// Reads a file page by page, in memory for all of it, with a pause before each page.
fn scan(kernel: Box<dyn KernelPolicy>, think: Nanos) -> Machine {
    let mut machine = machine(2 * FILE_PAGES, kernel);
    let file = machine.add_file(FILE_PAGES * PAGE_BYTES);
    let open = machine.open(file);
    let step = move |page| [Op::Compute { ns: think }, read(open, page)];
    machine.spawn(0, Listed((0..FILE_PAGES).flat_map(step)));
    machine.run();
    machine
}

/// Slow readers that share memory much too small for their windows.
fn slow_readers(kernel: Box<dyn KernelPolicy>) -> Machine {
    const READERS: u64 = 48;
    let mut machine = machine(512, kernel);
    for reader in 0..READERS {
        let file = machine.add_file(FILE_PAGES / 4 * PAGE_BYTES);
        let open = machine.open(file);
        let step = move |page| [Op::Compute { ns: 5_000_000 }, read(open, page)];
        machine.spawn(reader * 100_000, Listed((0..FILE_PAGES / 4).flat_map(step)));
    }
    machine.run();
    machine
}

fn linux_6() -> Box<dyn KernelPolicy> {
    Box::new(Linux6::new(64))
}

fn v16() -> Box<dyn KernelPolicy> {
    Box::new(AdaptiveV16::new(64, Default::default()))
}

fn stock() -> Box<dyn KernelPolicy> {
    Box::new(Stock::new(64, StockRelease::Linux2_6_17))
}

#[test]
fn a_touched_mark_is_the_look_ahead_hit_of_the_class_that_set_it() {
    let machine = scan(linux_6(), 0);
    let initial = machine.matrix().row(Cause::Initial);
    let sequential = machine.matrix().row(Cause::Sequential);
    // The first window's mark requests the second, which is sequential.
    assert_eq!((initial.requests, initial.look_ahead_hits), (1, 1));
    // The reader also touches the last window's mark, and nothing follows. Pages beyond have no mark.
    let beyond = u64::from(sequential.pages > sequential.read);
    assert_eq!(sequential.look_ahead_hits, sequential.requests - beyond, "{sequential:?}");
    assert_eq!(scan(stock(), 0).matrix().total().look_ahead_hits, 0, "it has no marks");
}

#[test]
fn a_page_is_late_if_its_reader_finds_it_on_its_way() {
    let fast = scan(linux_6(), 0).matrix().total();
    assert!(fast.late > 0, "{fast:?}");
    // Ten milliseconds per page are twice the time of the device.
    let slow = scan(linux_6(), 10_000_000).matrix().total();
    assert_eq!(slow.late, 0, "the page that was absent is none that was read ahead");
    let none = scan(Box::new(historical::NoReadAhead), 0).matrix().total();
    assert_eq!(
        (none.read, none.late),
        (FILE_PAGES, 0),
        "each page is waited for, and none is late"
    );
}

#[test]
fn a_class_answers_for_its_pages_that_were_read_twice() {
    let machine = slow_readers(linux_6());
    let total = machine.matrix().total();
    assert!(total.thrashed > 1000, "{total:?}");
    assert_eq!(total.thrashed, machine.cache_counters().read_again);
    for (cause, row) in machine.matrix().rows() {
        assert!(row.hits + row.thrashed <= row.read, "{}: {row:?}", cause.name());
    }
    assert_eq!(machine.matrix().row(Cause::Random).thrashed, 0, "a page read alone is used");
    assert_eq!(scan(linux_6(), 0).matrix().total().thrashed, 0, "memory was enough");
}

#[test]
fn windows_shrink_after_thrashing_only() {
    for policy in [linux_6, v16, stock] {
        let thrashing = slow_readers(policy());
        let enough = scan(policy(), 0);
        let shrinks = [&thrashing, &enough].map(|machine| machine.matrix().total().shrinks);
        assert!(shrinks[0] > 0 && shrinks[1] == 0, "{}: {shrinks:?}", policy().name());
    }
    let recovery = *slow_readers(v16()).matrix().row(Cause::Thrashed);
    assert!(recovery.shrinks > 0, "three quarters of what survived: {recovery:?}");
}

/// Requests pages beyond the end of the file.
struct Beyond;

impl KernelPolicy for Beyond {
    fn name(&self) -> &'static str {
        "beyond"
    }

    fn on_access(&mut self, access: &Access, _cache: &dyn KernelView, plan: &mut Plan) {
        plan.read(access.file_pages + 8, 4, access.file_pages, Cause::Context);
    }

    fn forget_idle(&mut self, _now: Nanos, _idle: Nanos) {}
}

#[test]
fn what_is_asked_for_beyond_the_end_counts_for_its_own_cause() {
    let machine = scan(Box::new(Beyond), 0);
    let rows: Vec<_> = machine.matrix().rows().map(|(cause, row)| (cause, *row)).collect();
    let asked = FILE_PAGES;
    let row = Row { requests: asked, pages: 4 * asked, to_the_end: asked, ..Row::default() };
    assert_eq!(rows, [(Cause::Context, row)]);
}
