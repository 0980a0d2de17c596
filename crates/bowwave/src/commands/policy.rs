//! The policies by the names that users type.

use linux::cgroup::Place;
use linux::meminfo;
use readahead::Policy;
use readahead::adaptive::Limits;
use recording::PolicySpec;

/// Open files whose state a historical policy remembers.
const OPEN_FILES: u32 = 4096;

#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
pub(crate) enum PolicyName {
    /// Bowwave's own.
    #[default]
    Adaptive,
    /// The adaptive read-ahead proposed for Linux in 2006.
    AdaptiveV16,
    /// What the kernel does by itself, from user space; for comparison.
    #[value(name = "linux-6")]
    Linux6,
}

impl PolicyName {
    pub(crate) fn build(self) -> Box<dyn Policy> {
        self.spec().build().expect("each has its policy, with limits that memory bears")
    }

    /// The policy as a recording describes it.
    pub(crate) fn spec(self) -> PolicySpec {
        let named = |name: &str| PolicySpec::Named { name: name.into(), open_files: OPEN_FILES };
        match self {
            PolicyName::Adaptive => PolicySpec::Adaptive(limits()),
            PolicyName::AdaptiveV16 => named("adaptive-v16"),
            PolicyName::Linux6 => named("linux-6"),
        }
    }
}

/// What is read ahead fits the memory there is, and a densely read region half of that.
fn limits() -> Limits {
    let ahead_bytes =
        controller::budget_bytes(meminfo::available_bytes(), Place::of("self").file_room());
    let limits = Limits::default();
    Limits {
        plan_bytes: limits.plan_bytes.min(ahead_bytes),
        region_bytes: limits.region_bytes.min(ahead_bytes / 2),
        ahead_bytes,
        ..limits
    }
}
