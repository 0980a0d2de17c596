//! The share of late events that were of some kind.

/// With each event the past weighs a little less: about the last 50 count.
pub(super) const REMEMBERED: f32 = 0.98;

/// What is expected without evidence weighs so many events.
pub(super) const PRIOR: f32 = 1.0;

/// Events of late, and how many of them were of the kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    all: f32,
    of_kind: f32,
}

impl Share {
    /// Another event; of which kind it was may be known later.
    pub(super) fn note(&mut self) {
        self.all = self.all * REMEMBERED + 1.0;
        self.of_kind *= REMEMBERED;
    }

    /// The last event was of the kind, or so much of it was.
    pub(super) fn add(&mut self, part: f32) {
        self.of_kind += part;
    }

    /// The share of the kind, where this much is expected without evidence.
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
        assert!((note(2, 1.0) - 1.98 / 2.98).abs() < 1e-6);
        assert!(note(200, 1.0) > 0.9);
        assert!(note(200, 0.0) < 0.1);
    }
}
