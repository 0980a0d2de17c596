//! Copies that are read without look-ahead, by `fadvise(RANDOM)` on the reader's open file. [`crate::behind`] finds
//! them. No other file gets that advice, not even for a moment.

use super::target::Entry;
use super::{FRESH_NS, LEAST_COPY_PAGES, MOST_COPIES, Windows};
use crate::Nanos;
use crate::ids::Target;

impl Windows {
    /// Whether a target is read by a copy and should be, or remain, without look-ahead. A program that reads a file
    /// through several open files gets that for only one of them.
    pub(super) fn shall_be_without_look_ahead(
        &self,
        now: Nanos,
        target: Target,
        entry: &Entry,
    ) -> bool {
        let is_copied = self.copies.contains(&entry.reader());
        if !is_copied || entry.is_without_look_ahead() {
            return is_copied;
        }
        let is_open_file = matches!(target, Target::OpenFile(_));
        let is_fresh = now.saturating_sub(entry.heard_at) < FRESH_NS;
        let others = self
            .entries
            .iter()
            .filter(|(other, entry)| **other != target && entry.is_without_look_ahead());
        let (mut copies, mut is_first) = (0, true);
        for (_, other) in others {
            copies += 1;
            is_first &= other.reader() != entry.reader();
        }
        is_open_file
            && is_fresh
            && is_first
            && copies < MOST_COPIES
            && entry.access.request_pages >= LEAST_COPY_PAGES
    }
}
