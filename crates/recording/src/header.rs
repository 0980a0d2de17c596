//! What a recording tells about itself: enough to build the same controller again.

use controller::Options;
use readahead::adaptive::Limits;
use readahead::{Adaptive, Policy};
use serde::{Deserialize, Serialize};

/// The contents of the first block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the bowwave that recorded.
    pub bowwave: String,
    /// Release of the kernel it ran on.
    pub kernel: String,
    /// The date, as YYYY-MM-DD (UTC).
    pub date: String,
    /// The processor's architecture, as Rust names it. Mathematical functions may round differently
    /// on another one.
    pub architecture: String,
    /// What the controller had to manage.
    pub options: Options,
    /// The limits of the policy.
    pub limits: Limits,
}

impl Header {
    /// The header of a recording by this version of bowwave.
    pub fn new(kernel: String, date: String, options: Options, limits: Limits) -> Self {
        Header {
            bowwave: env!("CARGO_PKG_VERSION").to_owned(),
            kernel,
            date,
            architecture: std::env::consts::ARCH.to_owned(),
            options,
            limits,
        }
    }
}

/// The limits are not ones that bowwave sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its policy has limits that no bowwave sets ({0:?}): the recording was changed")]
pub struct OddLimits(Limits);

/// A policy for more files would need more than 400 MiB. The live engine asks for fewer.
const MOST_FILES: usize = 1 << 15;

/// No policy plans for more memory.
const MOST_BYTES: u64 = 1 << 40;

/// A policy with these limits and without state.
///
/// # Errors
/// If bowwave never sets such limits.
pub fn policy(limits: Limits) -> Result<Box<dyn Policy>, OddLimits> {
    let bytes = [limits.plan_bytes, limits.region_bytes, limits.ahead_bytes];
    let is_sane = limits.files <= MOST_FILES && bytes.iter().all(|bytes| *bytes <= MOST_BYTES);
    if is_sane { Ok(Box::new(Adaptive::new(limits))) } else { Err(OddLimits(limits)) }
}
