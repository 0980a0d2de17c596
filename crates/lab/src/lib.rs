//! A slow disk in real time: a device model behind a real block device.
//!
//! ```text
//!   program -- read --> ext4 -- request --> loop device (direct I/O) -- FUSE --> server process
//!                                                                                  |  device model:
//!                                                                                  |  when is it done?
//!   program <--------------------------------- reply, at that moment <-- timer ----+
//! ```
//!
//! The image lives in memory, so what a read takes is what the model says, give or take the timing
//! error, which is measured: a run during which replies were too late is rejected, not reported.
//! [`Lab::up`] makes one, as a process of its own that survives the command that made it;
//! [`Lab::down`] removes it. The server is [`serve`].

#[cfg(any(test, fuzzing))]
pub mod any_bytes;
mod claim;
mod control;
mod error;
mod lab;
mod layers;
mod map;
mod real_time;
mod remove;
mod server;
mod state;
mod status;
mod timer;
mod tool;
mod users;

pub use error::LabError;
pub use lab::{Lab, LabGuard, Options};
pub use remove::remove;
pub use server::{ServeOptions, serve};
pub use state::{list, name_for};
pub use status::{MOST_LATE_MEAN_US, Status};
