//! The rules: four are formulas, which can be replaced; others can be left out.
//!
//! The policy ships with the [default](Rules::default), derived in `docs/adaptive.md`. Nothing else uses other rules
//! than `bowwave reproduce rules`, which shows what each rule is worth.

use super::density::share_to_fill;
use super::run::{Ahead, Run};
use super::window::{UnitCost, bridging_pays};
use crate::cost::DeviceCost;

/// A rule that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The lengths of earlier runs of a file tell how long the next will be.
    Tail,
    /// How many files were read to the end tells how far the next will be read.
    Completion,
    /// Windows end where runs have ended.
    Ends,
    /// Once runs have ended, marks are near the reader, so that the policy sees where the next one ends.
    Sight,
    /// In a file with several streams, windows end at round pages.
    RoundEnds,
    /// A miss begins a run if most misses did.
    Starts,
    /// A window that costs more than it saves is not requested.
    Pays,
    /// On a device that serves one access at a time, a miss costs what its reader has waited, if that is less than `L`.
    Near,
    /// A forward stream is left to the kernel if its window is as good.
    LeftToKernel,
    /// The policy measures what an access costs a forward stream.
    Waits,
    /// Where one reader is alone, only its own waits count.
    OwnWaits,
    /// The kernel's read-around of a mapping is narrowed where it does not pay.
    ReadAround,
    /// After thrashing, less is read ahead.
    Pressure,
    /// Readers that have stopped lose their share of the budget.
    Stopped,
    /// A lone reader may have twice the budget ahead.
    Alone,
    /// A reader below its share finds a fifth of the budget free.
    Newcomers,
    /// A reader may have at most twice its share ahead.
    Shares,
    /// If there is no room, a mark makes the policy ask again.
    Room,
    /// Small windows of a backward reader are requested early, as a disk reads several in one sweep.
    Sweep,
    /// A program that announces sequential reading is expected to read the whole file.
    Announced,
    /// A forward window is not smaller than the kernel's usual one.
    Floor,
    /// A window takes what little it would leave of the file.
    Rest,
    /// On a disk, a file that is read from its start needs no proof before its next window is requested.
    Begun,
    /// Where accesses overlap, a stream has at most two windows ahead.
    WindowsOut,
    /// Until its rate is known, a reader is expected to wait for each page as before.
    Pace,
    /// Where accesses overlap, slices of a region stay small until its misses have cost as much as the rest.
    Harmless,
    /// In a mapping, no more misses are expected than were seen, or many more where accesses overlap.
    Mapped,
    /// The kernel reads long requests at once.
    Whole,
    /// Where accesses overlap, what the kernel has not read yet of a long request is read ahead.
    Pieces,
    /// Nothing beyond a request is requested before the rest of it. Its length does not tell that another one follows.
    Request,
    /// Small misses in a row that go in one direction, with narrow gaps between them, are one stream.
    Gaps,
    /// Where the device outpaces user space, the kernel gets a wider window for long forward runs.
    Wider,
}

impl Rule {
    /// Every rule with its name.
    pub const ALL: [(Rule, &'static str); 32] = [
        (Rule::Tail, "tail"),
        (Rule::Completion, "completion"),
        (Rule::Ends, "ends"),
        (Rule::Sight, "sight"),
        (Rule::RoundEnds, "round ends"),
        (Rule::Starts, "starts"),
        (Rule::Pays, "pays"),
        (Rule::Near, "near"),
        (Rule::LeftToKernel, "left to the kernel"),
        (Rule::Waits, "waits"),
        (Rule::OwnWaits, "own waits"),
        (Rule::ReadAround, "read-around"),
        (Rule::Pressure, "pressure"),
        (Rule::Stopped, "stopped"),
        (Rule::Alone, "alone"),
        (Rule::Newcomers, "newcomers"),
        (Rule::Shares, "shares"),
        (Rule::Room, "room"),
        (Rule::Sweep, "sweep"),
        (Rule::Announced, "announced"),
        (Rule::Floor, "floor"),
        (Rule::Rest, "rest"),
        (Rule::Begun, "begun"),
        (Rule::WindowsOut, "windows out"),
        (Rule::Pace, "pace"),
        (Rule::Harmless, "harmless"),
        (Rule::Mapped, "mapped"),
        (Rule::Whole, "whole requests"),
        (Rule::Pieces, "requests in pieces"),
        (Rule::Request, "one request"),
        (Rule::Gaps, "gaps"),
        (Rule::Wider, "wider windows"),
    ];
}

/// The rules.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Units of a stream's next window.
    pub window: fn(&UnitCost, Run) -> u64,
    /// Whether a gap of that many pages between the pieces of a sparse reader is read.
    pub bridges: fn(&DeviceCost, u64) -> bool,
    /// The share of the cost of reading the rest of a region that its misses must have cost. Takes the number of
    /// misses, and of the requests that the rest holds.
    pub share_to_fill: fn(u32, f64) -> f64,
    /// Units from the look-ahead mark to the end of the window.
    pub look_ahead: fn(&UnitCost, Ahead) -> u64,
    /// The rule that is left out, if any.
    pub without: Option<Rule>,
}

impl Rules {
    /// Whether a rule applies.
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
