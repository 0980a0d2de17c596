//! What bowwave asks of the operating system. No decision is made here.
//!
//! | of | modules |
//! |---|---|
//! | disks | [`mounts`], [`identity`], [`knob`] (the kernel's own window), [`direct`] (reads past the cache) |
//! | files that others read | [`handles`], [`descriptors`], [`sys`] (what is cached, read, dropped) |
//! | processes | [`process`], [`program`], [`daemons`], [`privilege`] |
//! | memory | [`meminfo`], [`cgroup`], [`psi`] |
//! | our own files | [`state`], [`whole`] (written so that a crash leaves the old or the new one), [`small`], [`table`] |
//! | tests | [`failpoint`] (where a process kills itself) |
//! | figures | [`median()`], [`provenance`] (kernel and date) |

#[cfg(any(test, fuzzing))]
pub mod any_bytes;
pub mod cgroup;
pub mod daemons;
pub mod descriptors;
pub mod direct;
pub mod failpoint;
pub mod handles;
pub mod identity;
pub mod knob;
mod median;
pub mod meminfo;
pub mod mounts;
pub mod privilege;
pub mod process;
pub mod program;
pub mod provenance;
pub mod psi;
pub mod small;
pub mod state;
pub mod sys;
pub mod table;
pub mod whole;

pub use median::median;
