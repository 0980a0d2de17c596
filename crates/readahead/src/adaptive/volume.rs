//! What is remembered of a volume: how many files are read whole, what becomes of single misses, where runs
//! end, what an access costs a forward stream, and what reading ahead has saved and cost.

use super::completion_rate::CompletionRate;
use super::starts::Starts;
use super::survival::Curve;
use super::waits::Waits;
use crate::Account;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Volume {
    pub(super) history: History,
    pub(super) account: Account,
}

/// How its files were read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct History {
    pub(super) completion_rate: CompletionRate,
    pub(super) starts: Starts,
    pub(super) curve: Curve,
    pub(super) waits: Waits,
}
