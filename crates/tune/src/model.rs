//! Turns measurements into a device description, and that back into a curve.
//!
//! ```text
//!   a head moves:        seconds = command + settle + stroke * sqrt(distance) + a part of a turn
//!                        regression over the random reads; the residuals span one turn
//!   reads overlap:       latency of a random read, bandwidth of large ones at once
//!   they do not overlap: fitted to the curve (see fit)
//! ```
//!
//! A simulated machine with today's kernel then reads through the description with every measured
//! window, so each point's error is that of model and kernel together. Of the last two kinds, the
//! one with the smaller error is chosen: the host's own work overlaps with that of any device and
//! looks like a second read.

use device::{ChannelsSpec, DiskSpec, Spec};
use readahead::{DeviceCost, PAGE_BYTES};
use sim::{CpuCosts, Listed, Machine, Op, Parts, Reclaim};

use crate::curve::{self, Point};
use crate::fit;
use crate::measure::{Measured, RandomRead};

/// Speeds that disks turn at, in revolutions a minute.
const SPEEDS_RPM: [f64; 5] = [5400.0, 5900.0, 7200.0, 10_000.0, 15_000.0];

/// Some parameters cannot be measured from outside. They are those of most disks: a segment of half
/// a MiB, and shortest positioning time first with ageing.
const SEGMENT_KIB: u64 = 512;
const AGEING: f64 = 0.1;

/// A queue that raises the rate by this factor is real: choosing the nearest request saves about
/// half of the way.
const QUEUE_GAIN: f64 = 1.2;
const QUEUE_DEPTH: usize = 32;

/// Fewer random reads say nothing about seeks.
const LEAST_READS: usize = 16;

/// A read that crosses the whole disk and just misses its sector takes less than this many times
/// the median.
const MOST_TIMES_MEDIAN: f64 = 2.5;

/// Largest request of the block layer in KiB, if nothing else is known.
const REQUEST_KB: u64 = 1024;

/// A model of the measured device.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The description, as simulator and lab take it.
    pub spec: Spec,
    /// Error of the model's throughput at each point, in percent of the measured one.
    pub error_percent: Vec<f64>,
}

/// The largest error (rms, in percent) of a good model: those of the catalogue's devices have less (docs/tune.md).
pub const GOOD_PERCENT: f64 = 10.0;

impl Model {
    /// Whether it is near enough to what was measured to be relied on.
    pub fn is_good(&self) -> bool {
        self.rms_percent() <= GOOD_PERCENT
    }

    /// Root mean square of the errors, in percent.
    pub fn rms_percent(&self) -> f64 {
        let squares: f64 = self.error_percent.iter().map(|error| error * error).sum();
        (squares / self.error_percent.len().max(1) as f64).sqrt()
    }

    /// The device's cost as the policies use it.
    pub fn cost(&self) -> DeviceCost {
        self.spec.cost()
    }
}

/// Models a device of `bytes` bytes; `None` if too little was measured.
pub fn model(measured: &Measured, bytes: u64, description: &str) -> Option<Model> {
    let spec = |disk, channels| Spec {
        description: description.into(),
        disk,
        channels,
        raid5: None,
        tuned: None,
    };
    if measured.is_positional() {
        return judged(spec(Some(of_disk(measured, bytes)?), None), measured, bytes);
    }
    let candidates = [overlapping(measured), one_at_a_time(measured)];
    let models = candidates
        .into_iter()
        .flatten()
        .filter_map(|channels| judged(spec(None, Some(channels)), measured, bytes));
    models.min_by(|a, b| a.rms_percent().total_cmp(&b.rms_percent()))
}

/// Adds the errors of a description.
fn judged(spec: Spec, measured: &Measured, bytes: u64) -> Option<Model> {
    let error = |point: &Point| {
        let mb_s = simulated_mb_s(&spec, point.readahead_kb, bytes);
        mb_s.map(|mb_s| (mb_s / point.mb_s - 1.0) * 100.0)
    };
    let error_percent = measured.curve.iter().map(error).collect::<Option<_>>()?;
    Some(Model { spec, error_percent })
}

/// The curve's own fit: one read at a time.
fn one_at_a_time(measured: &Measured) -> Option<ChannelsSpec> {
    /// The host's own work overlaps with at most one read.
    const HOSTS_OVERLAP: usize = 2;
    measured.concurrency.is_none_or(|at_once| at_once <= HOSTS_OVERLAP).then_some(())?;
    fit::fit(&measured.curve).map(|fit| fit.channels)
}

/// Latency of a random read, and bandwidth of many at once; `None` unless reads overlap.
fn overlapping(measured: &Measured) -> Option<ChannelsSpec> {
    let concurrency = measured.concurrency.filter(|at_once| *at_once > 1)?;
    let random_s = measured.random_s(0.5)?;
    let best = curve::best(&measured.curve);
    let bandwidth_mb_s = measured.overlapped_mb_s.unwrap_or(0.0).max(best);
    if bandwidth_mb_s <= 0.0 {
        return None;
    }
    let transfer_s = PAGE_BYTES as f64 / (bandwidth_mb_s * 1e6);
    Some(ChannelsSpec {
        latency_us: (random_s - transfer_s).max(0.0) * 1e6,
        bandwidth_mb_s,
        concurrency,
        request_cap_kib: None,
        saturating_us: 0.0,
        saturating_kib: 0.0,
        jitter: 0.0,
        seed: 0,
    })
}

/// A disk with a head, on `bytes` bytes.
fn of_disk(measured: &Measured, bytes: u64) -> Option<DiskSpec> {
    let media_mb_s = curve::best(&measured.curve);
    if media_mb_s <= 0.0 || measured.random_reads.len() < LEAST_READS {
        return None;
    }
    let transfer_s = PAGE_BYTES as f64 / (media_mb_s * 1e6);
    // A read that took several times the median waited for something other than the disk.
    let most_s = MOST_TIMES_MEDIAN * measured.random_s(0.5)?;
    let usual: Vec<RandomRead> =
        measured.random_reads.iter().copied().filter(|read| read.seconds < most_s).collect();
    let (mean_s, per_root, spread_s) = regression(&usual);
    // The residuals are uniform over one turn, so their standard deviation is a turn over sqrt(12).
    let turn_s = nearest_turn_s(spread_s * 12f64.sqrt());
    let command_s = (measured.adjacent_s? - transfer_s).max(0.0);
    let settle_s = (mean_s - command_s - turn_s / 2.0 - transfer_s).max(0.0);
    let is_queueing = measured.queue_gain.is_some_and(|gain| gain >= QUEUE_GAIN);
    Some(DiskSpec {
        rpm: 60.0 / turn_s,
        media_mb_s,
        inner_mb_s: None,
        bus_mb_s: None,
        command_us: command_s * 1e6,
        settle_us: settle_s * 1e6,
        full_stroke_us: per_root * (bytes as f64).sqrt() * 1e6,
        capacity_gb: bytes as f64 * 1e-9,
        segment_kib: SEGMENT_KIB,
        segments: 1,
        look_ahead_kib: None,
        reads_whole_tracks: false,
        random_rotation: false,
        seed: 0,
        queue_depth: if is_queueing { QUEUE_DEPTH } else { 1 },
        ageing: AGEING,
    })
}

/// Linear regression of seconds over the square root of the distance: intercept, slope (not
/// negative) and standard deviation of the residuals.
fn regression(reads: &[RandomRead]) -> (f64, f64, f64) {
    let n = reads.len() as f64;
    let root = |read: &RandomRead| (read.distance as f64).sqrt();
    let mean = |of: &dyn Fn(&RandomRead) -> f64| reads.iter().map(of).sum::<f64>() / n;
    let (mean_root, mean_s) = (mean(&root), mean(&|read| read.seconds));
    let along = mean(&|read| (root(read) - mean_root) * (read.seconds - mean_s));
    let across = mean(&|read| (root(read) - mean_root).powi(2));
    let slope = if across > 0.0 { (along / across).max(0.0) } else { 0.0 };
    let start = mean_s - slope * mean_root;
    let deviation = mean(&|read| (read.seconds - start - slope * root(read)).powi(2)).sqrt();
    (start, slope, deviation)
}

/// Seconds per turn at the closest speed that disks have.
fn nearest_turn_s(estimate: f64) -> f64 {
    let distance = |rpm: &f64| (estimate.max(1e-9) * rpm / 60.0).ln().abs();
    let rpm = SPEEDS_RPM.into_iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
    60.0 / rpm.unwrap_or(SPEEDS_RPM[2])
}

/// MB/s of a sequential reader of the model, under today's kernel with this window.
fn simulated_mb_s(spec: &Spec, window_kb: u64, bytes: u64) -> Option<f64> {
    /// The kernel reaches its full window in these; timing starts after them, as in the measurement.
    const RAMP_WINDOWS: u64 = 3;
    const TIMED_WINDOWS: u64 = 8;
    /// Least number of bytes to time.
    const LEAST_BYTES: u64 = 1 << 20;
    let window = window_kb * 1024;
    let ramp = RAMP_WINDOWS * window;
    let timed = (TIMED_WINDOWS * window).max(LEAST_BYTES);
    let seconds = |length: u64| {
        let mut machine = machine(spec, window, bytes)?;
        let file = machine.add_file(ramp + timed + 2 * window);
        let open = machine.open(file);
        let reads = (0..length / PAGE_BYTES).map(move |page| Op::Read {
            open,
            at: page * PAGE_BYTES,
            bytes: PAGE_BYTES,
        });
        let reader = machine.spawn(0, Listed(reads));
        machine.run();
        Some(machine.outcome(reader).ended as f64 * 1e-9)
    };
    let time = seconds(ramp + timed)? - seconds(ramp)?;
    (time > 0.0).then_some(timed as f64 * 1e-6 / time)
}

/// A machine with the device and today's kernel, whose window has `window` bytes.
fn machine(spec: &Spec, window: u64, bytes: u64) -> Option<Machine> {
    /// Enough memory that nothing is evicted.
    const MEMORY_PAGES: u64 = 1 << 20;
    const DEPTH: usize = 64;
    Some(Machine::new(Parts {
        memory_pages: MEMORY_PAGES,
        kernel: historical::by_name("linux-6", 16)?,
        on_top: None,
        kernel_window: (window / PAGE_BYTES) as u32,
        elevator: iosched::by_name("noop", (REQUEST_KB * 2) as u32)?,
        device: spec.build(bytes),
        cost: spec.cost(),
        device_depth: DEPTH,
        request_pages: REQUEST_KB * 1024 / PAGE_BYTES,
        reclaim: Reclaim::UseOnceFirst,
        cpu: CpuCosts::default(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 4 << 30;

    /// The result of a perfect measurement of a device of the catalogue.
    fn measured(name: &str, concurrency: usize, adjacent_s: f64) -> Measured {
        let spec = device::load(name).expect("in the catalogue");
        let sizes = (0..13).map(|log| 4u64 << log);
        let point = |kb| {
            let mb_s = simulated_mb_s(&spec, kb, BYTES).expect("it is simulated");
            Point { readahead_kb: kb, mb_s }
        };
        Measured {
            curve: sizes.map(point).collect(),
            random_reads: random_reads(&spec),
            adjacent_s: Some(adjacent_s),
            concurrency: Some(concurrency),
            queue_gain: Some(1.5),
            ..Measured::default()
        }
    }

    /// Random reads, one at a time.
    fn random_reads(spec: &Spec) -> Vec<RandomRead> {
        let mut model = spec.build(BYTES);
        let (mut now, mut at) = (0u64, 0u64);
        let mut done = Vec::new();
        let read = |n: u64| {
            let place = (n as f64 * 0.618_033_988_75).sin().abs() * (BYTES - PAGE_BYTES) as f64;
            let offset = place as u64 / PAGE_BYTES * PAGE_BYTES;
            let request = device::Request { id: n, offset, bytes: PAGE_BYTES };
            // The host's own time varies.
            now += 20_000 + n * 7919 % 10_007;
            let began = now;
            model.submit(now, request);
            while let Some(next) = model.next_event() {
                now = next;
                model.advance(now, &mut done);
            }
            let read =
                RandomRead { distance: offset.abs_diff(at), seconds: (now - began) as f64 * 1e-9 };
            at = offset + PAGE_BYTES;
            read
        };
        (1..=400).map(read).collect()
    }

    fn within(found: f64, truth: f64, percent: f64) {
        assert!((found / truth - 1.0).abs() * 100.0 < percent, "{found} for {truth}");
    }

    #[test]
    fn a_disk_is_found_again() {
        let truth = device::load("hdd").expect("there").disk.expect("a disk");
        let model = model(&measured("hdd", 1, 141e-6), BYTES, "x").expect("a model");
        let found = model.spec.disk.as_ref().expect("a head that moves");
        within(found.rpm, truth.rpm, 0.1);
        within(found.media_mb_s, truth.media_mb_s, 2.0);
        // Over the part of the stroke that was measured.
        let stroke = truth.full_stroke_us * (BYTES as f64 / 40e9).sqrt();
        within(found.settle_us + found.full_stroke_us, truth.settle_us + stroke, 10.0);
        assert!(model.rms_percent() < 5.0, "{:?}", model.error_percent);
    }

    #[test]
    fn a_network_volume_is_found_again() {
        let model = model(&measured("net", 32, 5e-3), BYTES, "x").expect("a model");
        let found = model.spec.channels.as_ref().expect("channels");
        within(found.latency_us, 5000.0, 1.0);
        within(found.bandwidth_mb_s, 500.0, 2.0);
        assert!(model.rms_percent() < 2.0, "{:?}", model.error_percent);
    }

    #[test]
    fn a_stick_is_found_again() {
        let model = model(&measured("sd", 1, 522e-6), BYTES, "x").expect("a model");
        let found = model.spec.channels.as_ref().expect("channels");
        within(found.latency_us, 402.0, 10.0);
        within(found.bandwidth_mb_s, 34.0, 3.0);
        assert_eq!(found.request_cap_kib, Some(120));
        assert!(model.rms_percent() < 3.0, "{:?}", model.error_percent);
    }

    #[test]
    fn too_little_gives_no_model() {
        let nothing = Measured { curve: Vec::new(), ..measured("sd", 1, 522e-6) };
        assert_eq!(model(&nothing, BYTES, "x"), None);
    }

    #[test]
    fn rotation_times_are_those_of_real_disks() {
        within(60.0 / nearest_turn_s(0.0085), 7200.0, 0.01);
        within(60.0 / nearest_turn_s(0.0), 15_000.0, 0.01);
    }
}
