//! What becomes of misses that no stream explains: does a run begin there, and which way does it go?
//!
//! A run is recognised at its second miss. Where most misses turn out to begin runs that all go one way, the
//! next one is taken for the start of a run at once, which spares its reader a device access.

use serde::{Deserialize, Serialize};

/// With each miss the past weighs a little less: about the last 33 count.
const REMEMBERED: f32 = 0.97;

/// The weight of a prior, in misses. The prior of a file is what is known of its volume; that of a volume is that no
/// miss begins a run.
const PRIOR_MISSES: f32 = 2.0;

/// The share of misses that must begin runs in one direction: then a run is more likely than not.
const MOST: f32 = 0.5;

/// Misses of late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Starts {
    misses: f32,
    forward: f32,
    backward: f32,
}

impl Starts {
    /// A miss that belongs to no stream.
    pub(super) fn miss(&mut self) {
        let fade = |count: &mut f32| *count *= REMEMBERED;
        [&mut self.misses, &mut self.forward, &mut self.backward].into_iter().for_each(fade);
        self.misses += 1.0;
    }

    /// Whether misses can have led to it.
    pub(super) fn is_possible(&self) -> bool {
        let most = 1.0 / (1.0 - REMEMBERED);
        let began = [self.forward, self.backward];
        (0.0..=most).contains(&self.misses) && began.iter().all(|n| (0.0..=self.misses).contains(n))
    }

    /// After a miss the reader went on at this step.
    pub(super) fn went_on(&mut self, step: i64) {
        match step {
            1 => self.forward += 1.0,
            -1 => self.backward += 1.0,
            _ => {}
        }
    }

    /// The same, but no more runs than misses: not each miss that begins a run is counted.
    pub(super) fn bounded(self) -> Starts {
        let most = self.misses;
        Starts { forward: self.forward.min(most), backward: self.backward.min(most), ..self }
    }

    /// The step at which most runs that begin with a miss go on; `None` where most misses begin none.
    pub(super) fn step(&self, volume: &Starts) -> Option<i64> {
        let share = |count: f32, of_volume: f32| {
            let prior = of_volume / (volume.misses + PRIOR_MISSES);
            (count + PRIOR_MISSES * prior) / (self.misses + PRIOR_MISSES)
        };
        let is_most = |(share, _): &(f32, i64)| *share > MOST;
        let ways =
            [(share(self.forward, volume.forward), 1), (share(self.backward, volume.backward), -1)];
        ways.into_iter().find(is_most).map(|(_, step)| step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(misses: u32, went_on: u32, step: i64) -> Starts {
        let mut starts = Starts::default();
        for number in 0..misses {
            starts.miss();
            if number < went_on {
                starts.went_on(step);
            }
        }
        starts
    }

    #[test]
    fn a_miss_begins_a_run_where_most_did() {
        let none = Starts::default();
        assert_eq!(none.step(&none), None, "nothing is known");
        assert_eq!(starts(8, 8, 1).step(&none), Some(1));
        assert_eq!(starts(8, 8, -1).step(&none), Some(-1));
        assert_eq!(starts(8, 8, 16).step(&none), None, "strides are recognised later");
        assert_eq!(starts(8, 3, 1).step(&none), None);
    }

    #[test]
    fn a_new_file_is_expected_to_be_read_as_others_of_its_volume() {
        assert_eq!(Starts::default().step(&starts(30, 30, -1)), Some(-1));
        assert_eq!(starts(6, 0, 1).step(&starts(30, 30, -1)), None, "its own misses tell more");
    }
}
