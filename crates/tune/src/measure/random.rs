//! Random reads: how long one takes, and how many overlap.

use std::io;
use std::time::{Duration, Instant};

use readahead::PAGE_BYTES;

use super::measured::Measured;
use super::other_programs::OtherPrograms;
use super::report::Report;
use super::scatter::Scatter;
use super::stop::Stop;
use super::{Effort, OVERLAP_SHARE, RANDOM_SHARE};

/// More reads would not improve the median.
const MOST_READS: usize = 2000;

/// The largest number of requests at once to try, doubling from one.
const MOST_AT_ONCE: usize = 64;

/// As many requests as most disks can queue.
const QUEUED: usize = 32;

/// The device overlaps requests if twice as many raise the rate by this factor.
const WORTH_DOUBLING: f64 = 1.4;

/// Size of a large request, which fills the device's bandwidth.
const LARGE_BYTES: usize = 1 << 20;

/// Measures latency and overlap, and repeats once what other programs disturbed.
pub(super) fn reads(
    scatter: &Scatter,
    others: &OtherPrograms,
    effort: &Effort,
    stop: &Stop,
    report: &mut Report<'_>,
    measured: &mut Measured,
) -> io::Result<()> {
    for is_again in [false, true] {
        report.part(0.0, RANDOM_SHARE);
        report.tell(0.0, "random reads");
        let time = effort.time.mul_f64(RANDOM_SHARE);
        let (before, began) = (others.read(), Instant::now());
        measured.random_reads = scatter.random_reads(time, MOST_READS, stop)?;
        measured.adjacent_s = Some(scatter.adjacent(time / 2, stop)?);
        let latency_s = measured.random_s(0.5).unwrap_or(0.001);
        let seconds = began.elapsed().as_secs_f64();
        let while_single = others.disturbance(before, seconds, latency_s, 1);
        report.part(RANDOM_SHARE, OVERLAP_SHARE);
        let (before, began) = (others.read(), Instant::now());
        overlap(scatter, effort.time.mul_f64(OVERLAP_SHARE), stop, report, measured)?;
        let at_once = measured.concurrency.unwrap_or(1);
        let seconds = began.elapsed().as_secs_f64();
        let while_many = others.disturbance(before, seconds, latency_s, at_once);
        measured.disturbed = !while_single.is_harmless() || !while_many.is_harmless();
        if !measured.disturbed || is_again || stop.is_wanted() {
            break;
        }
        measured.waited = true;
        others.wait_for_silence(effort.time.mul_f64(RANDOM_SHARE), stop);
    }
    Ok(())
}

/// Doubles the requests at once while the rate grows.
fn overlap(
    scatter: &Scatter,
    time: Duration,
    stop: &Stop,
    report: &mut Report<'_>,
    measured: &mut Measured,
) -> io::Result<()> {
    // One slice for each count, one with a full queue, two for large reads.
    let slice = time / (MOST_AT_ONCE.ilog2() + 4);
    let small = |at_once| scatter.rate(at_once, PAGE_BYTES as usize, slice, stop);
    let alone = small(1)?;
    let (mut at_once, mut rate) = (1, alone);
    while at_once < MOST_AT_ONCE && !stop.is_wanted() {
        report.tell(f64::from(at_once.ilog2()) / 8.0, &format!("{} reads at once", 2 * at_once));
        let twice = small(2 * at_once)?;
        if twice < WORTH_DOUBLING * rate {
            break;
        }
        (at_once, rate) = (2 * at_once, twice);
    }
    measured.concurrency = Some(at_once);
    measured.queue_gain = Some(small(QUEUED)? / alone);
    if at_once > 1 {
        let bytes = LARGE_BYTES.min(scatter.largest_bytes());
        let large = scatter.rate(at_once, bytes, slice * 2, stop)?;
        measured.overlapped_mb_s = Some(large * bytes as f64 * 1e-6);
    }
    Ok(())
}
