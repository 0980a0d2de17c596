//! What an access costs a forward stream, on a device that serves one at a time.
//!
//! A disk goes on where it has left off: a forward reader that is alone waits for the transfer only, however small its
//! windows. Where another reader comes between, or the device is far away, each window costs an access. Which of the
//! two it is shows in the time that readers take: what exceeds the transfer was waited for.
//!
//! Nothing is inferred from what kind of device this is. A far volume that passes for a disk shows its waits.

/// With each wait the past weighs a little less: about the last 33 count.
const REMEMBERED: f64 = 0.97;

/// The weight of the prior, in waits.
const PRIOR_WAITS: f64 = 0.5;

/// The share of an access that readers must wait, on average, for the next access to count as one. A quarter: where
/// several read, a disk that queues requests serves a few windows of one before it turns to the next, and a wider window
/// saves what it then waits.
const MOST: f64 = 0.25;

/// The same for a reader that is alone. What it computes between two reads looks like a wait, too. A half: a wider window
/// must save more than it costs at the end of a part of a file, where a disk that orders its queue may read some of the
/// next part first.
const MOST_ALONE: f64 = 0.5;

/// Accesses of forward streams of late: of all readers of a volume, or of one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Waits {
    waits: f64,
    /// The sum of what was waited each time, as shares of an access at a random place.
    waited: f64,
}

impl Waits {
    /// For each of its last accesses, a stream waited this share of an access at a random place.
    pub(super) fn note(&mut self, waited: f64) {
        self.waits = self.waits * REMEMBERED + 1.0;
        self.waited = self.waited * REMEMBERED + waited.clamp(0.0, 1.0);
    }

    /// Whether the next access is likely to cost as much as one at a random place.
    ///
    /// Until waits are seen, that is expected for a reader that comes from the start of its file, and for no other. If
    /// the expectation is wrong, too wide a window is read. That costs time where the reader stops, and most that come
    /// from the start go on to the end.
    pub(super) fn are_due(&self, is_from_the_start: bool) -> bool {
        let expected = if is_from_the_start { PRIOR_WAITS } else { 0.0 };
        self.reach(MOST, expected)
    }

    /// The same for a reader that is alone, from its own waits. No wait is expected until one was seen.
    pub(super) fn are_due_alone(&self) -> bool {
        self.reach(MOST_ALONE, 0.0)
    }

    /// Whether readers wait for this share of an access or more in the mean. The prior assumes a wait of `expected`.
    fn reach(&self, share: f64, expected: f64) -> bool {
        self.waited + expected >= share * (self.waits + PRIOR_WAITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_the_start_of_a_file_a_wait_is_expected_until_it_was_seen_that_there_is_none() {
        let mut waits = Waits::default();
        assert!(waits.are_due(true), "nothing is known");
        (0..2).for_each(|_| waits.note(-0.1));
        assert!(!waits.are_due(true));
        (0..6).for_each(|_| waits.note(0.9));
        assert!(waits.are_due(true), "another reader has come between");
    }

    #[test]
    fn elsewhere_no_wait_is_expected_until_one_was_seen() {
        let mut waits = Waits::default();
        assert!(!waits.are_due(false), "nothing is known");
        waits.note(1.0);
        assert!(waits.are_due(false));
    }

    #[test]
    fn a_reader_that_is_alone_may_wait_for_half_of_an_access() {
        let mut waits = Waits::default();
        assert!(!waits.are_due_alone(), "nothing is known");
        (0..20).for_each(|_| waits.note(0.45));
        assert!(!waits.are_due_alone() && waits.are_due(false));
        (0..20).for_each(|_| waits.note(0.9));
        assert!(waits.are_due_alone(), "somebody comes between");
    }

    #[test]
    fn no_wait_counts_as_more_than_an_access() {
        let mut waits = Waits::default();
        waits.note(1e9);
        (0..9).for_each(|_| waits.note(0.0));
        assert!(!waits.are_due(true));
    }
}
