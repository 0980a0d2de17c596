//! What is remembered of a volume: how many files are read whole, and what becomes of single misses,
//! and what reading ahead has saved and cost.

use super::completion_rate::CompletionRate;
use super::starts::Starts;
use crate::Account;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Volume {
    pub(super) completion_rate: CompletionRate,
    pub(super) starts: Starts,
    pub(super) account: Account,
}
