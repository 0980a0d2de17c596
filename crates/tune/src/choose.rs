//! Chooses the window to set.
//!
//! ```text
//!   plateau of the curve                        smallest window that loses nothing
//!     at least L * B, on a disk with a head     so that parallel readers do not spend it on seeks
//!     at most  B * 40 ms, or the stock 128 KiB  so that a random fault in a mapped file stays quick
//!     at most  memory / 1024                    so that hundreds of streams fit
//! ```

use readahead::{DeviceCost, STOCK_WINDOW_KB};

use crate::curve::{self, Point};
use crate::formula;

/// The kernel reads and maps a whole window around a fault, so a random fault waits for it. Limit
/// that to 40 ms, the time of one frame of a film.
const FAULT_S: f64 = 0.040;

/// Figures for one size differ by this share between runs. It is added to what a plateau must reach, so that in doubt
/// the larger size is chosen, which loses nothing.
const MARGIN: f64 = 0.003;

/// With this bound, 512 streams of two windows each fit into memory.
const MEMORY_SHARE: u64 = 1024;

/// One page.
const LEAST_KB: u64 = 4;

/// The largest window to measure.
pub(crate) const MOST_KB: u64 = 16_384;

/// Why this size was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The curve's plateau begins there.
    Plateau,
    /// The plateau begins below, but with parallel readers the head would seek too often.
    Seeks,
    /// The plateau begins above, but random faults would wait too long.
    Faults,
    /// The plateau begins above, but the machine has little memory.
    Memory,
    /// The plateau begins at the largest size that could be measured in time. Larger ones may be
    /// better, so the window is not reduced.
    Unmeasured,
    /// Nothing could be measured; the device's capacity suggests it.
    Formula,
}

/// A choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// The window, in KiB.
    pub kb: u64,
    /// Why this size.
    pub reason: Reason,
    /// Throughput of a sequential reader relative to the current window; `None` if unknown.
    pub gain: Option<f64>,
}

/// Chooses a window from a curve (sorted by size) of a device with that cost; `None` without points. `is_positional`:
/// whether it has a head that moves. Without `current_kb`, no gain is known.
pub fn choose(
    curve: &[Point],
    cost: &DeviceCost,
    is_positional: bool,
    memory_bytes: u64,
    current_kb: Option<u64>,
) -> Option<Choice> {
    let plateau_kb = curve::plateau(curve, MARGIN)?.readahead_kb;
    let (mut kb, mut reason) = (plateau_kb, Reason::Plateau);
    let is_cut = curve.last().is_some_and(|last| last.readahead_kb == kb && kb < MOST_KB);
    if is_cut {
        (kb, reason) = (current_kb.unwrap_or(kb).max(kb), Reason::Unmeasured);
    }
    let access_kb = power_of_two_kb(cost.latency_s * cost.bandwidth);
    if is_positional && access_kb > kb {
        (kb, reason) = (access_kb, Reason::Seeks);
    }
    for (most_kb, bound) in bounds(cost, memory_bytes) {
        if kb > most_kb {
            (kb, reason) = (most_kb, bound);
        }
    }
    Some(Choice { kb, reason, gain: current_kb.and_then(|current| gain(curve, current, kb)) })
}

/// The largest window, in KiB, that does not harm others on such a device: random faults, and many streams at once.
pub fn most_kb(cost: &DeviceCost, memory_bytes: u64) -> u64 {
    bounds(cost, memory_bytes).into_iter().map(|(kb, _)| kb).fold(MOST_KB, u64::min)
}

/// The upper bounds, in KiB, and why.
fn bounds(cost: &DeviceCost, memory_bytes: u64) -> [(u64, Reason); 2] {
    [
        (power_of_two_kb(FAULT_S * cost.bandwidth).max(STOCK_WINDOW_KB), Reason::Faults),
        (power_of_two_kb((memory_bytes / MEMORY_SHARE) as f64), Reason::Memory),
    ]
}

/// The window that a device's capacity suggests, as far as memory allows.
pub fn by_formula(bytes: u64, memory_bytes: u64) -> Choice {
    let most_kb = power_of_two_kb((memory_bytes / MEMORY_SHARE) as f64).min(MOST_KB);
    Choice { kb: formula::readahead_kb(bytes).min(most_kb), reason: Reason::Formula, gain: None }
}

/// The largest power of two, in KiB, that does not exceed `bytes`.
fn power_of_two_kb(bytes: f64) -> u64 {
    let kb = (bytes / 1024.0) as u64;
    kb.checked_ilog2().map_or(LEAST_KB, |log| 1 << log).max(LEAST_KB)
}

fn gain(curve: &[Point], from_kb: u64, to_kb: u64) -> Option<f64> {
    Some(curve::at(curve, to_kb)? / curve::at(curve, from_kb)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: u64 = 16 << 30;

    #[test]
    fn what_the_capacity_suggests_fits_into_memory_and_is_no_larger_than_what_is_measured() {
        assert_eq!(by_formula(1 << 40, MEMORY).kb, 8192);
        assert_eq!(by_formula(1 << 40, 512 << 20).kb, 512);
        assert_eq!(by_formula(64 << 40, 1 << 40).kb, MOST_KB);
    }

    fn curve(seconds: impl Fn(f64) -> f64) -> Vec<Point> {
        let point = |log: u32| {
            let bytes = (4096u64 << log) as f64;
            Point { readahead_kb: 4 << log, mb_s: bytes * 1e-6 / seconds(bytes) }
        };
        (0..13).map(point).collect()
    }

    fn of_cost(cost: DeviceCost, is_positional: bool, memory: u64) -> Choice {
        let curve = curve(|bytes| cost.latency_s + bytes / cost.bandwidth);
        choose(&curve, &cost, is_positional, memory, Some(128)).expect("there is a curve")
    }

    #[test]
    fn the_plateau_is_chosen_and_its_gain_reported() {
        let stick = DeviceCost { latency_s: 0.0004, bandwidth: 34e6, concurrency: 1.0 };
        let choice = of_cost(stick, false, MEMORY);
        assert_eq!((choice.kb, choice.reason), (1024, Reason::Plateau));
        assert!(choice.gain.is_some_and(|gain| (1.05..1.12).contains(&gain)), "{choice:?}");
    }

    #[test]
    fn a_disks_window_covers_at_least_a_seek() {
        let disk = DeviceCost { latency_s: 0.0076, bandwidth: 100e6, concurrency: 1.0 };
        let flat = curve(|bytes| bytes / 100e6);
        let choice = choose(&flat, &disk, true, MEMORY, Some(128)).expect("there is a curve");
        assert_eq!((choice.kb, choice.reason), (512, Reason::Seeks));
        assert_eq!(choose(&flat, &disk, false, MEMORY, None).map(|c| c.kb), Some(4));
    }

    #[test]
    fn faults_and_memory_limit_the_window() {
        let far = DeviceCost { latency_s: 0.2, bandwidth: 50e6, concurrency: 32.0 };
        assert_eq!(of_cost(far, false, MEMORY).reason, Reason::Faults);
        let near = DeviceCost { latency_s: 0.005, bandwidth: 500e6, concurrency: 32.0 };
        let small = of_cost(near, false, 512 << 20);
        assert_eq!((small.kb, small.reason), (512, Reason::Memory));
        let slow = DeviceCost { latency_s: 0.006, bandwidth: 0.84e6, concurrency: 1.0 };
        assert!(of_cost(slow, false, MEMORY).kb <= 128, "no more than stock");
    }

    #[test]
    fn a_curve_that_was_cut_short_makes_no_window_smaller() {
        let slow = DeviceCost { latency_s: 0.5, bandwidth: 1e6, concurrency: 1.0 };
        let cut = &curve(|bytes| slow.latency_s + bytes / slow.bandwidth)[..5];
        let choice = choose(cut, &slow, false, MEMORY, Some(128)).expect("there is a curve");
        assert_eq!((choice.kb, choice.reason), (128, Reason::Unmeasured));
    }

    #[test]
    fn no_curve_no_choice() {
        let cost = DeviceCost { latency_s: 0.005, bandwidth: 500e6, concurrency: 32.0 };
        assert_eq!(choose(&[], &cost, false, MEMORY, None), None);
    }
}
