//! How a stream passes pages, and what to do behind it.

use super::span::Span;

/// How a stream passed a range of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// It read the pages.
    Read,
    /// It wrote the pages.
    Write,
}

/// What to do behind a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropPlan {
    /// Start writing these pages, without waiting for them.
    pub write_out: Option<Span>,
    /// Drop these pages if permitted, dirty ones as soon as they are clean.
    pub release: Option<Span>,
}
