//! One cell: a pattern on a device with some memory, under one policy after the other.

use readahead::{PAGE_BYTES, Policy};

use super::patterns::Pattern;
use crate::published::experiment::{ExperimentError, MachineSpec};
use crate::{Listed, Machine, Op, Oracle, Worst};

/// The policy below the worst.
const KERNEL: &str = "linux-6";

/// Largest batches of the oracle, as shares of what it may ask for ahead.
const BATCHES: [u64; 6] = [512, 64, 16, 4, 2, 1];

/// Nanoseconds until the last reader ends under a policy.
pub(super) fn time_under(
    spec: &MachineSpec,
    pattern: &Pattern,
    policy: &str,
) -> Result<u64, ExperimentError> {
    Ok(run(spec.build(policy)?, pattern))
}

/// The least time of the oracles.
pub(super) fn oracle_time(spec: &MachineSpec, pattern: &Pattern) -> Result<u64, ExperimentError> {
    let pages = (spec.memory_mb * 1e6) as u64 / PAGE_BYTES;
    let shared = pages / pattern.readers.len() as u64;
    let mut least = u64::MAX;
    let of_all = [pages / 4 * 3, pages / 16 * 9, pages / 4];
    let of_a_share = [shared / 2, shared / 8, shared / 32];
    for ahead in of_all.into_iter().chain(of_a_share) {
        for share in BATCHES {
            for bridges in [false, true] {
                let batch = (ahead / share).max(1);
                let oracle: Box<dyn Policy> =
                    Box::new(Oracle::new(pattern.traces(), ahead, batch, bridges));
                least = least.min(run(Machine::new(spec.parts_with(oracle, None)?), pattern));
            }
        }
    }
    Ok(least)
}

/// The time of the kernel's policy with the one on top of it that does all the harm it may.
pub(super) fn worst_time(spec: &MachineSpec, pattern: &Pattern) -> Result<u64, ExperimentError> {
    let ahead = (spec.memory_mb * 1e6) as u64 / PAGE_BYTES / 4;
    let kernel = readahead::by_name(KERNEL, pattern.readers.len())
        .ok_or_else(|| ExperimentError::Policy(KERNEL.to_owned()))?;
    let worst: Box<dyn Policy> = Box::new(Worst::new(&pattern.traces(), ahead));
    Ok(run(Machine::new(spec.parts_with(kernel, Some(worst))?), pattern))
}

fn run(mut machine: Machine, pattern: &Pattern) -> u64 {
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
    machine.run();
    processes.into_iter().map(|process| machine.outcome(process).ended).max().unwrap_or(0)
}
