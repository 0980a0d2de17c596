//! How long a walker waits for a file that is not read ahead, and what it is spared.

use crate::Nanos;

/// The mean follows about so many steps: a walk waits for a few files before the first is read ahead.
const RECENT_STEPS: u8 = 8;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// When it missed a file, unless it has reached one that was read ahead since.
    missed_at: Option<Nanos>,
    /// Mean time from one missed file to the next, in seconds, no longer than an access.
    step_s: f64,
    /// How many such times that is the mean of, as far as it matters.
    steps: u8,
    /// Files that were requested, for which it waited all the same, and that do not count as used yet.
    late: u32,
    /// Bytes of the files that were requested and that it has not passed.
    ahead_bytes: u64,
}

/// What of the files ahead was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) files: u32,
    /// Files for which the program did not wait, as far as is known.
    pub(super) spared: u32,
    pub(super) bytes: u64,
}

impl Waits {
    /// It waits for a file that was not requested, on a device with that latency.
    pub(super) fn on_miss(&mut self, now: Nanos, latency_s: f64) {
        if let Some(before) = self.missed_at.replace(now) {
            let step_s = (now.saturating_sub(before) as f64 * 1e-9).min(latency_s);
            self.steps = (self.steps + 1).min(RECENT_STEPS);
            self.step_s += (step_s - self.step_s) / f64::from(self.steps);
        }
    }

    /// Seconds that it waits for one more file: no longer than it took from one to the next, since files of a directory
    /// often lie side by side, and threads of one program wait at the same time.
    pub(super) fn wait_s(&self, latency_s: f64) -> f64 {
        if self.steps == 0 { latency_s } else { self.step_s.min(latency_s) }
    }

    /// Files of so many bytes were requested.
    pub(super) fn on_request(&mut self, bytes: u64) {
        self.ahead_bytes = self.ahead_bytes.saturating_add(bytes);
    }

    /// It has reached a file that was requested. `is_late`: it waits for that file.
    pub(super) fn on_reach(&mut self, is_late: bool) {
        self.missed_at = None;
        self.late = self.late.saturating_add(is_late.into());
    }

    /// It has used so many files and passed over others; so many are still ahead.
    pub(super) fn pass(&mut self, files: u32, unused: u32, ahead: u32) -> Used {
        let late = self.late.min(files);
        self.late -= late;
        let all = f64::from(files) + f64::from(unused) + f64::from(ahead);
        let share = |count: u32| (self.ahead_bytes as f64 * (f64::from(count) / all)) as u64;
        // Without any file, the share is not a number, which the conversion makes 0.
        let (bytes, wasted) = (share(files), share(unused));
        self.ahead_bytes = self.ahead_bytes.saturating_sub(bytes.saturating_add(wasted));
        Used { files, spared: files - late, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATENCY_S: f64 = 0.007;
    const MS: Nanos = 1_000_000;

    #[test]
    fn a_wait_is_no_longer_than_the_step_from_one_missed_file_to_the_next() {
        let mut waits = Waits::default();
        assert_eq!(waits.wait_s(LATENCY_S), LATENCY_S, "nothing is known");
        waits.on_miss(0, LATENCY_S);
        waits.on_miss(3600 * 1000 * MS, LATENCY_S);
        assert_eq!(waits.wait_s(LATENCY_S), LATENCY_S, "it has paused");
        (1..=60).for_each(|at| waits.on_miss((3_600_000 + 2 * at) * MS, LATENCY_S));
        assert!((waits.wait_s(LATENCY_S) - 0.002).abs() < 1e-4, "{waits:?}");
    }

    #[test]
    fn a_few_steps_say_what_the_next_wait_would_have_been() {
        let mut waits = Waits::default();
        for at_ms in [0, 2, 4] {
            waits.on_miss(at_ms * MS, LATENCY_S);
        }
        assert!((waits.wait_s(LATENCY_S) - 0.002).abs() < 1e-9, "{waits:?}");
    }

    #[test]
    fn a_step_does_not_pass_over_files_that_were_read_ahead() {
        let mut waits = Waits::default();
        waits.on_miss(0, LATENCY_S);
        waits.on_reach(false);
        waits.on_miss(MS, LATENCY_S);
        assert_eq!(waits.wait_s(LATENCY_S), LATENCY_S);
    }

    #[test]
    fn a_file_for_which_the_program_waits_is_not_spared_also_if_it_counts_as_used_later() {
        let mut waits = Waits::default();
        waits.on_reach(true);
        assert_eq!(waits.pass(0, 0, 8).spared, 0);
        waits.on_reach(true);
        assert_eq!(waits.pass(5, 0, 3), Used { files: 5, spared: 3, bytes: 0 });
        assert_eq!(waits.pass(3, 0, 0).spared, 3);
    }

    #[test]
    fn bytes_are_given_back_once_each() {
        let mut waits = Waits::default();
        waits.on_request(8000);
        assert_eq!(waits.pass(2, 0, 6).bytes, 2000);
        assert_eq!(waits.pass(3, 1, 2).bytes, 3000);
        assert_eq!(waits.pass(2, 0, 0).bytes, 2000);
        assert_eq!(waits.pass(2, 0, 0).bytes, 0);
        assert_eq!(waits.pass(0, 0, 0), Used::default());
    }
}
