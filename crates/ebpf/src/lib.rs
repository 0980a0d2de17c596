//! What the kernel tells bowwave: eBPF programs, and what reads them. Nothing here decides, or changes anything.
//!
//! ```text
//!   programs/observe.bpf.c --> observe   misses, faults and touched marks: inputs of the controller
//!   programs/count.bpf.c   --> count     who reads what, added up: for `bowwave top`
//!   programs/trace.bpf.c   --> tracing   each call, window and request: for `bowwave record`
//!   programs/open_file.bpf.c > open_file what programs have advised for an open file; is it leased?
//! ```
//!
//! [`kernel`] finds out what this kernel can tell. The kernel removes the programs when their process ends, however it
//! ends. Without the feature `bpf`, everything here says that it was not built.

#[cfg(all(feature = "bpf", any(test, fuzzing)))]
pub mod any_bytes;
pub mod count;
mod error;
#[cfg(any(feature = "bpf", test, fuzzing))]
mod fields;
pub mod kernel;
pub mod observe;
pub mod open_file;
pub mod tracing;
#[cfg(feature = "bpf")]
mod warnings;

pub use error::ObserveError;

/// Says why a test is skipped; a failure if BOWWAVE_REQUIRE_LIVE asks for it.
#[cfg(all(feature = "bpf", test))]
fn skip(reason: impl std::fmt::Display) {
    assert!(std::env::var_os("BOWWAVE_REQUIRE_LIVE").is_none(), "{reason}");
    eprintln!("skipped: {reason}");
}

/// Whether this build has eBPF programs.
pub const IS_BUILT: bool = cfg!(feature = "bpf");
