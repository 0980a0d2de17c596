//! One cell: a pattern on a device with some memory, under one policy after the other.

use readahead::PAGE_BYTES;
use readahead::adaptive::Rules;
use sim::MachineSpec;
use sim::variants;
use sim::{Listed, Machine, Op};

use super::patterns::Pattern;
use crate::experiment::ExperimentError;

/// Nanoseconds until the last reader ends under a policy.
pub(super) fn time_under(
    spec: &MachineSpec,
    pattern: &Pattern,
    policy: &str,
) -> Result<u64, ExperimentError> {
    Ok(run(spec.build(policy)?, pattern))
}

/// Nanoseconds until the last reader ends under `adaptive` with these rules.
pub(super) fn time_with_rules(
    spec: &MachineSpec,
    pattern: &Pattern,
    rules: Rules,
) -> Result<u64, ExperimentError> {
    Ok(run(spec.build_with_rules(rules)?, pattern))
}

/// The least time of the oracles.
pub(super) fn oracle_time(spec: &MachineSpec, pattern: &Pattern) -> Result<u64, ExperimentError> {
    let mut least = u64::MAX;
    for variant in variants(pattern.readers.len() as u64, spec.memory_pages()) {
        let oracle = Box::new(variant.oracle(pattern.traces()));
        let machine = Machine::new(spec.parts_with(oracle, None)?);
        // Most take longer than the best.
        least = least.min(run_until(least, machine, pattern).unwrap_or(least));
    }
    Ok(least)
}

/// The time of the kernel's policy with the most harmful one on top of it.
pub(super) fn worst_time(spec: &MachineSpec, pattern: &Pattern) -> Result<u64, ExperimentError> {
    Ok(run(spec.build_worst(&pattern.traces())?, pattern))
}

fn run(machine: Machine, pattern: &Pattern) -> u64 {
    run_until(u64::MAX, machine, pattern).expect("time has no end")
}

/// `None` if a reader has not ended at that moment.
fn run_until(end: u64, mut machine: Machine, pattern: &Pattern) -> Option<u64> {
    let mut processes = Vec::new();
    for reads in &pattern.readers {
        let file = machine.add_file(pattern.file);
        let open = machine.open(file);
        let is_mapped = pattern.is_mapped;
        let op = move |(at, bytes): (u64, u64)| match is_mapped {
            true => Op::Fault { open, page: at / PAGE_BYTES },
            false => Op::Read { open, at, bytes },
        };
        processes.push(machine.spawn(0, Listed(reads.clone().into_iter().map(op))));
    }
    let has_ended = machine.run_until(end);
    let ends = processes.into_iter().map(|process| machine.outcome(process).ended);
    has_ended.then(|| ends.max().unwrap_or(0))
}
