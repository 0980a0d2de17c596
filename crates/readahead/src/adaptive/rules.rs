//! The rules: four that a formula decides, each of which may be replaced, and others that may be left out.
//!
//! The policy ships with the [default](Rules::default), derived in `docs/adaptive.md`. That they can be replaced or left
//! out serves one end: `bowwave reproduce rules` shows what each is worth.

use super::density::share_to_fill;
use super::run::{Ahead, Run};
use super::window::{UnitCost, bridging_pays};
use crate::cost::DeviceCost;

/// A rule that may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// How long runs of a file turn out is learned from those before.
    Tail,
    /// Windows end where runs have ended.
    Ends,
    /// The next mark is near the reader, so that it is seen where runs end.
    Sight,
    /// Where a file is read in parts, windows end at round pages.
    RoundEnds,
    /// A miss begins a run where most misses did.
    Starts,
    /// Nothing is asked for that costs more than it saves.
    Pays,
    /// Forward streams are left to the kernel where its window is as good.
    LeftToKernel,
    /// What an access costs a forward stream is measured.
    Waits,
    /// The kernel's read-around of mappings is narrowed where it does not pay.
    ReadAround,
    /// After thrashing less is ahead.
    Pressure,
    /// Readers that have stopped give up what is ahead of them.
    Stopped,
    /// A reader that is alone may have twice the budget ahead.
    Alone,
    /// A reader with less than its share finds a fifth free.
    Newcomers,
    /// A reader may have twice its share ahead.
    Shares,
    /// Where there was no room, a mark tells when there may be.
    Room,
    /// Small windows of a backward reader are asked for early, as a disk reads several in one sweep.
    Sweep,
}

impl Rule {
    /// Each, with what it is called.
    pub const ALL: [(Rule, &'static str); 16] = [
        (Rule::Tail, "tail"),
        (Rule::Ends, "ends"),
        (Rule::Sight, "sight"),
        (Rule::RoundEnds, "round ends"),
        (Rule::Starts, "starts"),
        (Rule::Pays, "pays"),
        (Rule::LeftToKernel, "left to the kernel"),
        (Rule::Waits, "waits"),
        (Rule::ReadAround, "read-around"),
        (Rule::Pressure, "pressure"),
        (Rule::Stopped, "stopped"),
        (Rule::Alone, "alone"),
        (Rule::Newcomers, "newcomers"),
        (Rule::Shares, "shares"),
        (Rule::Room, "room"),
        (Rule::Sweep, "sweep"),
    ];
}

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
    /// The rule that is left out, if any.
    pub without: Option<Rule>,
}

impl Rules {
    /// Whether a rule holds.
    pub(super) fn have(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }
}

impl Default for Rules {
    fn default() -> Self {
        Rules {
            window: UnitCost::window,
            bridges: bridging_pays,
            share_to_fill,
            look_ahead: UnitCost::look_ahead,
            without: None,
        }
    }
}
