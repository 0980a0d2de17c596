//! The cost of a device: the three numbers on which every decision of [`crate::Adaptive`] rests.

use serde::{Deserialize, Serialize};

use crate::access::PAGE_BYTES;

/// A policy outside the kernel needs about 100 us from an access to its request. If a device answers within a few times
/// that, there is nothing to gain where the kernel reads ahead itself.
const REACTION_S: f64 = 0.000_3;

/// A window is ample if its transfer takes as long as this many device accesses: more would save little.
pub(crate) const AMPLE_STALLS: f64 = 8.0;

/// A device's cost model: one more access costs `latency_s`, one more page `page_s()`, and
/// `concurrency` accesses overlap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceCost {
    /// Seconds of one more device access, positioning included.
    pub latency_s: f64,
    /// Bytes per second while streaming.
    pub bandwidth: f64,
    /// Device accesses that proceed at once without slowing each other; 1 for a disk.
    pub concurrency: f64,
}

impl DeviceCost {
    /// A disk that is not measured yet: 7200 rpm, half a revolution and a short seek, outer tracks.
    pub const DISK: DeviceCost =
        DeviceCost { latency_s: 0.007, bandwidth: 120e6, concurrency: 1.0 };

    /// Any other device that is not measured yet: latency, bandwidth and queue of a SATA SSD.
    pub const FLASH: DeviceCost =
        DeviceCost { latency_s: 0.000_1, bandwidth: 500e6, concurrency: 32.0 };

    /// Seconds to transfer one page.
    pub fn page_s(&self) -> f64 {
        PAGE_BYTES as f64 / self.bandwidth
    }

    /// Pages that the device transfers in a second.
    pub fn pages_a_second(&self) -> f64 {
        self.bandwidth / PAGE_BYTES as f64
    }

    /// Pages the device would have streamed during one device access's latency.
    pub fn latency_pages(&self) -> f64 {
        self.latency_s * self.pages_a_second()
    }

    /// Pages of a window that is [ample](AMPLE_STALLS).
    pub fn ample_pages(&self) -> u64 {
        (AMPLE_STALLS * self.latency_pages()) as u64
    }

    /// Whether device accesses are served one at a time.
    pub fn is_serial(&self) -> bool {
        self.concurrency < 2.0
    }

    /// Whether it answers before a policy outside the kernel could help.
    pub fn outpaces_user_space(&self) -> bool {
        self.latency_s < REACTION_S
    }

    /// Seconds that one more device access costs a reader that keeps the device's queue full.
    pub fn access_s(&self) -> f64 {
        self.latency_s / self.concurrency.max(1.0)
    }

    /// Pages that the device transfers meanwhile.
    pub fn access_pages(&self) -> u64 {
        (self.access_s() * self.pages_a_second()) as u64
    }

    /// Seconds that reading `pages` in one device access costs such a reader.
    pub fn fetch_s(&self, pages: u64) -> f64 {
        (pages as f64 * self.page_s()).max(self.access_s())
    }
}
