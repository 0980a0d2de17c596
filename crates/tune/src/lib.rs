//! Measures a device, chooses its read-ahead window and remembers it.
//!
//! ```text
//!   target --> measure ------> fit -----> choose --> apply (the knob)
//!   (what,     curve,          a device   plateau,   persist (a profile, a udev rule)
//!    which     latency,        model      bounds
//!    knob)     concurrency       |
//!                                '--> simulate it, serve it in the lab, read ahead by it
//! ```
//!
//! Measuring writes nothing but the one number in sysfs, which a journal restores even if the
//! process is killed. Only with `--persist`, files are written below `/var/lib/bowwave/devices` and
//! `/etc/udev/rules.d`.

pub mod choose;
pub mod curve;
pub mod fit;
pub mod formula;
mod ground;
pub mod measure;
pub mod model;
pub mod persist;
pub mod profile;
mod sources;
pub mod target;
pub mod tuning;
