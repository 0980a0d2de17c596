//! The readers of a pattern as processes of the simulated machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use patterns::beside::{LENGTH, STREAM_READ_BYTES, places};
use patterns::order::{Read, forward};
use patterns::{Files, PATTERNS, Pattern, Work};
use readahead::{Hint, Nanos, PAGE_BYTES};
use serde::Deserialize;
use sim::{CpuSpec, Listed, Machine, Op, OpenFile};

use super::{Unit, Workload};

/// KiB of a page.
const PAGE_KIB: f64 = PAGE_BYTES as f64 / 1024.0;

/// How a program reads each of its files.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Program {
    /// Bytes of each read.
    read_bytes: u64,
    /// From the end to the start.
    #[serde(default)]
    is_backward: bool,
    /// `posix_fadvise(SEQUENTIAL)` first.
    #[serde(default)]
    is_sequential: bool,
    /// Through a mapping.
    #[serde(default)]
    is_mapped: bool,
    /// Its processor times, from a separate table.
    #[serde(skip)]
    pub(super) times: Times,
}

/// Processor times of a program that reads from memory.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Times {
    /// From its start to its first read, in microseconds.
    pub(super) start_us: f64,
    /// Nanoseconds for each KiB, to compute and to read or map it.
    pub(super) ns_per_kib: f64,
}

/// Bytes that a pattern's reader may hold in memory, if it has a limit. Pages that bowwave reads are charged to
/// bowwave.
pub(super) fn memory_bytes(pattern: &Pattern, policy: &str) -> Option<u64> {
    match pattern.work {
        Work::Limited(_, bytes) if policy != "adaptive" => Some(bytes),
        _ => None,
    }
}

/// Runs the pattern. Returns its figure in seconds, or in the given unit.
pub(super) fn run(
    machine: &mut Machine,
    pattern: &Pattern,
    workload: &Workload,
    cpu: &CpuSpec,
    unit: Unit,
) -> f64 {
    let opens = open_files(machine, pattern);
    let processes = match pattern.work {
        Work::Reads(order) | Work::Limited(order, _) => {
            let ops = reads(opens[0], order(), workload.reader_ns_per_kib);
            vec![machine.spawn(0, Listed(ops.into_iter()))]
        }
        Work::Threads(orders) => {
            let thread = |(open, order): (&OpenFile, Vec<Read>)| {
                let ops = reads(*open, order, workload.reader_ns_per_kib);
                machine.spawn(0, Listed(ops.into_iter()))
            };
            opens.iter().zip(orders()).map(thread).collect()
        }
        Work::Mapped(order) => {
            // The reader keeps only the mapping.
            let close = Op::Close { open: opens[0] };
            let ops = [close].into_iter().chain(touches(opens[0], order(), 0));
            vec![machine.spawn(0, Listed(ops.collect::<Vec<_>>().into_iter()))]
        }
        Work::Beside | Work::BesideWalk(_) => return beside(machine, pattern, &opens, unit),
        Work::Program(_) | Work::Part(..) | Work::Copy | Work::CopyTree | Work::Cats => {
            let program = &workload.programs[pattern.program().unwrap_or_default()];
            let bytes = pattern.files[0].bytes;
            let ops = |open| program.ops(open, bytes, cpu);
            let start = |open: &OpenFile| machine.spawn(0, Listed(ops(*open).into_iter()));
            opens.iter().map(start).collect()
        }
    };
    machine.run();
    let ended = processes.into_iter().map(|process| machine.outcome(process).ended).max();
    seconds(ended.unwrap_or(0))
}

fn seconds(ns: Nanos) -> f64 {
    ns as f64 * 1e-9
}

/// The files of a pattern, opened, once for each thread.
fn open_files(machine: &mut Machine, pattern: &Pattern) -> Vec<OpenFile> {
    let threads = match pattern.work {
        Work::Threads(orders) => orders().len(),
        _ => 1,
    };
    let mut opens = Vec::new();
    for files in pattern.files {
        for number in 0..u64::from(files.count) {
            let file = machine.add_file_at(files.bytes, place_of(files) + number * files.bytes);
            opens.extend((0..threads).map(|_| machine.open(file)));
        }
    }
    opens
}

/// Offset of files on the device in bytes. The files of all patterns follow one another, as the demonstration writes
/// them.
fn place_of(files: &Files) -> u64 {
    let mut before: Vec<&Files> = Vec::new();
    for other in PATTERNS.iter().flat_map(|pattern| pattern.files) {
        if other == files {
            break;
        }
        if !before.contains(&other) {
            before.push(other);
        }
    }
    before.iter().map(|files| files.total_bytes().next_multiple_of(PAGE_BYTES)).sum()
}

fn reads(open: OpenFile, order: Vec<Read>, ns_per_kib: f64) -> Vec<Op> {
    let read = |(at, bytes): Read| {
        let ns = (bytes as f64 / 1024.0 * ns_per_kib).round() as Nanos;
        [Op::Read { open, at, bytes }, Op::Compute { ns }]
    };
    order.into_iter().flat_map(read).collect()
}

fn touches(open: OpenFile, order: Vec<Read>, ns: Nanos) -> Vec<Op> {
    let touch = |(at, _): Read| [Op::Fault { open, page: at / PAGE_BYTES }, Op::Compute { ns }];
    order.into_iter().flat_map(touch).collect()
}

impl Program {
    /// Nanoseconds that it computes for each KiB, without the reading, which the machine adds.
    fn computing(&self, cpu: &CpuSpec) -> f64 {
        let reading_us = match self.is_mapped {
            true => cpu.fault_us / PAGE_KIB,
            false => cpu.page_us / PAGE_KIB + cpu.call_us / (self.read_bytes as f64 / 1024.0),
        };
        (self.times.ns_per_kib - reading_us * 1e3).max(0.0)
    }

    fn ops(&self, open: OpenFile, file_bytes: u64, cpu: &CpuSpec) -> Vec<Op> {
        let mut order = if self.is_mapped {
            forward(0, file_bytes, PAGE_BYTES)
        } else {
            let starts = (0..file_bytes).step_by(self.read_bytes as usize);
            starts.map(|at| (at, self.read_bytes.min(file_bytes - at))).collect()
        };
        if self.is_backward {
            order.reverse();
        }
        let mut ops = vec![Op::Compute { ns: (self.times.start_us * 1e3).round() as Nanos }];
        if self.is_sequential {
            ops.push(Op::Advise { open, advice: Hint::Sequential });
        }
        ops.extend(match self.is_mapped {
            true => touches(open, order, (self.computing(cpu) * PAGE_KIB).round() as Nanos),
            false => reads(open, order, self.computing(cpu)),
        });
        ops
    }
}

/// A random reader of the first file beside readers of the others, as `crates/demo` runs them.
fn beside(machine: &mut Machine, pattern: &Pattern, opens: &[OpenFile], unit: Unit) -> f64 {
    let most = LENGTH.as_nanos() as Nanos;
    let is_over = Arc::new(AtomicBool::new(false));
    let stream_bytes = Arc::new(AtomicU64::new(0));
    let mut places = places(pattern.files[0].bytes);
    let file_bytes = pattern.files[1].bytes;
    for open in &opens[1..] {
        let (open, mut at) = (*open, 0);
        let (is_over, stream_bytes) = (is_over.clone(), stream_bytes.clone());
        machine.spawn(0, move |_| {
            if at > 0 {
                stream_bytes.fetch_add(STREAM_READ_BYTES, Ordering::Relaxed);
            }
            if at >= file_bytes {
                is_over.store(true, Ordering::Relaxed);
            }
            if is_over.load(Ordering::Relaxed) {
                return Op::Exit;
            }
            at += STREAM_READ_BYTES;
            Op::Read { open, at: at - STREAM_READ_BYTES, bytes: STREAM_READ_BYTES }
        });
    }
    let (open, mut is_stamped) = (opens[0], false);
    // A stamp before each read: what lies between two of them is a read's latency.
    let random = machine.spawn(0, move |now| {
        is_stamped = !is_stamped;
        if is_stamped {
            return Op::Stamp { label: 0 };
        }
        if now >= most || is_over.load(Ordering::Relaxed) {
            is_over.store(true, Ordering::Relaxed);
            return Op::Exit;
        }
        match places.next() {
            Some(at) => Op::Read { open, at, bytes: PAGE_BYTES },
            None => Op::Exit,
        }
    });
    machine.run();
    let outcome = machine.outcome(random);
    let mut latencies: Vec<f64> =
        outcome.stamps.windows(2).map(|pair| (pair[1].1 - pair[0].1) as f64 * 1e-6).collect();
    latencies.sort_by(f64::total_cmp);
    match unit {
        Unit::Seconds => seconds(outcome.ended),
        Unit::StreamsMbS => {
            stream_bytes.load(Ordering::Relaxed) as f64 / 1e6 / seconds(outcome.ended)
        }
        Unit::LatencyMs => latencies.get(latencies.len() / 2).copied().unwrap_or(f64::NAN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(is_backward: bool) -> Program {
        Program {
            read_bytes: 8192,
            is_backward,
            is_sequential: true,
            is_mapped: false,
            times: Times { start_us: 1.0, ns_per_kib: 100.0 },
        }
    }

    fn machine() -> Machine {
        let text = include_str!("../../../../experiments/demo.toml");
        let experiment: crate::experiment::Experiment<Workload> =
            crate::experiment::Experiment::parse("demo", text).expect("it is valid");
        experiment.machine.build("linux-6").expect("it can be")
    }

    #[test]
    fn a_program_reads_its_file_whole_and_what_is_over_at_its_end() {
        let mut machine = machine();
        let file = machine.add_file(20_000);
        let open = machine.open(file);
        let read = |at, bytes| Op::Read { open, at, bytes };
        let forward = program(false).ops(open, 20_000, &CpuSpec::default());
        assert_eq!(forward[0], Op::Compute { ns: 1000 });
        assert_eq!(forward[1], Op::Advise { open, advice: Hint::Sequential });
        assert_eq!(
            [forward[2], forward[4], forward[6]],
            [read(0, 8192), read(8192, 8192), read(16_384, 3616)]
        );
        assert_eq!(forward[3], Op::Compute { ns: 800 });
        let backward = program(true).ops(open, 20_000, &CpuSpec::default());
        assert_eq!([backward[2], backward[6]], [read(16_384, 3616), read(0, 8192)]);
    }

    #[test]
    fn each_file_of_each_pattern_lies_where_no_other_does() {
        let mut taken: Vec<(&str, std::ops::Range<u64>)> = Vec::new();
        for files in PATTERNS.iter().flat_map(|pattern| pattern.files) {
            let range = place_of(files)..place_of(files) + files.total_bytes();
            let is_free = |(name, other): &(&str, std::ops::Range<u64>)| {
                *name == files.name || other.end <= range.start || range.end <= other.start
            };
            assert!(taken.iter().all(is_free), "{}", files.name);
            taken.push((files.name, range));
        }
    }
}
