//! The policies by the names that users type.

use historical::{AdaptiveV16, InUserSpace, Linux6};
use readahead::adaptive::Limits;
use readahead::{Adaptive, Policy};

/// Open files whose state a historical policy remembers.
const OPEN_FILES: usize = 4096;

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
        match self {
            PolicyName::Adaptive => Box::new(Adaptive::new(limits())),
            PolicyName::AdaptiveV16 => {
                Box::new(InUserSpace::new(AdaptiveV16::new(OPEN_FILES, Default::default())))
            }
            PolicyName::Linux6 => Box::new(InUserSpace::new(Linux6::new(OPEN_FILES))),
        }
    }
}

/// What is read ahead fits the memory there is, and a densely read region half of that.
fn limits() -> Limits {
    let ahead_bytes = live::memory::read_ahead_budget();
    let limits = Limits::default();
    Limits {
        plan_bytes: limits.plan_bytes.min(ahead_bytes),
        region_bytes: limits.region_bytes.min(ahead_bytes / 2),
        ahead_bytes,
        ..limits
    }
}
