//! What an access costs a forward stream, on a device that serves one at a time.
//!
//! A disk goes on where it has left off: a forward reader that is alone waits for the transfer only, however small its
//! windows. Where another reader comes between, or the device is far away, each window costs an access. Which of the
//! two it is shows in the time that readers take: what exceeds the transfer was waited for.
//!
//! Nothing is inferred from what kind of device this is. A far volume that passes for a disk shows its waits.

use super::share::Share;

/// What forward streams waited for each of their last accesses, as a share of an access at a random place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waits(Share);

impl Waits {
    /// A stream waited for each of its last accesses this share of an access at a random place.
    pub(super) fn note(&mut self, waited: f64) {
        self.0.note();
        self.0.add(waited.clamp(0.0, 1.0) as f32);
    }

    /// Whether the next access is expected to be one at a random place, as it is without evidence.
    pub(super) fn are_due(&self) -> bool {
        self.0.of_kind(1.0) >= 0.5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_expected_until_it_was_seen_that_there_is_none() {
        let mut waits = Waits::default();
        assert!(waits.are_due(), "nothing is known");
        (0..3).for_each(|_| waits.note(-0.1));
        assert!(!waits.are_due());
        (0..6).for_each(|_| waits.note(0.9));
        assert!(waits.are_due(), "another reader has come between");
    }

    #[test]
    fn no_wait_counts_as_more_than_an_access() {
        let mut waits = Waits::default();
        waits.note(1e9);
        (0..9).for_each(|_| waits.note(0.0));
        assert!(!waits.are_due());
    }
}
