//! A range of pages of a file.

use serde::{Deserialize, Serialize};

use crate::access::Page;

/// A range of pages, `[start, end)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "(Page, Page)", into = "(Page, Page)")]
pub struct Span {
    /// First page.
    pub start: Page,
    /// First page after it.
    pub end: Page,
}

/// It would end before it begins.
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
    /// Pages in it.
    pub fn pages(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// The pages that lie in the other one, too.
    pub fn within(&self, other: Span) -> Span {
        let start = self.start.max(other.start);
        Span { start, end: self.end.min(other.end).max(start) }
    }

    /// Cut at multiples of 2 MiB, the size of the largest folio, which goes whole or not at all: judged
    /// and let go one by one, a few pages that cannot go hold up few others, and who comes in between
    /// comes in time.
    pub fn pieces(self) -> impl Iterator<Item = Span> {
        let first = self.start / PIECE_PAGES;
        (first..self.end.div_ceil(PIECE_PAGES).max(first)).map(move |piece| {
            let piece = Span { start: piece * PIECE_PAGES, end: (piece + 1) * PIECE_PAGES };
            piece.within(self)
        })
    }
}

const PIECE_PAGES: u64 = 512;
