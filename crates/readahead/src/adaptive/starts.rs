//! What becomes of misses that no stream explains: does a run begin there, and which way does it go?
//!
//! A run is recognised at its second miss. Where most misses turn out to begin runs that all go one way, the
//! next one is taken for the start of a run at once, which spares its reader a device access.

use super::share::Share;

/// Of recent misses, those that began runs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Starts {
    forward: Share,
    backward: Share,
}

impl Starts {
    /// A miss that belongs to no stream.
    pub(super) fn miss(&mut self) {
        self.forward.note();
        self.backward.note();
    }

    /// After a miss the reader went on at this step.
    pub(super) fn went_on(&mut self, step: i64) {
        match step {
            1 => self.forward.add(1.0),
            -1 => self.backward.add(1.0),
            _ => {}
        }
    }

    /// The step at which more than half of the runs that begin with a miss go on, if there is one. The misses of the
    /// volume tell what to expect of a file; without any, no run is expected.
    pub(super) fn step(&self, volume: &Starts) -> Option<i64> {
        let are_most = |file: Share, volume: Share| file.of_kind(volume.of_kind(0.0)) > 0.5;
        if are_most(self.forward, volume.forward) {
            Some(1)
        } else {
            are_most(self.backward, volume.backward).then_some(-1)
        }
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
