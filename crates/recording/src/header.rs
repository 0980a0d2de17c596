//! What a recording says of itself: enough to build the same controller again.

use controller::Options;
use readahead::adaptive::Limits;
use readahead::{Adaptive, Policy, by_name};
use serde::{Deserialize, Serialize};

/// The first block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the bowwave that recorded.
    pub bowwave: String,
    /// Release of the kernel that it ran on.
    pub kernel: String,
    /// The day, as YYYY-MM-DD (UTC).
    pub date: String,
    /// The processor's architecture, as Rust names it: the mathematical library may round otherwise on another.
    pub architecture: String,
    /// What the controller was told to manage.
    pub options: Options,
    /// The policy that decided.
    pub policy: PolicySpec,
}

impl Header {
    /// That of a recording by this version of bowwave.
    pub fn new(kernel: String, date: String, options: Options, policy: PolicySpec) -> Self {
        Header {
            bowwave: env!("CARGO_PKG_VERSION").to_owned(),
            kernel,
            date,
            architecture: std::env::consts::ARCH.to_owned(),
            options,
            policy,
        }
    }
}

/// A policy, described so that it can be built again as it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PolicySpec {
    /// Bowwave's own.
    Adaptive(Limits),
    /// Any other, by the name that [`by_name`] knows it by.
    Named {
        /// With parameters, where it has any.
        name: String,
        /// Open files that it follows.
        open_files: u32,
    },
}

/// This bowwave cannot build the policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this bowwave has no policy {0}; take the version that recorded")]
pub struct UnknownPolicy(String);

/// A policy for more files would take more than 400 MiB; the live engine asks for 4096 at most.
const MOST_FILES: usize = 1 << 15;

/// A policy plans for more memory nowhere.
const MOST_BYTES: u64 = 1 << 40;

impl PolicySpec {
    /// The policy, having seen nothing yet.
    ///
    /// # Errors
    /// There is no such policy, or its limits are none that bowwave sets.
    pub fn build(&self) -> Result<Box<dyn Policy>, UnknownPolicy> {
        let unknown = || UnknownPolicy(self.to_string());
        match self {
            PolicySpec::Adaptive(limits) => {
                let bytes = [limits.plan_bytes, limits.region_bytes, limits.ahead_bytes];
                let is_sane = limits.files <= MOST_FILES && bytes.iter().all(|b| *b <= MOST_BYTES);
                is_sane
                    .then(|| Box::new(Adaptive::new(*limits)) as Box<dyn Policy>)
                    .ok_or_else(unknown)
            }
            PolicySpec::Named { name, open_files } => {
                let open_files = *open_files as usize;
                let policy = (open_files <= MOST_FILES).then(|| by_name(name, open_files));
                policy.flatten().ok_or_else(unknown)
            }
        }
    }
}

impl std::fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PolicySpec::Adaptive(limits) => write!(
                f,
                "adaptive (files {}, plan_bytes {}, region_bytes {}, ahead_bytes {})",
                limits.files, limits.plan_bytes, limits.region_bytes, limits.ahead_bytes
            ),
            PolicySpec::Named { name, open_files } => {
                write!(f, "{name:?} (open_files {open_files})")
            }
        }
    }
}
