//! A slow disk in real time: a device model behind a real block device.
//!
//! ```text
//!   program -- read --> ext4 -- request --> loop device (direct I/O) -- FUSE --> server process
//!                                                                                  |  device model:
//!                                                                                  |  when is it done?
//!   program <--------------------------------- reply, at that moment <-- timer ----+
//! ```
//!
//! The image lives in memory, so what a read takes is what the model says. A reply that goes out late is
//! credited to the requests that follow it; what cannot be credited is counted, as a bound of the error
//! ([`Status::error_us`]).
//! [`Lab::up`] makes one, as a process of its own that survives the command that made it;
//! [`Lab::down`] removes it. The server is [`serve`].

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
pub use state::{list, name_for};
pub use status::Status;
