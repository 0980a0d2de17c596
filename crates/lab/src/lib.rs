//! A slow disk in real time: a device model behind a real block device.
//!
//! ```text
//!   program -- read --> ext4 -- request --> loop device (direct I/O) -- FUSE --> server process
//!                                                                                  |  device model:
//!                                                                                  |  when is it done?
//!   program <--------------------------------- reply, at that moment <-- timer ----+
//! ```
//!
//! The image is in memory, so only the model decides how long a read takes. If a reply goes out late, the lab credits
//! the delay to the requests that follow. It counts what it cannot credit, as a bound of the error
//! ([`Status::error_us`]).
//!
//! [`Lab::up`] starts a lab in a separate process, which outlives the command; [`Lab::down`] removes it. [`serve`] is
//! the server.

#[cfg(any(test, fuzzing))]
pub mod any_bytes;
mod claim;
mod control;
mod error;
mod fault;
mod injected;
mod lab;
mod layers;
mod map;
mod pacing;
mod real_time;
mod remove;
mod server;
mod state;
mod status;
mod timer;
mod tool;
mod users;

pub use error::LabError;
pub use fault::{Fault, FaultError};
pub use lab::{Lab, LabGuard, Options};
pub use remove::remove;
pub use server::{ServeOptions, serve};
pub use state::{is_in_lab, list, name_for};
pub use status::Status;
