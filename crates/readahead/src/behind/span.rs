//! A range of pages of a file.

use serde::{Deserialize, Serialize};

use crate::access::Page;

/// A range of pages, `[start, end)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "(Page, Page)", into = "(Page, Page)")]
pub struct Span {
    /// The first page.
    pub start: Page,
    /// The page after the last.
    pub end: Page,
}

/// The span would end before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnedRound(Page, Page);

impl std::fmt::Display for TurnedRound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a range of pages ends at {} before it begins at {}", self.1, self.0)
    }
}

impl TryFrom<(Page, Page)> for Span {
    type Error = TurnedRound;

    fn try_from((start, end): (Page, Page)) -> Result<Self, TurnedRound> {
        if start <= end { Ok(Span { start, end }) } else { Err(TurnedRound(start, end)) }
    }
}

impl From<Span> for (Page, Page) {
    fn from(span: Span) -> Self {
        (span.start, span.end)
    }
}

impl Span {
    /// Number of pages.
    pub fn pages(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// The pages that are also in `other`.
    pub fn within(&self, other: Span) -> Span {
        let start = self.start.max(other.start);
        Span { start, end: self.end.min(other.end).max(start) }
    }

    /// Cuts the span at multiples of 2 MiB, the size of the largest folio, which is dropped
    /// entirely or not at all. Judging and dropping the pieces one by one has two advantages: a few
    /// pages that must stay hold up few others, and a reader that arrives in between is noticed in
    /// time.
    pub fn pieces(self) -> impl Iterator<Item = Span> {
        let first = self.start / FOLIO_PAGES;
        (first..self.end.div_ceil(FOLIO_PAGES).max(first)).map(move |piece| {
            let piece = Span { start: piece * FOLIO_PAGES, end: (piece + 1) * FOLIO_PAGES };
            piece.within(self)
        })
    }
}

/// Pages of the largest folio, 2 MiB, which is aligned to its size. The kernel drops all of it or nothing.
pub(super) const FOLIO_PAGES: u64 = 512;
