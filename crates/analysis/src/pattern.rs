//! The pattern in which a stream reads.

use crate::folders::is_small;
use crate::order::{Step, Steps};

/// The kernel's own read-ahead window, 128 KiB: shorter runs end before read-ahead has helped them, and a smaller file
/// is read as a whole.
pub const WINDOW_BYTES: u64 = 128 << 10;

/// With fewer runs there is no pattern yet.
const FEW_RUNS: u64 = 4;

/// How a stream reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pattern {
    /// A file of at most [`WINDOW_BYTES`], as a whole.
    SmallFile,
    /// From front to back, in one or a few long runs.
    Forward,
    /// From front to back in several places of the file in turn.
    InTurn,
    /// From back to front.
    Backward,
    /// Runs that begin equally far from each other.
    Strided,
    /// Runs shorter than a window, here and there.
    Random,
    /// One place, or a few.
    FewPlaces,
}

impl Pattern {
    /// The pattern of a stream that has read `distinct_bytes` of a file of `file_bytes` in these steps.
    pub fn of(steps: &Steps, distinct_bytes: u64, file_bytes: u64) -> Self {
        let count = |step| steps.count(step);
        let (runs, strided) = (steps.runs(), count(Step::Strided));
        let forward = count(Step::Forward) + count(Step::Resumed);
        let goes_on = forward.max(count(Step::Backward));
        let is_short = distinct_bytes / runs.max(1) < WINDOW_BYTES;
        let is_strided = runs >= FEW_RUNS && strided > runs / 2;
        if is_small(file_bytes) && distinct_bytes == file_bytes {
            Pattern::SmallFile
        } else if runs < FEW_RUNS && (goes_on == 0 || (runs > 1 && is_short)) {
            Pattern::FewPlaces
        } else if runs >= FEW_RUNS && is_short && !is_strided {
            Pattern::Random
        } else if count(Step::Resumed) > count(Step::Forward).max(count(Step::Backward)) {
            Pattern::InTurn
        } else if is_strided {
            Pattern::Strided
        } else if count(Step::Backward) > forward {
            Pattern::Backward
        } else {
            Pattern::Forward
        }
    }

    /// In a few words.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::SmallFile => "whole small files",
            Pattern::Forward => "forward",
            Pattern::InTurn => "forward in several places in turn",
            Pattern::Backward => "backward",
            Pattern::Strided => "strided",
            Pattern::Random => "random",
            Pattern::FewPlaces => "one or a few places",
        }
    }
}
