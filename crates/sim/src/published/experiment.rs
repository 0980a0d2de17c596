//! An experiment file: the machine a table was measured on, the workload, the assumptions.

use std::collections::BTreeMap;

use readahead::{Adaptive, DeviceCost, PAGE_BYTES, Policy, adaptive::Limits};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::table::Table;
use crate::{CpuCosts, Machine, Parts, REACTION_NS, Reclaim};

/// Open files whose state a policy remembers.
pub(crate) const OPEN_FILES: usize = 8192;

/// What is wrong with an experiment.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The description is not valid.
    #[error("the experiment {name} is not valid: {error}")]
    Malformed {
        /// The experiment.
        name: &'static str,
        /// Where and why.
        error: Box<toml::de::Error>,
    },
    /// The published figures are not valid.
    #[error("the published figures of {name} are not valid: {error}")]
    Figures {
        /// The experiment.
        name: &'static str,
        /// Where and why.
        error: csv::Error,
    },
    /// It names a device there is not.
    #[error(transparent)]
    Device(#[from] device::SpecError),
    /// It names a policy there is not.
    #[error(
        "there is no policy {0:?}; those there are: {names}, adaptive-2005:RATIO, adaptive-v16:KEY=VALUE,..., and for traces oracle and worst",
        names = readahead::NAMES.join(", ")
    )]
    Policy(String),
    /// A policy is to know a trace that is too long for that.
    #[error(
        "the trace reads more than {most} pages, which oracle and worst cannot know; cut it into parts"
    )]
    TooLongToKnow {
        /// Pages that can be known.
        most: u64,
    },
    /// It names an elevator there is not.
    #[error("there is no elevator {0:?}; those there are: {names}", names = iosched::NAMES.join(", "))]
    Elevator(String),
}

/// An experiment with a workload of its own kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Experiment<W> {
    pub(super) title: String,
    pub(super) assumptions: Vec<String>,
    pub(super) machine: MachineSpec,
    /// Policies by the columns' names.
    #[serde(default)]
    pub(super) policies: BTreeMap<String, String>,
    pub(super) workload: W,
}

/// The machine, in the units people use.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MachineSpec {
    pub(crate) device: String,
    /// Capacity of the device.
    pub(crate) device_gb: f64,
    /// Commands the device takes at once.
    pub(crate) device_depth: usize,
    /// Largest request.
    pub(crate) request_kb: u64,
    /// Memory for the page cache.
    pub(crate) memory_mb: f64,
    /// One page in so many of it is `adaptive`'s budget: as on the live system, an eighth of a machine's
    /// memory, or a quarter of a memory cgroup's limit.
    #[serde(default = "a_machines_share")]
    pub(crate) ahead_share: u64,
    /// Largest read-ahead of the kernel's policy.
    pub(crate) readahead_kb: u64,
    pub(crate) elevator: String,
    pub(crate) reclaim: ReclaimName,
    pub(crate) cpu: CpuSpec,
}

fn a_machines_share() -> u64 {
    8
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReclaimName {
    #[serde(rename = "linux-2.6")]
    Linux26,
    UseOnceFirst,
}

/// Costs of the processor in microseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CpuSpec {
    pub(crate) call_us: f64,
    pub(crate) page_us: f64,
    pub(crate) page_write_us: f64,
    pub(crate) fault_us: f64,
    pub(crate) decision_us: f64,
    pub(crate) wake_us: f64,
}

impl CpuSpec {
    fn costs(&self) -> CpuCosts {
        let ns = |us: f64| (us * 1000.0).round() as u64;
        CpuCosts {
            call: ns(self.call_us),
            page: ns(self.page_us),
            page_write: ns(self.page_write_us),
            fault: ns(self.fault_us),
            decision: ns(self.decision_us),
            wake: ns(self.wake_us),
        }
    }
}

impl<W: DeserializeOwned> Experiment<W> {
    /// Reads an experiment file.
    pub(super) fn parse(name: &'static str, text: &str) -> Result<Self, ExperimentError> {
        toml::from_str(text)
            .map_err(|error| ExperimentError::Malformed { name, error: Box::new(error) })
    }

    /// Its table, with nothing in it yet.
    pub(super) fn table(&self, name: &'static str) -> Table {
        Table {
            name,
            title: self.title.clone(),
            assumptions: self.assumptions.clone(),
            figures: Vec::new(),
            verdicts: Vec::new(),
            plots: Vec::new(),
        }
    }

    /// The machine under the policy that a column's name stands for.
    pub(super) fn build(&self, column: &str) -> Result<Machine, ExperimentError> {
        self.machine.build(self.policy(column))
    }

    /// The policy that a column's name stands for.
    pub(super) fn policy<'a>(&'a self, column: &'a str) -> &'a str {
        self.policies.get(column).map_or(column, String::as_str)
    }
}

impl MachineSpec {
    /// The machine under a policy; `adaptive` runs on top of today's kernel, `adaptive@KERNEL` on
    /// top of another.
    pub(crate) fn build(&self, policy: &str) -> Result<Machine, ExperimentError> {
        Ok(Machine::new(self.parts(policy)?))
    }

    /// What that machine is made of, for tables that exchange some of it.
    pub(super) fn parts(&self, policy: &str) -> Result<Parts, ExperimentError> {
        let (kernel, user) = self.policies(policy)?;
        self.parts_with(kernel, user)
    }

    /// Frames of its memory.
    pub(crate) fn memory_pages(&self) -> u64 {
        (self.memory_mb * 1e6 / PAGE_BYTES as f64) as u64
    }

    /// The same under a kernel's policy, and perhaps one on top of it, that have no name.
    pub(crate) fn parts_with(
        &self,
        kernel: Box<dyn Policy>,
        user: Option<Box<dyn Policy>>,
    ) -> Result<Parts, ExperimentError> {
        let spec = device::load(&self.device)?;
        let cost = spec.cost();
        let elevator = iosched::by_name(&self.elevator, (self.request_kb * 2) as u32)
            .ok_or_else(|| ExperimentError::Elevator(self.elevator.clone()))?;
        Ok(Parts {
            memory_pages: self.memory_pages(),
            kernel,
            user: user.map(|user| (user, REACTION_NS)),
            kernel_window: (self.readahead_kb * 1024 / PAGE_BYTES) as u32,
            elevator,
            device: spec.build((self.device_gb * 1e9) as u64),
            cost: DeviceCost {
                latency_s: cost.latency_s,
                bandwidth: cost.bandwidth,
                concurrency: cost.concurrency,
            },
            device_depth: self.device_depth,
            request_pages: self.request_kb * 1024 / PAGE_BYTES,
            reclaim: match self.reclaim {
                ReclaimName::Linux26 => Reclaim::Linux26,
                ReclaimName::UseOnceFirst => Reclaim::UseOnceFirst,
            },
            cpu: self.cpu.costs(),
        })
    }

    fn policies(&self, policy: &str) -> Result<Policies, ExperimentError> {
        let known = |name: &str| {
            readahead::by_name(name, OPEN_FILES)
                .ok_or_else(|| ExperimentError::Policy(name.to_owned()))
        };
        let kernel = match policy.split_once('@') {
            // Bowwave's is no kernel's policy.
            Some(("adaptive", kernel)) if kernel != "adaptive" => kernel,
            _ if policy == "adaptive" => "linux-6",
            _ => return Ok((known(policy)?, None)),
        };
        let memory = (self.memory_mb * 1e6) as u64;
        let ahead_bytes = memory / self.ahead_share.max(1);
        let limits = Limits {
            plan_bytes: ahead_bytes,
            region_bytes: ahead_bytes / 2,
            ahead_bytes,
            ..Limits::default()
        };
        Ok((known(kernel)?, Some(Box::new(Adaptive::new(limits)))))
    }
}

/// The kernel's policy, and the one on top of it.
type Policies = (Box<dyn Policy>, Option<Box<dyn Policy>>);

/// Reads published figures: a line a record, `#` before remarks.
pub(super) fn figures<R: DeserializeOwned>(
    name: &'static str,
    text: &str,
) -> Result<Vec<R>, ExperimentError> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let records: Result<Vec<R>, csv::Error> = reader.deserialize().collect();
    records.map_err(|error| ExperimentError::Figures { name, error })
}

/// Reads any text as an experiment file and as published figures.
#[cfg(any(test, fuzzing))]
pub(super) fn read_any(text: &str) {
    if let Ok(experiment) = Experiment::<toml::Table>::parse("any", text) {
        let _ = (experiment.policy("any"), experiment.machine.cpu.costs());
    }
    let _ = figures::<BTreeMap<String, String>>("any", text);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WHOLE: &str = include_str!("../../../../experiments/desktop-2006.toml");

    #[test]
    fn an_experiment_that_is_cut_off_or_damaged_is_one_error_with_its_line() {
        let lines = WHOLE.lines().count();
        let error = |text: &str| {
            let experiment = Experiment::<toml::Table>::parse("desktop-2006", text);
            experiment.map(drop).expect_err("it is none").to_string()
        };
        let cut = error(&WHOLE[..WHOLE.rfind('=').expect("a setting")]);
        assert!(cut.starts_with("the experiment desktop-2006 is not valid: "), "{cut}");
        assert!(cut.contains(&format!("line {lines}")), "{cut}");
        let unknown = error(&format!("{WHOLE}\nx y\n"));
        assert!(unknown.contains(&format!("line {}", lines + 2)), "{unknown}");
    }

    #[test]
    fn published_figures_that_are_damaged_are_one_error_with_their_line() {
        let figures = figures::<(String, f64)>("table", "row,seconds\none,1.5\ntwo,many\n");
        let error = figures.expect_err("no number").to_string();
        assert!(
            error.starts_with("the published figures of table") && error.contains("line: 3"),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_an_experiment_or_an_error(text in any::<String>(), at in 0..WHOLE.len()) {
            read_any(&text);
            let damaged: String = WHOLE.chars().take(at).chain(text.chars()).chain(WHOLE.chars().skip(at)).collect();
            read_any(&damaged);
        }
    }
}
