//! The four rules that a formula decides, each of which may be replaced.
//!
//! The policy ships with the [default](Rules::default), derived in `docs/adaptive.md`. That they can
//! be replaced serves one end: `bowwave reproduce rules` sets each beside alternatives. They are plain
//! functions, so that a policy with other rules differs in nothing else, and costs nothing more.

use super::density::share_to_fill;
use super::run::{Ahead, Run};
use super::window::{UnitCost, bridging_pays};
use crate::cost::DeviceCost;

/// The rules.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Units of a stream's next window.
    pub window: fn(&UnitCost, Run) -> u64,
    /// Whether a gap of so many pages between the pieces of a sparse reader is read.
    pub bridges: fn(&DeviceCost, u64) -> bool,
    /// What so many misses in a region must have cost, over what reading the rest of it costs; also
    /// given how many requests that rest holds.
    pub share_to_fill: fn(u32, f64) -> f64,
    /// Units from the look-ahead mark to the end of the window.
    pub look_ahead: fn(&UnitCost, Ahead) -> u64,
}

impl Default for Rules {
    fn default() -> Self {
        Rules {
            window: UnitCost::window,
            bridges: bridging_pays,
            share_to_fill,
            look_ahead: UnitCost::look_ahead,
        }
    }
}
