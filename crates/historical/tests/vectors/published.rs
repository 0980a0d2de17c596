//! The decisions published in 2005, line by line.

use historical::{Adaptive2005, KernelPolicy, Stock, StockRelease};

use crate::support::Machine;

/// The lines of one policy as `start+asked=read`.
fn published(policy: &str) -> Vec<String> {
    let lines = include_str!("../../../../experiments/ramp-2005.csv").lines();
    let line = |line: &str| {
        let numbers = line.strip_prefix(policy)?.strip_prefix(',')?;
        let [start, asked, read] = numbers.split(',').collect::<Vec<_>>().try_into().ok()?;
        Some(format!("{start}+{asked}={read}"))
    };
    lines.filter_map(line).collect()
}

/// `cp` of that file.
fn copied(policy: impl KernelPolicy + 'static) -> Vec<String> {
    let mut machine = Machine::new(policy, 3568, 256);
    machine.scan(1, 0, 3568, 1);
    machine.published().into_iter().map(str::to_owned).collect()
}

#[test]
fn the_stock_read_ahead_of_2005_decides_as_published() {
    let expected = published("stock");
    assert_eq!(expected.len(), 20);
    assert_eq!(copied(Stock::new(64, StockRelease::Linux2_6_13)), expected);
}

#[test]
fn the_adaptive_read_ahead_of_2005_decides_as_published() {
    let expected = published("adaptive ratio 101");
    assert_eq!(expected.len(), 17);
    assert_eq!(copied(Adaptive2005::new(64, 101)), expected);
}
