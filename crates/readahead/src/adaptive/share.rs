//! The share of recent events that were of some kind.

/// With each event, earlier ones weigh a little less: about the last 33 count.
pub(super) const REMEMBERED: f32 = 0.97;

/// The number of events that weigh as much as what is expected without evidence.
pub(super) const PRIOR: f32 = 2.0;

/// Recent events, and how many of them were of the kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    all: f32,
    of_kind: f32,
}

impl Share {
    /// Another event. Whether it was of the kind may be known later.
    pub(super) fn note(&mut self) {
        self.all = self.all * REMEMBERED + 1.0;
        self.of_kind *= REMEMBERED;
    }

    /// An event was of the kind, or this part of it.
    pub(super) fn add(&mut self, part: f32) {
        self.of_kind = (self.of_kind + part).min(self.all);
    }

    /// The share of the kind; `expected` without evidence.
    pub(super) fn of_kind(&self, expected: f32) -> f32 {
        (self.of_kind + PRIOR * expected) / (self.all + PRIOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_takes_the_place_of_what_was_expected_and_is_forgotten() {
        let mut share = Share::default();
        assert_eq!(share.of_kind(0.7), 0.7);
        let mut note = |count, part| {
            for _ in 0..count {
                share.note();
                share.add(part);
            }
            share.of_kind(0.0)
        };
        assert!((note(2, 1.0) - 1.97 / 3.97).abs() < 1e-6);
        assert!(note(200, 1.0) > 0.9);
        assert!(note(200, 0.0) < 0.1);
    }
}
