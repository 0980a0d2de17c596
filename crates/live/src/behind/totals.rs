//! What drop-behind did, in pages.

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Let go.
    pub(crate) dropped_pages: u64,
    /// Passed by a stream, and they stay: cached before it came, used by others, or again.
    pub(crate) kept_pages: u64,
    /// They would go if they were not dirty, mapped or held, or so many.
    pub(crate) left_pages: u64,
}
