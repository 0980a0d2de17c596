//! What became of the files of a volume that were begun: were they read to the end?
//!
//! `tar`, `grep -r` or a compiler read file after file, and each is too short to prove anything by
//! itself; but those before it have. Of a file of `F` pages that is read to its end with
//! probability `p`, the run has the tail exponent `a` of `P(run >= F) = F^-a = p`, and the window
//! follows as for any other run.

use serde::{Deserialize, Serialize};

/// The scale-free prior (`a = 1`) counts as much as two files.
const PRIOR_FILES: f64 = 2.0;

/// With each file begun the past weighs a little less: about the last 32 files count.
const REMEMBERED: f64 = 31.0 / 32.0;

/// Files of one volume, of late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct CompletionRate {
    begun: f64,
    ended: f64,
}

impl CompletionRate {
    /// A file of `file_pages` pages is read from its start. Returns the tail exponent of its run, as the files before
    /// it suggest.
    pub(super) fn begin(&mut self, file_pages: u64) -> f64 {
        let pages = file_pages.max(2) as f64;
        let read_to_the_end = (self.ended + PRIOR_FILES / pages) / (self.begun + PRIOR_FILES);
        self.begun = self.begun * REMEMBERED + 1.0;
        self.ended *= REMEMBERED;
        -read_to_the_end.min(1.0).ln() / pages.ln()
    }

    /// Whether files can have led to it.
    pub(super) fn is_possible(&self) -> bool {
        let most = 1.0 / (1.0 - REMEMBERED);
        (0.0..=most).contains(&self.begun) && (0.0..=self.begun).contains(&self.ended)
    }

    /// A file that was begun was read to its end.
    pub(super) fn end(&mut self) {
        self.ended = (self.ended + 1.0).min(self.begun);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_file_is_scale_free() {
        assert!((CompletionRate::default().begin(256) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn after_files_read_to_the_end_the_next_is_expected_to_be() {
        let mut completion_rate = CompletionRate::default();
        for _ in 0..16 {
            completion_rate.begin(256);
            completion_rate.end();
        }
        let tail_exponent = completion_rate.begin(256);
        assert!(tail_exponent < 1.0 / 32.0, "{tail_exponent}");
    }

    #[test]
    fn after_files_of_which_only_the_start_was_read_the_next_is_not() {
        let mut completion_rate = CompletionRate::default();
        for _ in 0..64 {
            completion_rate.begin(256);
            completion_rate.end();
        }
        for _ in 0..64 {
            completion_rate.begin(256);
        }
        let tail_exponent = completion_rate.begin(256);
        assert!(tail_exponent > 0.3, "{tail_exponent}");
    }
}
