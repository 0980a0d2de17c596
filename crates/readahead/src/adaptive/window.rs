//! The size of a window, and when to ask for the next.

use super::number::real;
use super::run::{Ahead, Run};
use crate::cost::DeviceCost;

/// What a stream's next units cost on a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnitCost {
    /// Seconds that one device access stalls the reader.
    pub stall_s: f64,
    /// Seconds that reading one unit more costs.
    pub unit_s: f64,
    /// Device accesses are served one at a time, so that one in vain delays all others.
    pub is_serial: bool,
    /// Units the device would have read during one stall.
    stall_units: f64,
}

impl UnitCost {
    fn new(cost: &DeviceCost, unit_s: f64) -> Self {
        let stall_s = cost.latency_s;
        UnitCost { stall_s, unit_s, is_serial: cost.is_serial(), stall_units: stall_s / unit_s }
    }

    /// Neighbouring pages: one device access, then streaming.
    pub(super) fn pages(cost: &DeviceCost) -> Self {
        Self::new(cost, cost.page_s())
    }

    /// Pieces of `len` pages every `step` pages: a device access each, as many at once as the device
    /// takes; a disk passes over the gaps at media rate.
    pub(super) fn pieces(cost: &DeviceCost, len: u64, step: u64) -> Self {
        let apart = if cost.is_serial() {
            (step as f64 * cost.page_s()).min(cost.latency_s)
        } else {
            cost.fetch_s(len)
        };
        Self::new(cost, apart)
    }

    /// The same, where each access costs only this share of one.
    pub(super) fn of_accesses(self, share: f64) -> Self {
        let (stall_s, stall_units) = (share * self.stall_s, share * self.stall_units);
        UnitCost { stall_s, stall_units, ..self }
    }

    /// Units the device would have read during one stall.
    pub fn stall_units(&self) -> f64 {
        self.stall_units
    }

    /// Units to read ahead of a run that has proven `run` units: `sqrt(2 r L / (a c))`, the
    /// geometric mean of what the stream has proven and what the device needs. It minimises device accesses
    /// plus waste when runs have the tail `P(run >= x) ~ x^-a`.
    pub(super) fn window(&self, run: Run) -> u64 {
        let units = (2.0 * real(run.read.max(1)) * self.stall_units() / run.tail_exponent).sqrt();
        whole(units).max(1)
    }

    /// Units from the mark to the end of the window, so that a reader of `rate` units a second does not stall. A window
    /// in the reader's direction arrives page by page: what the reader uses during a device access is enough, or half a
    /// window if others are served in between. A window against it must arrive whole on a disk. The factor 2 allows for
    /// a rate that was itself held back by stalls.
    ///
    /// Asking for the next window one page earlier saves at most `1/B`. It costs `w/B` if the run ends on that page,
    /// which one run in `r/a` does. While `a w > r`, that is too much on a device that serves one access at a time,
    /// where it delays others. There are two exceptions if there is room for two windows. A window against the reader's
    /// direction saves its whole transfer if it is requested in time. A file that is read from its start is mostly read
    /// to its end.
    pub(super) fn look_ahead(&self, ahead: Ahead) -> u64 {
        let window = real(ahead.window);
        let is_proven = ahead.run.tail_exponent * window <= real(ahead.run.read);
        let is_short = ahead.window > ahead.room / 2;
        let must_prove = is_short || (ahead.is_with_the_reader && !ahead.is_begun);
        if self.is_serial && must_prove && !is_proven {
            return 0;
        }
        let transfer_s = window * self.unit_s;
        let used_up = 2.0 * ahead.rate * (self.stall_s + transfer_s);
        let arrives = if ahead.is_with_the_reader {
            (2.0 * self.stall_units()).max(window / 2.0)
        } else {
            window
        };
        whole(used_up.min(arrives).min(window))
    }
}

/// Rounds up, to at least 0 and at most `i64::MAX`; NaN gives 0. A processor converts to a signed number in one
/// instruction; `f64::ceil` and unsigned numbers take a dozen.
fn whole(units: f64) -> u64 {
    let whole = units as i64;
    whole.saturating_add(i64::from((whole as f64) < units)).max(0) as u64
}

/// Whether reading a gap of `gap` pages costs less than another device access. A disk passes the gap in
/// the time it takes to read it, so there is nothing to save.
pub(super) fn bridging_pays(cost: &DeviceCost, gap: u64) -> bool {
    !cost.is_serial() && (gap as f64) * cost.page_s() < cost.access_s()
}

/// Whether reading pieces ahead saves anything, if the reader waits `stall_s` seconds for each. A disk serves a forward
/// stride at the same pace whoever asks; backwards, a batch read in ascending order saves the revolutions.
pub(super) fn striding_pays(cost: &DeviceCost, step: i64, stall_s: f64) -> bool {
    if !cost.is_serial() {
        return true;
    }
    step < 0 && (step.unsigned_abs() as f64) * cost.page_s() < stall_s
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: DeviceCost = DeviceCost { latency_s: 0.007, bandwidth: 100e6, concurrency: 1.0 };
    const VOLUME: DeviceCost = DeviceCost { latency_s: 0.005, bandwidth: 500e6, concurrency: 32.0 };

    fn run(read: u64) -> Run {
        Run { read, asked: read, tail_exponent: 1.0 }
    }

    #[test]
    fn a_window_is_the_geometric_mean_of_the_proven_run_and_twice_the_devices_need() {
        let volume = UnitCost::pages(&VOLUME);
        assert_eq!(volume.stall_units().round(), 610.0);
        assert_eq!(volume.window(run(1)), 35);
        assert_eq!(volume.window(run(10_000)), 3494);
        assert_eq!(UnitCost::pages(&DISK).window(run(2)), 27);
    }

    #[test]
    fn where_latency_costs_nothing_almost_nothing_is_read_extra() {
        let free = DeviceCost { latency_s: 1e-6, ..VOLUME };
        assert_eq!(UnitCost::pages(&free).window(run(100)), 5);
    }

    #[test]
    fn a_disk_is_asked_early_when_the_run_has_proven_its_window() {
        let ahead = |read, room| Ahead {
            rate: f64::INFINITY,
            window: 100,
            run: run(read),
            is_with_the_reader: true,
            is_begun: false,
            room,
        };
        let (disk, volume) = (UnitCost::pages(&DISK), UnitCost::pages(&VOLUME));
        assert_eq!(disk.look_ahead(ahead(99, u64::MAX)), 0);
        assert_eq!(disk.look_ahead(ahead(100, 150)), 100, "proven");
        assert_eq!(volume.look_ahead(ahead(99, 150)), 100, "delays nobody");
        for is_with_the_reader in [true, false] {
            let unproven = |room| Ahead { is_with_the_reader, is_begun: true, ..ahead(99, room) };
            assert_eq!(disk.look_ahead(unproven(199)), 0, "in short memory");
            assert_eq!(disk.look_ahead(unproven(200)), 100, "room for two");
        }
    }

    #[test]
    fn units_are_rounded_up() {
        for units in [0.0, 1e-9, 1.0, 1.0 + 1e-9, 2.5, 1e15 + 0.5, 1e18] {
            assert_eq!(whole(units), units.ceil() as u64, "{units}");
            assert_eq!(real(whole(units)), units.ceil());
        }
        assert_eq!((whole(-0.5), whole(f64::NAN)), (0, 0));
        assert_eq!(whole(real(u64::MAX)), i64::MAX as u64);
    }

    #[test]
    fn strided_pieces_fill_the_queue_of_a_volume() {
        let pieces = UnitCost::pieces(&VOLUME, 4, 256);
        assert_eq!(pieces.stall_units().round(), 32.0);
        assert_eq!(pieces.window(run(16)), 32);
    }

    #[test]
    fn a_gap_is_bridged_when_it_costs_less_than_a_visit() {
        assert!(
            bridging_pays(&VOLUME, 15),
            "60 KiB pass in 0.12 ms, a device access takes 0.16 ms"
        );
        assert!(!bridging_pays(&VOLUME, 48), "192 KiB pass in 0.39 ms");
        assert!(!bridging_pays(&DISK, 15), "a disk passes the gap anyway");
    }

    #[test]
    fn a_disk_gains_from_striding_backwards_only() {
        assert!(!striding_pays(&DISK, 64, 0.007));
        assert!(striding_pays(&DISK, -64, 0.007));
        assert!(!striding_pays(&DISK, -64, 0.002), "it hardly waits");
        assert!(
            !striding_pays(&DISK, -256, 0.007),
            "10 ms of media for a piece is worse than a device access"
        );
        assert!(striding_pays(&VOLUME, 256, 0.005));
    }
}
