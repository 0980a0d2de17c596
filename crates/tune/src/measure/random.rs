//! Random reads: what one takes, and how many overlap.

use std::io;
use std::time::{Duration, Instant};

use super::foreign::Foreign;
use super::measured::Measured;
use super::report::Report;
use super::scatter::Scatter;
use super::stop::Stop;
use super::{Effort, OVERLAP_SHARE, VISITS_SHARE};
use crate::ground;

/// More visits add nothing to a median.
const MOST_VISITS: usize = 2000;

/// Requests at once that are tried, doubling.
const MOST_AT_ONCE: usize = 64;

/// As many requests as the queues of most disks hold.
const QUEUED: usize = 32;

/// Twice the requests at once have to bring so much more for the device to overlap them.
const WORTH_DOUBLING: f64 = 1.4;

/// Large requests, of which the pipe is full.
const LARGE_BYTES: usize = 1 << 20;

/// Latency and overlap; what others spoil is taken again once.
pub(super) fn reads(
    scatter: &Scatter,
    foreign: &Foreign,
    effort: &Effort,
    stop: &Stop,
    report: &mut Report<'_>,
    measured: &mut Measured,
) -> io::Result<()> {
    for is_again in [false, true] {
        report.part(0.0, VISITS_SHARE);
        report.tell(0.0, "random reads");
        let before = foreign.read();
        let began = Instant::now();
        let time = effort.time.mul_f64(VISITS_SHARE);
        measured.visits = scatter.visits(time, MOST_VISITS, stop)?;
        measured.adjacent_s = Some(scatter.adjacent(time / 2, stop)?);
        let latency_s = measured.random_s(0.5).unwrap_or(0.001);
        report.part(VISITS_SHARE, OVERLAP_SHARE);
        overlap(scatter, effort.time.mul_f64(OVERLAP_SHARE), stop, report, measured)?;
        measured.disturbed = foreign.disturbed(before, began.elapsed().as_secs_f64(), latency_s);
        if !measured.disturbed || is_again || stop.is_wanted() {
            break;
        }
        measured.waited = true;
        foreign.wait_for_silence(effort.time.mul_f64(VISITS_SHARE), stop);
    }
    Ok(())
}

/// Doubles the requests at once for as long as that brings more.
fn overlap(
    scatter: &Scatter,
    time: Duration,
    stop: &Stop,
    report: &mut Report<'_>,
    measured: &mut Measured,
) -> io::Result<()> {
    let slice = time / (MOST_AT_ONCE.ilog2() + 4);
    let small = |at_once| scatter.rate(at_once, ground::PAGE_BYTES as usize, slice, stop);
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
