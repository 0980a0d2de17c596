//! Where runs end: survival curves after Kaplan and Meier, which fade.
//!
//! ```text
//!   P(run >= x)  1 |-----.
//!                  |     '--.                  a step down at each place where runs have ended
//!                  |        '-----------.
//!                0 +--------------------'----> x, in units
//!                    bins: quarters of an octave
//! ```
//!
//! For each bin, a curve counts the runs that ended in it, and those that got past it. A run that goes on, or that
//! the end of the file has cut, counts where it has got past, and nowhere as ended (it is *censored*). Of the runs
//! that reach a bin, the share that ends there is
//!
//! ```text
//!   (ended + 2 prior) / (ended + passed + 2)
//! ```
//!
//! The prior of a file's curve is what its volume's curve tells; the prior of that is that no run ends. So without
//! evidence nothing is cut: windows follow from the tail alone.
//!
//! A bin remembers the largest length that ended in it of late, so that runs which all end at 1 MiB are known to end
//! there and not merely in that quarter of an octave.

use serde::{Deserialize, Serialize};

use super::number::real;

/// Quarters of octaves, up to 2^25 units: 128 GiB in pages. Whatever is longer counts as that long.
const BINS: usize = 96;

/// What the prior weighs, in runs.
const PRIOR_RUNS: f32 = 2.0;

/// With each run that ends, the past weighs a little less: about the last 33 runs count.
const REMEMBERED: f32 = 0.97;

/// What all remembered runs weigh together, if all of them have ended.
const MOST_RUNS: f32 = 1.0 / (1.0 - REMEMBERED);

/// With each run that ends in a bin, the largest length there shrinks by one part in this many. A bin is a fifth wide,
/// so a few runs forget it.
const FORGOTTEN_LENGTH: u32 = 16;

/// The bin of runs of this length. Round lengths are the longest of their bins, as many runs are that long.
fn bin(units: u64) -> usize {
    let units = units.saturating_sub(1).max(1);
    let octave = units.ilog2() as usize;
    if octave < 2 {
        return units as usize - 1;
    }
    let quarter = (units >> (octave - 2)) as usize & 3;
    (4 * (octave - 1) + quarter - 1).min(BINS - 1)
}

/// Runs that have ended and got past.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "Vec<Bin>", try_from = "Vec<Bin>")]
pub struct Curve {
    ended: [f32; BINS],
    passed: [f32; BINS],
    /// The largest length that ended in each bin of late, in units.
    longest: [u32; BINS],
    /// Whether any has ended.
    has_ends: bool,
}

/// A bin that is not empty, as it is written down: its number, [`Curve::ended`], [`Curve::passed`], [`Curve::longest`].
type Bin = (u8, f32, f32, u32);

impl From<Curve> for Vec<Bin> {
    fn from(curve: Curve) -> Self {
        let bins = (0..BINS).map(|bin| (curve.ended[bin], curve.passed[bin], curve.longest[bin]));
        let bins = bins.enumerate().filter(|(_, counts)| *counts != (0.0, 0.0, 0));
        bins.map(|(bin, (ended, passed, longest))| (bin as u8, ended, passed, longest)).collect()
    }
}

impl TryFrom<Vec<Bin>> for Curve {
    type Error = String;

    fn try_from(bins: Vec<Bin>) -> Result<Self, String> {
        let mut curve = Curve::default();
        for (number, ended, passed, longest) in bins {
            let bin = usize::from(number);
            if bin >= BINS {
                return Err(format!("a curve has {BINS} bins, so there is no bin {number}"));
            }
            (curve.ended[bin], curve.passed[bin], curve.longest[bin]) = (ended, passed, longest);
            curve.has_ends |= longest > 0;
        }
        Ok(curve)
    }
}

impl Default for Curve {
    fn default() -> Self {
        Curve { ended: [0.0; BINS], passed: [0.0; BINS], longest: [0; BINS], has_ends: false }
    }
}

impl Curve {
    /// A run has come from one length to another, in units.
    pub fn pass(&mut self, from: u64, to: u64) {
        let (from, to) = (bin(from), bin(to));
        if from < to {
            self.passed[from..to].iter_mut().for_each(|passed| *passed += 1.0);
        }
    }

    /// A run has ended at this length, and did not merely stop being seen.
    pub fn end(&mut self, length: u64) {
        self.ended.iter_mut().chain(&mut self.passed).for_each(|runs| *runs *= REMEMBERED);
        let bin = bin(length);
        let length = length.clamp(1, u64::from(u32::MAX)) as u32;
        let known = self.longest[bin];
        self.longest[bin] = length.max(known - known / FORGOTTEN_LENGTH);
        self.ended[bin] += 1.0;
        self.has_ends = true;
    }

    /// A run that counted as ended at this length goes on after all.
    pub fn resume(&mut self, length: u64) {
        let ended = &mut self.ended[bin(length)];
        *ended = (*ended - 1.0).max(0.0);
    }

    /// Where a window for a run of length `reached` had best end, which begins at `from` and would end at `to`; an
    /// access costs as much as the transfer of `access_units`.
    ///
    /// A window that ends at `x` costs its transfer. The share `q` of the runs goes on beyond, and costs one more
    /// access and the rest. The least of `(x - from) + q (L B + to - x)` is taken.
    pub fn cut(&self, reached: u64, from: u64, to: u64, access_units: f64) -> u64 {
        if !self.has_ends {
            return to;
        }
        let end_in = |bin: usize| (self.longest[bin].into(), self.ending(bin, 0.0));
        cut(end_in, reached, from, to, access_units)
    }

    /// The same shares, but in each bin the runs weigh no more than if all of them had ended.
    pub(super) fn bounded(mut self) -> Curve {
        for (ended, passed) in self.ended.iter_mut().zip(&mut self.passed) {
            let share = MOST_RUNS / (*ended + *passed).max(MOST_RUNS);
            *ended *= share;
            *passed *= share;
        }
        self
    }

    /// Whether runs can have led to it.
    pub(super) fn is_possible(&self) -> bool {
        let mut counts = self.ended.iter().chain(&self.passed);
        counts.all(|runs| runs.is_finite() && *runs >= 0.0)
    }

    /// The share of the runs reaching a bin that ends in it.
    fn ending(&self, bin: usize, prior: f32) -> f32 {
        let ended = self.ended[bin];
        (ended + PRIOR_RUNS * prior) / (ended + self.passed[bin] + PRIOR_RUNS)
    }
}

/// See [`Curve::cut`]. `end_in` returns, for a bin, the length at which runs end there, and the share of the runs
/// reaching the bin that end there.
fn cut(
    end_in: impl Fn(usize) -> (u64, f32),
    reached: u64,
    from: u64,
    to: u64,
    access_units: f64,
) -> u64 {
    let (mut least, mut best) = (real(to.saturating_sub(from)), to);
    let mut reaching = 1.0;
    for bin in bin(reached)..=bin(to) {
        let (place, ending) = end_in(bin);
        if ending == 0.0 || place < reached {
            continue;
        }
        if place >= to {
            break;
        }
        reaching *= 1.0 - f64::from(ending);
        let end = place.max(from);
        let cost = real(end - from) + reaching * (access_units + real(to - end));
        if cost < least {
            (least, best) = (cost, end);
        }
    }
    best
}

/// What the runs of a file and of its volume tell of another one.
#[derive(Debug)]
pub(super) struct Lengths<'a> {
    pub(super) file: &'a mut Curve,
    pub(super) volume: &'a mut Curve,
}

impl Lengths<'_> {
    /// A run has come from one length to another, in units.
    pub(super) fn pass(&mut self, from: u64, to: u64) {
        self.file.pass(from, to);
        self.volume.pass(from, to);
    }

    /// A run has ended at this length.
    pub(super) fn end(&mut self, length: u64) {
        self.file.end(length);
        self.volume.end(length);
    }

    /// A run that counted as ended at this length goes on after all.
    pub(super) fn resume(&mut self, length: u64) {
        self.file.resume(length);
        self.volume.resume(length);
    }

    /// Whether a run of this file has ended.
    pub(super) fn have_ends(&self) -> bool {
        self.file.has_ends
    }

    /// Where a window had best end: see [`Curve::cut`].
    pub(super) fn cut(&self, reached: u64, from: u64, to: u64, access_units: f64) -> u64 {
        cut(|bin| self.end_in(bin), reached, from, to, access_units)
    }

    /// The length at which runs end in a bin, and the share of the runs reaching it that end there.
    fn end_in(&self, bin: usize) -> (u64, f32) {
        let ending = self.file.ending(bin, self.volume.ending(bin, 0.0));
        let place = match self.file.longest[bin] {
            0 => self.volume.longest[bin],
            known => known,
        };
        (u64::from(place), ending)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pages that a network volume streams during an access.
    const ACCESS: f64 = 610.0;

    /// Where a window of 800 units after a run of 16 is cut, once runs of these lengths have ended.
    fn cut_after(lengths: &[u64]) -> u64 {
        let (mut file, mut volume) = (Curve::default(), Curve::default());
        let mut known = Lengths { file: &mut file, volume: &mut volume };
        for length in lengths {
            known.pass(1, *length);
            known.end(*length);
        }
        known.cut(16, 16, 816, ACCESS)
    }

    #[test]
    fn a_bin_is_a_quarter_of_an_octave_and_ends_at_round_lengths() {
        assert_eq!([1, 2, 3, 4, 5, 6].map(bin), [0, 0, 1, 2, 3, 4]);
        assert!(bin(256) < bin(257) && bin(257) == bin(320) && bin(320) < bin(321));
        assert!((1..100_000).all(|units| bin(units) <= bin(units + 1)));
        assert_eq!(bin(u64::MAX), BINS - 1);
    }

    #[test]
    fn without_evidence_nothing_is_cut() {
        assert_eq!(cut_after(&[]), 816);
    }

    #[test]
    fn runs_of_one_length_are_known_to_end_there_after_a_few() {
        assert_eq!(cut_after(&[257; 4]), 257);
        assert_eq!(
            cut_after(&[300, 257, 257, 257, 257, 257, 257]),
            257,
            "a longer one is forgotten"
        );
    }

    #[test]
    fn a_curve_of_its_own_has_no_prior_but_that_no_run_ends() {
        let mut curve = Curve::default();
        assert_eq!(curve.cut(1, 1, 20, 3.0), 20);
        for _ in 0..4 {
            curve.pass(1, 3);
            curve.end(3);
        }
        assert_eq!(curve.cut(1, 1, 20, 3.0), 3);
        assert_eq!(curve.cut(3, 3, 20, 3.0), 3);
        assert_eq!(curve.cut(4, 4, 20, 3.0), 20, "none has ended there");
    }

    #[test]
    fn a_place_that_most_get_past_cuts_nothing() {
        assert_eq!(cut_after(&[100, 5000, 5000, 5000, 5000, 5000, 5000, 5000]), 816);
    }

    #[test]
    fn what_goes_on_after_all_has_not_ended() {
        let mut curve = Curve::default();
        (0..8).for_each(|_| curve.end(257));
        (0..8).for_each(|_| curve.resume(257));
        assert!(curve.ending(bin(257), 0.0) < 0.1);
    }

    proptest! {
        /// A cut is never beyond what would be asked for, nor before what is asked for already, and stands where a
        /// run has ended.
        #[test]
        fn a_cut_stands_where_a_run_has_ended(
            lengths in proptest::collection::vec(1u64..5_000, 0..40),
            reached in 1u64..3_000, ahead in 0u64..1_000, window in 1u64..5_000, access in 0.1f64..10_000.0,
        ) {
            let (mut file, mut volume) = (Curve::default(), Curve::default());
            let mut known = Lengths { file: &mut file, volume: &mut volume };
            for length in &lengths {
                known.pass(1, *length);
                known.end(*length);
            }
            let (from, to) = (reached + ahead, reached + ahead + window);
            let cut = known.cut(reached, from, to, access);
            prop_assert!((from..=to).contains(&cut));
            let is_a_length = |cut| file.longest.contains(&(cut as u32));
            prop_assert!(cut == from || cut == to || is_a_length(cut));
        }
    }
}
