//! Measure a device, choose its read-ahead, remember it.
//!
//! ```text
//!   target --> measure ------> fit -----> choose --> apply (the knob)
//!   (what,     curve,          a device   plateau,   persist (a profile, a udev rule)
//!    which     latency,        model      bounds
//!    knob)     concurrency       |
//!                                '--> simulate it, serve it in the lab, read ahead by it
//! ```
//!
//! Nothing but the one number in sysfs is written while measuring, and it is put back from a journal
//! even if the process is killed. Files are written where the user asks for it, below
//! `/var/lib/bowwave/devices` and `/etc/udev/rules.d`.

pub mod choose;
pub mod curve;
pub mod fit;
pub mod formula;
mod ground;
mod large_files;
pub mod measure;
pub mod model;
pub mod persist;
pub mod profile;
pub mod target;
pub mod tuning;
