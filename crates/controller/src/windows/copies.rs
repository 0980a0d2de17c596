//! Copies that are read without look-ahead, by `fadvise(RANDOM)` on the reader's open file. [`crate::behind`] finds
//! them. No other file gets that advice, not even for a moment.

use super::target::Entry;
use super::{FRESH_NS, LEAST_COPY_PAGES, Windows};
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
        let is_first = self.entries.iter().all(|(other, of_other)| {
            *other == target
                || !of_other.is_without_look_ahead()
                || of_other.reader() != entry.reader()
        });
        let is_large = entry.access.request_pages >= LEAST_COPY_PAGES;
        is_open_file && is_fresh && is_large && is_first
    }
}
