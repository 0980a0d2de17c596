//! What a controller is doing now, as `bowwave status` shows it.
//!
//! The controller knows only numbers. The body adds names and mount points, as it adds its own counts to the
//! [metrics](crate::metrics).

use readahead::{Account, Balance, figures};
use serde::{Deserialize, Serialize};

use crate::behind::Behind;
use crate::controller::Controller;
use crate::ids::DeviceNumber;
use crate::metrics::Metrics;
use crate::savings::Saved;

/// The busiest files shown.
const BUSIEST: usize = 10;

figures! {
    /// Devices, files, streams and budgets.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)] // an older bowwave lacks some fields
    pub struct Status {
        /// Totals since the start.
        pub metrics: Metrics,
        /// Every device under a managed file system.
        pub devices: Vec<Device>,
        /// The most bytes that may be read ahead and not used yet, for all readers together.
        pub budget_bytes: u64 as Gauge,
        /// Bytes that are read ahead and not used yet.
        pub ahead_bytes: u64 as Gauge,
        /// Files with an event in the last 10 s.
        pub files: usize as Gauge,
        /// Files with a stream that had an event in the last 0.5 s.
        pub managed_files: u64 as Gauge,
        /// Of `files`, the 10 with most bytes read ahead, in descending order.
        pub busiest_files: Vec<BusyFile>,
        /// Open files whose kernel window bowwave has changed.
        pub changed_windows: usize as Gauge,
        /// Streams that drop-behind follows.
        pub behind_streams: usize as Gauge,
    }
}

/// A file with bytes read ahead.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)] // as above
pub struct BusyFile {
    /// Its file system, as `major:minor`.
    pub volume: String,
    /// Its inode number.
    pub inode: u64,
    /// Bytes of it requested since its first event.
    pub read_ahead_bytes: u64,
    /// Where its file system is mounted; the body adds it.
    pub mount_point: String,
}

figures! {
    /// One device. A megabyte has 10^6 bytes.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)] // an older bowwave lacks some fields
    pub struct Device {
        /// Its number, which the body chose.
        pub backing: u32,
        /// `sda`, or what a file system without a disk mounts; the body adds it.
        pub name: String,
        /// Whether `name` is a disk's. Otherwise whoever mounted the file system chose it. The body adds it.
        pub is_disk: bool,
        /// The disks that serve its requests; several below md. The body adds them.
        pub disks: Vec<String>,
        /// The file systems on it, as `major:minor`.
        pub volumes: Vec<String>,
        /// Where these are mounted, in the same order; the body adds them.
        pub mount_points: Vec<String>,
        /// What reading ahead has saved and cost on each of them, in the same order. The credit is that of the poorest
        /// group of readers.
        pub accounts: Vec<Balance>,
        /// How long one more access of the device takes.
        pub latency_ms: f64 as Gauge,
        /// How fast the device transfers a stream.
        pub bandwidth_mb_s: f64 as Gauge,
        /// Accesses of the device that proceed at once.
        pub concurrency: f64 as Gauge,
        /// Where latency, bandwidth and concurrency come from: `measured`, `learned`, `guessed` or `assumed`.
        pub origin: String,
        /// The most bytes that bowwave may have in flight on the device.
        pub depth_bytes: u64 as Gauge,
        /// Bytes that bowwave has in flight on the device.
        pub in_flight_bytes: u64 as Gauge,
    }
}

impl Controller {
    /// What reading ahead has saved and cost on a file system.
    fn account_of(&self, dev: DeviceNumber) -> Balance {
        let Saved { earned_s, spent_s } = self.saved_on(dev);
        Balance { earned_s, spent_s, credit_s: self.streams_on(dev).balance().credit_s }
    }

    /// The same without the credit.
    pub(crate) fn saved_on(&self, dev: DeviceNumber) -> Saved {
        Saved::of(self.streams_on(dev))
            .plus(self.walks.saved_on(dev))
            .plus(self.starts.saved_on(dev))
    }

    /// The part of it that streams have; only they have credit.
    fn streams_on(&self, dev: DeviceNumber) -> Account {
        self.policy.account(dev.volume()).unwrap_or_default()
    }

    /// What the controller is doing at `now`.
    pub fn status(&self, now: crate::Nanos) -> Status {
        let devices = self.backings.iter().map(|(id, backing)| Device {
            backing: id.0,
            name: String::new(),
            is_disk: false,
            disks: Vec::new(),
            volumes: self.volumes.on(id).map(|dev| dev.to_string()).collect(),
            mount_points: Vec::new(),
            accounts: self.volumes.on(id).map(|dev| self.account_of(dev)).collect(),
            latency_ms: backing.cost().latency_s * 1e3,
            bandwidth_mb_s: backing.cost().bandwidth * 1e-6,
            concurrency: backing.cost().concurrency,
            origin: format!("{:?}", backing.origin()).to_lowercase(),
            depth_bytes: backing.depth_bytes(),
            in_flight_bytes: backing.in_flight_bytes(),
        });
        let busiest = self.files.busiest(BUSIEST).into_iter().map(|(file, bytes)| BusyFile {
            volume: file.dev.to_string(),
            inode: file.ino,
            read_ahead_bytes: bytes,
            mount_point: String::new(),
        });
        Status {
            metrics: self.metrics(),
            devices: devices.collect(),
            budget_bytes: self.memory.budget_bytes(),
            ahead_bytes: self.ahead_bytes(),
            files: self.files.len(),
            managed_files: self.files.managed(now),
            busiest_files: busiest.collect(),
            changed_windows: self.windows.changed(),
            behind_streams: self.behind.as_ref().map_or(0, Behind::streams),
        }
    }
}
