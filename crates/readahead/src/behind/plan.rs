//! What a stream does to pages, and what to do with them behind it.

use super::span::Span;

/// How a stream passed a range of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// It read it.
    Read,
    /// It wrote it.
    Write,
}

/// What to do behind a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropPlan {
    /// Start writing these pages, without waiting.
    pub write_out: Option<Span>,
    /// Let these go, as far as they may: dirty ones as soon as they are clean.
    pub release: Option<Span>,
}
