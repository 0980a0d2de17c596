//! In which order a file is read.

use serde::Serialize;

/// How many accesses lie in which way to the one before them, of the same process and file. The first access, and one
/// that begins at the page where the one before began, is none of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Steps {
    /// Go on where the one before ended.
    pub forward: u64,
    /// End where the one before began.
    pub backward: u64,
    /// Begin as far from the one before as that one did from the one before it.
    pub strided: u64,
    /// Begin anywhere else.
    pub random: u64,
}

impl Steps {
    /// What more than half of the steps are: `forward`, `backward`, `strided` or `random`; `mixed` if nothing is. `None`
    /// without steps.
    pub fn pattern(&self) -> Option<&'static str> {
        let Steps { forward, backward, strided, random } = *self;
        let patterns = [
            ("forward", forward),
            ("backward", backward),
            ("strided", strided),
            ("random", random),
        ];
        let all: u64 = patterns.iter().map(|(_, steps)| steps).sum();
        let most = patterns.iter().find(|(_, steps)| *steps > all / 2);
        (all > 0).then(|| most.map_or("mixed", |(name, _)| name))
    }

    /// Each number, scaled.
    pub(crate) fn map(self, scale: impl Fn(u64) -> u64) -> Steps {
        self.with(&self, |steps, _| scale(steps))
    }

    /// What was added since `before`.
    pub(crate) fn since(&self, before: &Steps) -> Steps {
        self.with(before, u64::saturating_sub)
    }

    pub(crate) fn add(&mut self, other: &Steps) {
        *self = self.with(other, |one, other| one + other);
    }

    /// Each number, combined with that of `other`.
    fn with(&self, other: &Steps, combined: impl Fn(u64, u64) -> u64) -> Steps {
        Steps {
            forward: combined(self.forward, other.forward),
            backward: combined(self.backward, other.backward),
            strided: combined(self.strided, other.strided),
            random: combined(self.random, other.random),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_is_what_more_than_half_of_the_steps_are() {
        let of = |forward, backward, strided, random| {
            Steps { forward, backward, strided, random }.pattern()
        };
        assert_eq!(of(0, 0, 0, 0), None);
        assert_eq!(of(1, 0, 0, 0), Some("forward"));
        assert_eq!(of(3, 5, 1, 0), Some("backward"));
        assert_eq!(of(0, 0, 3, 2), Some("strided"));
        assert_eq!(of(1, 1, 1, 4), Some("random"));
        assert_eq!(of(2, 2, 0, 0), Some("mixed"), "no more than half");
    }
}
