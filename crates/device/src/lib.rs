//! Storage devices as models in virtual time: pure, deterministic, no clock, no I/O, no threads.
//!
//! ```text
//!   Request(offset, bytes) at t --submit--> [ queue -> mechanics or channels ] --advance--> Completion at t'
//! ```
//!
//! Each call tells the model the time. So the same model serves a simulator, where time is a
//! number, and the lab, where time comes from a clock. There are three models: [`Disk`] (one head,
//! a seek curve, a turning platter, a track buffer, a queue served nearest first), [`Raid5`]
//! (several disks behind one controller) and [`Channels`] (requests that wait in parallel and share
//! one pipe: flash, network volumes). Devices are TOML files below `devices/` that name a source
//! for each number.

mod bounds;
mod catalog;
mod channels;
mod disk;
mod error;
mod model;
mod raid5;
mod random;
mod spec;
mod text;

pub use catalog::{catalog, load};
pub use channels::{Channels, ChannelsSpec};
pub use disk::{Disk, DiskSpec};
pub use error::SpecError;
pub use model::{Completion, Counters, Model, Nanos, Request};
pub use raid5::{Raid5, Raid5Spec};
pub use spec::Spec;
