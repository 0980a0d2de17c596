//! What a controller is doing at the moment, as `bowwave status` shows it.

use readahead::PAGE_BYTES;
use serde::{Deserialize, Serialize};

use crate::behind::Behind;
use crate::controller::Controller;
use crate::metrics::Metrics;

/// Devices, streams and budgets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// What was done since the start.
    pub metrics: Metrics,
    /// Every device under a managed file system.
    pub devices: Vec<Device>,
    /// Bytes that may be ahead of all readers.
    pub budget_bytes: u64,
    /// Bytes that are.
    pub ahead_bytes: u64,
    /// Files heard of lately.
    pub files: usize,
    /// Of these, files whose readers are managed at the moment.
    pub managed_files: u64,
    /// Open files whose kernel window is not their own.
    pub changed_windows: usize,
    /// Streams that drop-behind follows.
    pub behind_streams: usize,
}

/// One device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// Its number, as the body has given it.
    pub backing: u32,
    /// The file systems on it, as `major:minor`.
    pub volumes: Vec<String>,
    /// Milliseconds of one more device access.
    pub latency_ms: f64,
    /// MB a second while streaming.
    pub bandwidth_mb_s: f64,
    /// Accesses that proceed at once.
    pub concurrency: f64,
    /// Where these are from.
    pub origin: String,
    /// Bytes that may be in flight.
    pub depth_bytes: u64,
    /// Bytes that are.
    pub in_flight_bytes: u64,
}

impl Controller {
    /// What it is doing at `now`.
    pub fn status(&self, now: crate::Nanos) -> Status {
        let devices = self.backings.iter().map(|(id, backing)| Device {
            backing: id.0,
            volumes: self.volumes.on(id).map(|dev| dev.to_string()).collect(),
            latency_ms: backing.cost().latency_s * 1e3,
            bandwidth_mb_s: backing.cost().bandwidth * 1e-6,
            concurrency: backing.cost().concurrency,
            origin: format!("{:?}", backing.origin()).to_lowercase(),
            depth_bytes: backing.depth_bytes(),
            in_flight_bytes: backing.in_flight_bytes(),
        });
        Status {
            metrics: self.metrics(),
            devices: devices.collect(),
            budget_bytes: self.memory.budget_bytes(),
            ahead_bytes: self.policy.tally().ahead_pages() * PAGE_BYTES,
            files: self.files.len(),
            managed_files: self.files.managed(now),
            changed_windows: self.windows.changed(),
            behind_streams: self.behind.as_ref().map_or(0, Behind::streams),
        }
    }
}
