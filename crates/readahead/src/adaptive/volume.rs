//! What is remembered of a volume: how many files are read whole, and what becomes of single misses.

use super::completion_rate::CompletionRate;
use super::starts::Starts;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Volume {
    pub(super) completion_rate: CompletionRate,
    pub(super) starts: Starts,
}
