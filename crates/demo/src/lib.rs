//! The demonstration: reading patterns, cold, on the stock kernel and under bowwave.
//!
//! ```text
//!   for each device:   make it, write the files the patterns need
//!   for each round, for each pattern:
//!       stock 128 KiB -> stock 4 MiB -> bowwave        each: evict, start a fresh reader, time it
//!   medians --> one table per device
//! ```
//!
//! What a pattern reads is in [`pattern`]; who carries it out, in a process of its own, in
//! [`worker`]; how one run is set up and measured, in [`bench`]. A run in which the device kept bad
//! time is repeated, and rejected if that does not help.

pub mod bench;
mod cgroup;
mod daemon;
mod error;
mod files;
mod machine;
mod mapping;
pub mod pattern;
mod report;
mod stop;
mod target;
mod tradeoff;
pub mod worker;

pub use bench::{Options, run};
pub use error::DemoError;
pub use report::{Row, render};
pub use tradeoff::TradeOff;
