//! Copies of one large file, alone and beside `grep` and `diff` over small ones, 2005.

mod judge;

use std::collections::BTreeMap;

use serde::Deserialize;
use sim::MachineSpec;
use sim::scripts::{Sequential, Tree, TreeSpec, Walk};
use sim::{Machine, Outcome};

use super::experiment::{Experiment, ExperimentError, figures};
use super::side_by_side::side_by_side;
use super::table::{Figure, Kind, Table};

const NAME: &str = "copies-2005";

#[cfg(any(test, fuzzing))]
pub(super) const PARSERS: super::parsers::Parsers =
    super::parsers::Parsers::of::<Workload, Record>();

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    file_bytes: u64,
    /// Processor time of `dd` per block, in microseconds.
    user_us_per_block: f64,
    /// Policies whose dd really read blocks of this size, whatever the row says.
    blocks: BTreeMap<String, String>,
    /// Where the two trees begin on the disk.
    tree_offsets_gb: [f64; 2],
    tree: TreeSpec,
    grep: WalkSpec,
    diff: WalkSpec,
    pc: Pc,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WalkSpec {
    user_us_per_kib: f64,
    file_us: f64,
}

/// The second machine of the posting, and what ran on it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pc {
    machine: MachineSpec,
    /// Read-ahead in KiB, by the rows' loads.
    readahead_kb: BTreeMap<String, u64>,
    image_bytes: u64,
    beside_bytes: u64,
    /// Bytes of each of two files.
    diffed_bytes: u64,
    diff_block_kb: u64,
    diff_user_us_per_block: f64,
}

/// One published row: a process under a load.
#[derive(Clone, Debug, Deserialize)]
struct Record {
    load: String,
    block: String,
    workload: String,
    policy: String,
    real_seconds: f64,
    system_seconds: Option<f64>,
    user_seconds: Option<f64>,
    voluntary_cs: Option<f64>,
}

/// One row: what was published of a process, and how that process fared in the simulator.
struct Row {
    record: Record,
    outcome: Outcome,
}

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Result<Table, ExperimentError> {
    let experiment: Experiment<Workload> =
        Experiment::parse(NAME, include_str!("../../../experiments/copies-2005.toml"))?;
    let records: Vec<Record> = figures(NAME, include_str!("../../../experiments/copies-2005.csv"))?;
    reproduce(&experiment, records, progress)
}

fn reproduce(
    experiment: &Experiment<Workload>,
    records: Vec<Record>,
    progress: &mut dyn FnMut(f64),
) -> Result<Table, ExperimentError> {
    let key = |record: &Record| {
        let Record { load, block, policy, .. } = record.clone();
        (Load::of(record), load, block, policy)
    };
    let different: BTreeMap<_, _> = records.iter().map(|record| (key(record), record)).collect();
    let different: Vec<_> = different.into_iter().collect();
    let run = |((load, ..), record): &((Load, _, _, _), &Record)| load.run(experiment, record);
    let outcomes = side_by_side(&different, run, progress)?;
    let outcomes: BTreeMap<_, _> =
        different.into_iter().map(|(key, _)| key).zip(outcomes).collect();
    let row = |record: Record| {
        let outcome = outcomes[&key(&record)][Load::of(&record).process_of(&record)].clone();
        Row { record, outcome }
    };
    let rows: Vec<_> = records.into_iter().map(row).collect();
    Ok(Table {
        figures: rows.iter().flat_map(figures_of).collect(),
        verdicts: judge::judge(&rows),
        ..experiment.table(NAME)
    })
}

/// What runs at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Load {
    Single,
    /// `grep`, `dd` and `diff`, in this order.
    Parallel,
    PcSingle,
    /// `dd` and `diff` of two files.
    PcPair,
}

impl Load {
    fn of(record: &Record) -> Self {
        match (record.load.starts_with("pc"), record.workload.starts_with("dd single")) {
            (true, true) => Load::PcSingle,
            (true, false) => Load::PcPair,
            (false, _) if record.load == "single" => Load::Single,
            (false, _) => Load::Parallel,
        }
    }

    /// The index of the process that a row is about.
    fn process_of(self, record: &Record) -> usize {
        match (self, record.workload.as_str()) {
            (Load::Parallel, "dd") => 1,
            (Load::Parallel, "diff") => 2,
            (Load::PcPair, "other process beside it") => 1,
            _ => 0,
        }
    }

    fn run(
        self,
        experiment: &Experiment<Workload>,
        record: &Record,
    ) -> Result<Vec<Outcome>, ExperimentError> {
        let workload = &experiment.workload;
        let block = workload.blocks.get(&record.policy).unwrap_or(&record.block);
        let block = block_bytes(block);
        let dd_user = nanos(workload.user_us_per_block);
        let mut spec = match self {
            Load::Single | Load::Parallel => experiment.machine.clone(),
            Load::PcSingle | Load::PcPair => workload.pc.machine.clone(),
        };
        if let Some(kb) = workload.pc.readahead_kb.get(&record.load) {
            spec.readahead_kb = *kb;
        }
        let policy = experiment.policies.get(&record.policy).unwrap_or(&record.policy);
        let mut machine = spec.build(policy)?;
        let dd = |machine: &mut Machine, bytes| {
            let file = machine.add_file(bytes);
            let open = machine.open(file);
            machine.spawn(0, Sequential::new(open, bytes, block, dd_user))
        };
        let processes = match self {
            Load::Single => vec![dd(&mut machine, workload.file_bytes)],
            Load::Parallel => {
                let [grep, diff] = workload.walks(&mut machine);
                let grep = machine.spawn(0, grep);
                let file = machine.add_file_at(workload.file_bytes, 0);
                let open = machine.open(file);
                let dd = Sequential::new(open, workload.file_bytes, block, dd_user);
                let dd = machine.spawn(0, dd);
                vec![grep, dd, machine.spawn(0, diff)]
            }
            Load::PcSingle => vec![dd(&mut machine, workload.pc.image_bytes)],
            Load::PcPair => {
                let dd = dd(&mut machine, workload.pc.beside_bytes);
                let pc = &workload.pc;
                let files = [0; 2].map(|_| machine.add_file(pc.diffed_bytes));
                let opens = files.map(|file| machine.open(file));
                let user = nanos(pc.diff_user_us_per_block);
                let block = pc.diff_block_kb << 10;
                let other = Sequential::side_by_side(&opens, pc.diffed_bytes, block, user);
                vec![dd, machine.spawn(0, other)]
            }
        };
        machine.run();
        Ok(processes.into_iter().map(|process| machine.outcome(process).clone()).collect())
    }
}

impl Workload {
    /// `grep -r` of one tree and `diff -r` of it and another.
    fn walks(&self, machine: &mut Machine) -> [Walk; 2] {
        /// Any seed will do, if both trees have the same.
        const SEED: u64 = 2613;
        let [first, second] = self.tree_offsets_gb.map(|gb| (gb * 1e9) as u64 / 4096 * 4096);
        let original = Tree::add(machine, &self.tree, SEED, first);
        let changed = Tree::add(machine, &self.tree, SEED, second);
        let mut walk = |trees: &[&Tree], spec: &WalkSpec| {
            Walk::new(machine, trees, spec.user_us_per_kib * 1e3, nanos(spec.file_us))
        };
        let by_name = [&original, &changed].map(|tree| tree.reordered(&self.tree, 1));
        [walk(&[&original], &self.grep), walk(&[&by_name[0], &by_name[1]], &self.diff)]
    }
}

fn block_bytes(block: &str) -> u64 {
    block.trim_end_matches('k').parse::<u64>().unwrap_or(4) << 10
}

fn nanos(us: f64) -> u64 {
    (us * 1e3) as u64
}

impl Row {
    fn is_stock(&self) -> bool {
        self.record.policy == "stock"
    }

    /// Whether an unknown was chosen to match this figure: for stock alone, all but most of its waits, the processor
    /// seconds of grep and diff, and the PC's dd beside another and that one's user seconds; for adaptive-100, whose
    /// windows come one at a time, how long one alone takes; and the processor seconds that tell the size of
    /// adaptive-102's blocks.
    fn is_calibrated(&self, what: &str) -> bool {
        let is_dd = self.record.workload.starts_with("dd");
        let is_window_alone = self.record.policy == "adaptive-100" && self.record.load == "single";
        let has_other_blocks = self.record.policy == "adaptive-102" && self.record.block == "32k";
        (is_window_alone && what == "elapsed")
            || (has_other_blocks && is_dd && ["system", "user"].contains(&what))
            || self.is_stock()
                && match Load::of(&self.record) {
                    Load::Single => what != "waits" || self.record.block == "4k",
                    Load::Parallel => !is_dd && ["system", "user"].contains(&what),
                    Load::PcSingle => true,
                    Load::PcPair => what == if is_dd { "elapsed" } else { "user" },
                }
    }

    fn real(&self) -> f64 {
        (self.outcome.ended - self.outcome.started) as f64 * 1e-9
    }

    /// The published values of the row, with the simulated ones.
    fn values(&self) -> [(&'static str, &'static str, Option<f64>, f64); 4] {
        let Row { record, outcome } = self;
        let seconds = |ns: u64| ns as f64 * 1e-9;
        [
            ("elapsed", "s", Some(record.real_seconds), self.real()),
            ("system", "s", record.system_seconds, seconds(outcome.cpu - outcome.user)),
            ("user", "s", record.user_seconds, seconds(outcome.user)),
            ("waits", "count", record.voluntary_cs, outcome.stalls as f64),
        ]
    }
}

fn figures_of(row: &Row) -> Vec<Figure> {
    let Record { load, block, workload, policy, .. } = &row.record;
    let figure = |(what, unit, published, simulated)| Figure {
        row: format!("{load} {block} {workload}: {what}"),
        policy: policy.clone(),
        unit,
        published,
        simulated,
        kind: if row.is_calibrated(what) { Kind::Calibrated } else { Kind::Prediction },
    };
    row.values()
        .into_iter()
        .filter(|(_, _, published, _)| published.is_some())
        .map(figure)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table with files of a tenth of their size, and a tenth of the files.
    fn scaled() -> Table {
        const TENTH: u64 = 10;
        let text = include_str!("../../../experiments/copies-2005.toml");
        let mut experiment: Experiment<Workload> = Experiment::parse(NAME, text).expect("valid");
        let workload = &mut experiment.workload;
        workload.file_bytes /= TENTH;
        workload.tree = workload.tree.scaled_down(TENTH as usize);
        for bytes in [
            &mut workload.pc.image_bytes,
            &mut workload.pc.beside_bytes,
            &mut workload.pc.diffed_bytes,
        ] {
            *bytes /= TENTH;
        }
        let text = include_str!("../../../experiments/copies-2005.csv");
        let mut records: Vec<Record> = figures(NAME, text).expect("valid");
        for record in &mut records {
            for seconds in [&mut record.system_seconds, &mut record.user_seconds] {
                *seconds = seconds.map(|seconds| seconds / TENTH as f64);
            }
            record.real_seconds /= TENTH as f64;
        }
        reproduce(&experiment, records, &mut |_| ()).expect("it runs")
    }

    #[test]
    fn what_the_table_shows_holds_at_a_tenth_of_the_size() {
        let table = scaled();
        let verdict = |claim: &str| {
            let verdict = table.verdicts.iter().find(|verdict| verdict.claim.starts_with(claim));
            verdict.expect(claim)
        };
        let fails = |claim: &str, part: &str| verdict(claim).claim.contains(part);
        assert!(!fails("elapsed and system seconds of stock", " single "));
        for block in ["4k", "32k"] {
            assert!(!fails("elapsed changes", &format!(" dd {block} adaptive-1")));
            assert!(verdict(&format!("dd {block}: fewest waits")).holds);
        }
        assert!(!fails("elapsed changes", "pc dd beside diff (731596800 bytes), 2M for 128K"));
    }
}
