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

/// Where several read, a disk that queues requests serves a few windows of one before it turns to the next. So a reader
/// that waits for every fourth window is turned from each time.
const WINDOWS_A_TURN: f64 = 4.0;

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

    /// The share of an access at a random place that the next window is likely to cost.
    ///
    /// Until waits are seen, a reader that comes from the start of its file is expected to wait, and no other. If the
    /// expectation is wrong, too wide a window is read. That costs time where the reader stops, and most that come
    /// from the start go on to the end.
    pub(super) fn next(&self, is_from_the_start: bool) -> f64 {
        let expected = if is_from_the_start { PRIOR_WAITS } else { 0.0 };
        let mean = (self.waited + expected) / (self.waits + PRIOR_WAITS);
        (mean * WINDOWS_A_TURN).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_the_start_of_a_file_a_wait_is_expected_until_it_was_seen_that_there_is_none() {
        let mut waits = Waits::default();
        assert_eq!(waits.next(true), 1.0, "nothing is known");
        (0..60).for_each(|_| waits.note(-0.1));
        assert!(waits.next(true) < 0.1);
        (0..12).for_each(|_| waits.note(0.9));
        assert_eq!(waits.next(true), 1.0, "another reader has come between");
    }

    #[test]
    fn elsewhere_no_wait_is_expected_until_one_was_seen() {
        let mut waits = Waits::default();
        assert_eq!(waits.next(false), 0.0, "nothing is known");
        (0..30).for_each(|_| waits.note(0.1));
        assert!((waits.next(false) - 0.4).abs() < 0.02, "each is one of four");
        (0..30).for_each(|_| waits.note(0.3));
        assert!(waits.next(false) > 0.9, "nearly every turn");
    }

    #[test]
    fn no_wait_counts_as_more_than_an_access() {
        let mut waits = Waits::default();
        waits.note(1e9);
        (0..19).for_each(|_| waits.note(0.0));
        assert!(waits.next(true) < 0.5);
    }
}
