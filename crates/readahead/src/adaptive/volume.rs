//! What is remembered of a volume: how many files are read whole, what becomes of single misses, and
//! whether its readers take turns.

use super::completion_rate::CompletionRate;
use super::head::Head;
use super::starts::Starts;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Volume {
    pub(super) completion_rate: CompletionRate,
    pub(super) starts: Starts,
    pub(super) head: Head,
}
