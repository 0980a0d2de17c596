//! The cost of a device, and what follows from it alone. This is computed when the cost changes, which is seldom,
//! rather than for each access.

use super::window::UnitCost;
use crate::cost::DeviceCost;

/// A device, as far as decisions go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Device {
    pub(super) cost: DeviceCost,
    /// The cost of neighbouring pages.
    pub(super) pages: UnitCost,
    /// Pages of a window that takes much longer to transfer than to access.
    pub(super) ample_pages: u64,
}

impl Device {
    pub(super) fn new(cost: DeviceCost) -> Self {
        Device { cost, pages: UnitCost::pages(&cost), ample_pages: cost.ample_pages() }
    }

    /// Computes everything anew if the cost has changed.
    pub(super) fn renew(&mut self, cost: DeviceCost) {
        if self.cost != cost {
            *self = Self::new(cost);
        }
    }
}
