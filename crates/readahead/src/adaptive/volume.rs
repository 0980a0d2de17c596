//! What is remembered of how a volume's files were read: how many are read whole, what becomes of single misses,
//! where runs end, and what an access costs a forward stream.

use super::completion_rate::CompletionRate;
use super::starts::Starts;
use super::survival::Curve;
use super::waits::Waits;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct History {
    pub(super) completion_rate: CompletionRate,
    pub(super) starts: Starts,
    pub(super) curve: Curve,
    pub(super) waits: Waits,
}
