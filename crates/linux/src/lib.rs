//! Everything bowwave asks of the operating system. This crate makes no decisions.
//!
//! | topic | modules |
//! |---|---|
//! | disks | [`mounts`] (and what a disk is made of), [`identity`], [`knob`] (the kernel's window), [`direct`] (reads that bypass the cache) |
//! | files that others read | [`directories`], [`handles`], [`descriptors`], [`sys`] (which pages are cached; read them, drop them) |
//! | processes | [`acting_as`], [`process`], [`owner`], [`program`], [`io_priority`], [`daemons`], [`privilege`], [`signals`], [`waits`] (for a processor), [`limited`] (work that may never end) |
//! | memory | [`meminfo`], [`cgroup`], [`psi`] |
//! | bowwave's own files | [`state`], [`whole`] (a crash leaves the old file or the new one), [`lock`] (who works with it), [`private`] (only this user can read or change them), [`small`], [`table`] |
//! | tests | [`failpoint`] (steps at which a process kills or stops itself) |
//! | what users are told | [`stderr`], [`shell`] (paths in suggested commands) |
//! | figures | [`median()`], [`provenance`] (kernel and date) |

pub mod acting_as;
#[cfg(any(test, fuzzing))]
pub mod any_bytes;
pub mod cgroup;
pub mod daemons;
pub mod descriptors;
pub mod direct;
pub mod directories;
pub mod failpoint;
pub mod handles;
pub mod identity;
pub mod io_priority;
pub mod knob;
pub mod limited;
pub mod lock;
mod median;
pub mod meminfo;
pub mod mount_points;
pub mod mounts;
pub mod owner;
pub mod private;
pub mod privilege;
pub mod process;
pub mod program;
pub mod provenance;
pub mod psi;
pub mod shell;
pub mod signals;
pub mod small;
mod stack;
pub mod state;
pub mod stderr;
pub mod sys;
pub mod table;
mod turns;
mod view;
pub mod waits;
pub mod whole;

pub use median::median;
