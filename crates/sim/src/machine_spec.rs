//! A machine as described in a TOML file: its settings, their ranges, and the parts built from them.

use controller::MemoryStats;
use historical::{KernelPolicy, Linux6};
use readahead::adaptive::{Limits, Rules};
use readahead::{Adaptive, PAGE_BYTES, Page};
use serde::Deserialize;

use crate::cache::Reclaim;
use crate::costs::CpuCosts;
use crate::machine::{Machine, Parts};
use crate::on_top::{Bowwave, OnTop};
use crate::worst::Worst;

/// Open files whose state a policy remembers.
const OPEN_FILES: usize = 8192;

/// Why a machine cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// A setting is out of range.
    #[error(
        "no machine can be simulated with that: {setting} is {value} and must be {least} to {most}"
    )]
    Impossible {
        /// The name in the description.
        setting: &'static str,
        /// The value.
        value: f64,
        /// The least value.
        least: f64,
        /// The largest value.
        most: f64,
    },
    /// The device does not exist.
    #[error(transparent)]
    Device(#[from] device::SpecError),
    /// The policy does not exist.
    #[error(
        "there is no policy {0:?}; those there are: {names}, adaptive, adaptive-2005:RATIO, adaptive-v16:KEY=VALUE,..., adaptive@KERNEL, and for traces oracle and worst",
        names = historical::NAMES.join(", ")
    )]
    Policy(String),
    /// The policy does not take these parameters.
    #[error("{given:?} has a parameter, or a value of one, that there is not; {takes}")]
    Parameters {
        /// The policy with them.
        given: String,
        /// What it takes.
        takes: String,
    },
    /// The elevator does not exist.
    #[error("there is no elevator {0:?}; those there are: {names}", names = iosched::NAMES.join(", "))]
    Elevator(String),
}

/// The machine, in the units people use.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineSpec {
    /// A device of the catalogue, or the path of a TOML file.
    pub device: String,
    /// The device itself, instead of its name.
    #[serde(skip)]
    pub device_spec: Option<device::Spec>,
    /// Which pages bowwave drops behind streams; none without rules. With rules, bowwave knows how much memory there
    /// is.
    #[serde(skip)]
    pub behind: Option<controller::behind::Rules>,
    /// Capacity of the device.
    pub device_gb: f64,
    /// Commands that the device takes at once.
    pub device_depth: usize,
    /// Largest request.
    pub request_kb: u64,
    /// Memory for the page cache.
    pub memory_mb: f64,
    /// One page in this many of it is `adaptive`'s budget: as on the live system, an eighth of a machine's memory, or a
    /// quarter of a memory cgroup's limit.
    #[serde(default = "a_machines_share")]
    pub ahead_share: u64,
    /// Largest read-ahead of the kernel's policy.
    pub readahead_kb: u64,
    /// A name that [`iosched::by_name`] knows.
    pub elevator: String,
    /// Which pages are evicted when memory runs short.
    pub reclaim: ReclaimName,
    /// What the processor's work costs.
    pub cpu: CpuSpec,
}

/// The default of `ahead_share`: a machine's.
fn a_machines_share() -> u64 {
    8
}

/// The names of [`Reclaim`] in a description.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReclaimName {
    #[serde(rename = "linux-2.6")]
    Linux26,
    UseOnceFirst,
    WholeFolios,
}

/// [`CpuCosts`] in microseconds; what is not given costs nothing.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CpuSpec {
    pub call_us: f64,
    pub page_us: f64,
    pub page_write_us: f64,
    pub fault_us: f64,
    pub fill_us: f64,
    pub decision_us: f64,
    pub wake_us: f64,
}

impl CpuSpec {
    fn costs(&self) -> CpuCosts {
        let ns = |us: f64| (us * 1000.0).round() as u64;
        CpuCosts {
            call: ns(self.call_us),
            page: ns(self.page_us),
            page_write: ns(self.page_write_us),
            fault: ns(self.fault_us),
            fill: ns(self.fill_us),
            decision: ns(self.decision_us),
            wake: ns(self.wake_us),
        }
    }
}

impl MachineSpec {
    /// Checks that a machine with these numbers can run. Every machine is checked here.
    fn check(&self) -> Result<(), MachineError> {
        /// From a kilobyte to a petabyte, as of the devices themselves.
        const GB: (f64, f64) = (1e-6, 1e6);
        /// None of these kernels runs in less than a megabyte; a terabyte takes the simulator 8 GB.
        const MEMORY_MB: (f64, f64) = (1.0, 1e6);
        /// Commands at once: as many as an NVMe queue holds.
        const DEPTH: (f64, f64) = (1.0, 65_536.0);
        /// Largest window or request: a gigabyte. The least is a page.
        const MOST_KB: f64 = 1_048_576.0;
        const REQUEST_KB: (f64, f64) = (4.0, MOST_KB);
        const READAHEAD_KB: (f64, f64) = (0.0, MOST_KB);
        /// All of memory, or hardly any.
        const SHARE: (f64, f64) = (1.0, 1e6);
        /// A second of the processor for one step.
        const US: (f64, f64) = (0.0, 1e6);
        let cpu = &self.cpu;
        let settings = [
            ("device_gb", self.device_gb, GB),
            ("device_depth", self.device_depth as f64, DEPTH),
            ("request_kb", self.request_kb as f64, REQUEST_KB),
            ("memory_mb", self.memory_mb, MEMORY_MB),
            ("ahead_share", self.ahead_share as f64, SHARE),
            ("readahead_kb", self.readahead_kb as f64, READAHEAD_KB),
            ("cpu.call_us", cpu.call_us, US),
            ("cpu.page_us", cpu.page_us, US),
            ("cpu.page_write_us", cpu.page_write_us, US),
            ("cpu.fault_us", cpu.fault_us, US),
            ("cpu.fill_us", cpu.fill_us, US),
            ("cpu.decision_us", cpu.decision_us, US),
            ("cpu.wake_us", cpu.wake_us, US),
        ];
        for (setting, value, (least, most)) in settings {
            if !(least..=most).contains(&value) {
                return Err(MachineError::Impossible { setting, value, least, most });
            }
        }
        Ok(())
    }

    /// The machine under a policy. `adaptive` runs on top of today's kernel, `adaptive@KERNEL` on top of another.
    pub fn build(&self, policy: &str) -> Result<Machine, MachineError> {
        Ok(Machine::new(self.parts(policy)?))
    }

    /// The parts of that machine, for tables that exchange some of them.
    pub fn parts(&self, policy: &str) -> Result<Parts, MachineError> {
        // Check before memory is divided by a share.
        self.check()?;
        let (kernel, on_top) = self.policies(policy)?;
        self.parts_with(kernel, on_top)
    }

    /// Frames of its memory.
    pub fn memory_pages(&self) -> u64 {
        (self.memory_mb * 1e6 / PAGE_BYTES as f64) as u64
    }

    /// The same under an unnamed kernel's policy, perhaps with a policy on top of it.
    pub fn parts_with(
        &self,
        kernel: Box<dyn KernelPolicy>,
        on_top: Option<OnTop>,
    ) -> Result<Parts, MachineError> {
        self.check()?;
        let spec = match &self.device_spec {
            Some(spec) => spec.clone(),
            None => device::load(&self.device)?,
        };
        let elevator = iosched::by_name(&self.elevator, (self.request_kb * 2) as u32)
            .ok_or_else(|| MachineError::Elevator(self.elevator.clone()))?;
        Ok(Parts {
            memory_pages: self.memory_pages(),
            kernel,
            on_top,
            kernel_window: (self.readahead_kb * 1024 / PAGE_BYTES) as u32,
            elevator,
            device: spec.build((self.device_gb * 1e9) as u64),
            cost: spec.cost(),
            device_depth: self.device_depth,
            request_pages: self.request_kb * 1024 / PAGE_BYTES,
            reclaim: match self.reclaim {
                ReclaimName::Linux26 => Reclaim::Linux26,
                ReclaimName::UseOnceFirst => Reclaim::UseOnceFirst,
                ReclaimName::WholeFolios => Reclaim::WholeFolios,
            },
            cpu: self.cpu.costs(),
        })
    }

    /// The machine under today's kernel's policy. On top of it runs the policy that does the most harm to these
    /// accesses to each file; it may request as many pages at once as `adaptive`.
    pub fn build_worst(&self, accesses: &[Vec<Page>]) -> Result<Machine, MachineError> {
        self.check()?;
        let worst = Worst::new(accesses, self.memory_pages() / self.ahead_share);
        let kernel = Box::new(self.linux6());
        Ok(Machine::new(self.parts_with(kernel, Some(OnTop::Worst(worst)))?))
    }

    /// The machine under today's kernel's policy and `adaptive` with these rules.
    pub fn build_with_rules(&self, rules: Rules) -> Result<Machine, MachineError> {
        self.check()?;
        let kernel = Box::new(self.linux6());
        Ok(Machine::new(self.parts_with(kernel, Some(self.adaptive(rules)))?))
    }

    /// Today's kernel's policy, which knows the device's largest request.
    fn linux6(&self) -> Linux6 {
        let pages = self.request_kb * 1024 / PAGE_BYTES;
        Linux6::new(OPEN_FILES).with_largest_request(pages as u32)
    }

    fn policies(&self, policy: &str) -> Result<Policies, MachineError> {
        let known = |name: &str| match name {
            "linux-6" => Ok(Box::new(self.linux6()) as Box<dyn KernelPolicy>),
            _ => historical::by_name(name, OPEN_FILES).ok_or_else(|| unknown(name)),
        };
        let kernel = match policy.split_once('@') {
            // Bowwave's policy is not a kernel's.
            Some(("adaptive", kernel)) if kernel != "adaptive" => kernel,
            _ if policy == "adaptive" => "linux-6",
            _ => return Ok((known(policy)?, None)),
        };
        Ok((known(kernel)?, Some(self.adaptive(Rules::default()))))
    }

    /// Bowwave's policy with these rules, on top of the kernel's.
    fn adaptive(&self, rules: Rules) -> OnTop {
        let memory = (self.memory_mb * 1e6) as u64;
        let ahead_bytes = memory / self.ahead_share;
        let limits = Limits {
            plan_bytes: ahead_bytes,
            region_bytes: ahead_bytes / 2,
            ahead_bytes,
            ..Limits::default()
        };
        let policy = Box::new(Adaptive::with_rules(limits, rules));
        // Several readers together may have two and a half budgets ahead.
        let mut bowwave = Bowwave::new(policy, ahead_bytes.saturating_mul(5) / 2);
        if self.behind.is_some() {
            bowwave.options.behind.clone_from(&self.behind);
            bowwave.memory =
                MemoryStats::Machine { available_bytes: Some(memory), own_cgroup_bytes: None };
        }
        OnTop::Bowwave(bowwave)
    }
}

/// The error for an unknown policy.
fn unknown(given: &str) -> MachineError {
    let name = given.split_once(':').map_or(given, |(name, _)| name);
    let parameters = match name {
        "adaptive" => Some("none"),
        _ => historical::parameters_of(name),
    };
    match parameters {
        Some(parameters) => MachineError::Parameters {
            given: given.to_owned(),
            takes: format!("{name} takes {parameters}"),
        },
        None => MachineError::Policy(given.to_owned()),
    }
}

/// The kernel's policy, and the one on top of it.
type Policies = (Box<dyn KernelPolicy>, Option<OnTop>);

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = include_str!("replay/machine.toml");

    #[test]
    fn an_impossible_machine_is_refused_with_the_setting_and_its_range() {
        let error = |was: &str, is: &str| {
            let text = WHOLE.replace(was, is);
            assert_ne!(text, WHOLE, "{was}");
            let spec: MachineSpec = toml::from_str(&text).expect("each is a number");
            spec.build("adaptive").err().expect(is).to_string()
        };
        for (was, is, allowed) in [
            ("device_depth = 32", "device_depth = 0", "device_depth is 0 and must be 1 to 65536"),
            ("request_kb = 1280", "request_kb = 0", "request_kb is 0 and must be 4 to 1048576"),
            ("memory_mb = 1000.0", "memory_mb = 0.0", "memory_mb is 0 and must be 1 to 1000000"),
            ("memory_mb = 1000.0", "memory_mb = nan", "memory_mb is NaN and must be 1 to 1000000"),
            ("device_gb = 4000.0", "device_gb = -1.0", "device_gb is -1 and must be 0.000001 to"),
            ("readahead_kb = 128", "readahead_kb = 1048577", "readahead_kb is 1048577 and must be"),
            ("wake_us = 5.0", "wake_us = -5.0", "cpu.wake_us is -5 and must be 0 to 1000000"),
            ("elevator = ", "ahead_share = 0\nelevator = ", "ahead_share is 0 and must be 1 to"),
        ] {
            let error = error(was, is);
            assert!(error.contains(allowed), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
