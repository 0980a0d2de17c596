//! The machine of an experiment file: what it may be, and what it is made of.

use readahead::{Adaptive, Linux6, PAGE_BYTES, Page, Policy, adaptive::Limits};
use serde::Deserialize;

use super::experiment::ExperimentError;
use crate::{CpuCosts, Machine, Parts, REACTION_NS, Reclaim, Worst};

/// Open files whose state a policy remembers.
const OPEN_FILES: usize = 8192;

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

impl MachineSpec {
    /// Whether a machine of these numbers can run: every way to one leads through here.
    fn check(&self) -> Result<(), ExperimentError> {
        /// From a kilobyte to a petabyte, as of the devices themselves.
        const GB: (f64, f64) = (1e-6, 1e6);
        /// Less than a megabyte is less than any kernel of these policies runs in; a terabyte takes the
        /// simulator 8 GB.
        const MEMORY_MB: (f64, f64) = (1.0, 1e6);
        /// Commands at once: as many as an NVMe queue holds.
        const DEPTH: (f64, f64) = (1.0, 65_536.0);
        /// A gigabyte, of a window and of a request; this is a page at least.
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
            ("cpu.decision_us", cpu.decision_us, US),
            ("cpu.wake_us", cpu.wake_us, US),
        ];
        for (setting, value, (least, most)) in settings {
            if !(least..=most).contains(&value) {
                return Err(ExperimentError::Impossible { setting, value, least, most });
            }
        }
        Ok(())
    }

    /// The machine under a policy; `adaptive` runs on top of today's kernel, `adaptive@KERNEL` on
    /// top of another.
    pub(crate) fn build(&self, policy: &str) -> Result<Machine, ExperimentError> {
        Ok(Machine::new(self.parts(policy)?))
    }

    /// What that machine is made of, for tables that exchange some of it.
    pub(super) fn parts(&self, policy: &str) -> Result<Parts, ExperimentError> {
        // Before memory is divided by a share.
        self.check()?;
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
        self.check()?;
        let spec = device::load(&self.device)?;
        let elevator = iosched::by_name(&self.elevator, (self.request_kb * 2) as u32)
            .ok_or_else(|| ExperimentError::Elevator(self.elevator.clone()))?;
        Ok(Parts {
            memory_pages: self.memory_pages(),
            kernel,
            user: user.map(|user| (user, REACTION_NS)),
            kernel_window: (self.readahead_kb * 1024 / PAGE_BYTES) as u32,
            elevator,
            device: spec.build((self.device_gb * 1e9) as u64),
            cost: spec.cost(),
            device_depth: self.device_depth,
            request_pages: self.request_kb * 1024 / PAGE_BYTES,
            reclaim: match self.reclaim {
                ReclaimName::Linux26 => Reclaim::Linux26,
                ReclaimName::UseOnceFirst => Reclaim::UseOnceFirst,
            },
            cpu: self.cpu.costs(),
        })
    }

    /// The same under today's kernel's and, on top of it, the one that does all the harm it may to these
    /// accesses to each file, with as many pages at once as `adaptive` may ask for.
    pub(crate) fn parts_with_worst(
        &self,
        accesses: &[Vec<Page>],
    ) -> Result<Parts, ExperimentError> {
        self.check()?;
        let worst = Worst::new(accesses, self.memory_pages() / self.ahead_share);
        self.parts_with(Box::new(Linux6::new(OPEN_FILES)), Some(Box::new(worst)))
    }

    fn policies(&self, policy: &str) -> Result<Policies, ExperimentError> {
        let known = |name: &str| readahead::by_name(name, OPEN_FILES).ok_or_else(|| unknown(name));
        let kernel = match policy.split_once('@') {
            // Bowwave's is no kernel's policy.
            Some(("adaptive", kernel)) if kernel != "adaptive" => kernel,
            _ if policy == "adaptive" => "linux-6",
            _ => return Ok((known(policy)?, None)),
        };
        let memory = (self.memory_mb * 1e6) as u64;
        let ahead_bytes = memory / self.ahead_share;
        let limits = Limits {
            plan_bytes: ahead_bytes,
            region_bytes: ahead_bytes / 2,
            ahead_bytes,
            ..Limits::default()
        };
        Ok((known(kernel)?, Some(Box::new(Adaptive::new(limits)))))
    }
}

/// Why there is no such policy.
fn unknown(given: &str) -> ExperimentError {
    let name = given.split_once(':').map_or(given, |(name, _)| name);
    match readahead::parameters_of(name) {
        Some(parameters) => ExperimentError::Parameters {
            given: given.to_owned(),
            takes: format!("{name} takes {parameters}"),
        },
        None => ExperimentError::Policy(given.to_owned()),
    }
}

/// The kernel's policy, and the one on top of it.
type Policies = (Box<dyn Policy>, Option<Box<dyn Policy>>);

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = include_str!("../replay/machine.toml");

    #[test]
    fn a_machine_that_cannot_be_is_refused_with_the_setting_and_what_it_may_be() {
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
