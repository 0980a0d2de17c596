//! Measuring, read-only and within bounds of time and bytes.
//!
//! ```text
//!   random reads   4 KiB here and there, one at a time      latency, seek and rotation
//!   overlap        4 KiB, 1 2 4 ... 64 at once              concurrency; then large ones: bandwidth
//!   windows        4 KiB ... 16 MiB, read sequentially      the curve
//! ```
//!
//! Between the slices it is seen whether others used the disk. If so the slice is taken again after a
//! pause; what could not be measured in peace is marked.

mod direct;
mod foreign;
mod scatter;
mod sequential;
mod stop;
mod sweep;

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use live::knob::{Borrowed, KnobError};

use crate::curve::Point;
use crate::ground::{self, Ground};
use crate::target::Target;

use direct::Requests;
use foreign::Foreign;
use scatter::Scatter;
use sweep::{Sized, Sweep, Swept};

pub use scatter::Visit;
pub use stop::Stop;

/// How much may be spent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Time in all.
    pub time: Duration,
    /// Bytes read in all, about.
    pub most_bytes: u64,
}

impl Effort {
    /// A first impression: 8 seconds, 1 GiB.
    pub const QUICK: Effort = Effort { time: Duration::from_secs(8), most_bytes: 1 << 30 };
    /// The default: 30 seconds, 4 GiB.
    pub const NORMAL: Effort = Effort { time: Duration::from_secs(30), most_bytes: 4 << 30 };
    /// For slow devices and noisy machines: two minutes, 16 GiB.
    pub const THOROUGH: Effort = Effort { time: Duration::from_secs(120), most_bytes: 16 << 30 };
}

/// Shares of the time.
const VISITS_SHARE: f64 = 0.10;
const OVERLAP_SHARE: f64 = 0.12;
const CURVE_SHARE: f64 = 0.76;

/// Of a large device no more than this part is read.
const DEVICE_SHARE: u64 = 4;

/// Smaller devices are read as often as it takes.
const SMALL_DEVICE_BYTES: u64 = 4 << 30;

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

/// Why measuring ended without a result.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The user wanted it so.
    #[error("stopped; the window is as it was")]
    Stopped,
    /// The window could not be set.
    #[error(transparent)]
    Knob(#[from] KnobError),
    /// Everything that could be read is in the page cache.
    #[error(
        "{0} is in the page cache already, which tells nothing of the device; name something that was not read lately"
    )]
    Cached(PathBuf),
    /// Something cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// What is tuned.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

type Tell<'a> = dyn FnMut(f64, &str) + 'a;

/// Tells the user how far it is.
pub struct Report<'a> {
    tell: Box<Tell<'a>>,
    from: f64,
    share: f64,
}

impl<'a> Report<'a> {
    /// `tell` is given the part that is done, 0 to 1, and what is under way.
    pub fn to(tell: impl FnMut(f64, &str) + 'a) -> Self {
        Report { tell: Box::new(tell), from: 0.0, share: 1.0 }
    }

    #[cfg(test)]
    fn silent() -> Self {
        Report::to(|_, _| ())
    }

    /// The next part takes this share of the whole.
    fn part(&mut self, from: f64, share: f64) {
        (self.from, self.share) = (from, share);
    }

    fn tell(&mut self, part: f64, what: &str) {
        (self.tell)(self.from + self.share * part.min(1.0), what);
    }
}

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Throughput over windows; those that took too long are left out.
    pub curve: Vec<Point>,
    /// Windows whose figures others have spoilt.
    pub disturbed_kb: Vec<u64>,
    /// Whether the curve is of direct requests, as the window could not be set.
    pub is_estimate: bool,
    /// Single random reads; none where direct reads are impossible.
    pub visits: Vec<Visit>,
    /// Median seconds of reads without a gap between them.
    pub adjacent_s: Option<f64>,
    /// Random reads that overlap.
    pub concurrency: Option<usize>,
    /// Random reads a second with 32 at once, over those one at a time.
    pub queue_gain: Option<f64>,
    /// MB/s of large random reads, as many at once.
    pub overlapped_mb_s: Option<f64>,
    /// Whether a figure is spoilt.
    pub disturbed: bool,
    /// Whether others were waited for.
    pub waited: bool,
    /// Of what was read, the part that was nothing but zeros.
    pub zero_share: f64,
    /// Seconds it took.
    pub seconds: f64,
}

impl Measured {
    /// Seconds below which `part` of the random reads stayed.
    pub fn random_s(&self, part: f64) -> Option<f64> {
        let mut times: Vec<f64> = self.visits.iter().map(|visit| visit.seconds).collect();
        times.sort_by(f64::total_cmp);
        let index = ((times.len() as f64 * part) as usize).min(times.len().checked_sub(1)?);
        Some(times[index])
    }

    /// Whether a head has to move: reads that follow each other are much cheaper than others, and
    /// others do not overlap.
    pub fn is_positional(&self) -> bool {
        const MUCH_CHEAPER: f64 = 4.0;
        let Some((adjacent, random)) = self.adjacent_s.zip(self.random_s(0.5)) else {
            return false;
        };
        random > MUCH_CHEAPER * adjacent && self.concurrency.is_none_or(|at_once| at_once <= 2)
    }
}

/// Measures `target`. With `window` borrowed it is set to every size in turn; without, the curve is
/// estimated from direct requests.
///
/// # Errors
/// See [`MeasureError`].
pub fn measure(
    target: &Target,
    window: Option<&Borrowed>,
    effort: &Effort,
    stop: &Stop,
    report: &mut Report<'_>,
) -> Result<Measured, MeasureError> {
    let began = Instant::now();
    let unreadable = |error| MeasureError::Read { path: target.given.clone(), error };
    let foreign = Foreign::on(target.disk.as_ref());
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Other places each time: a server may have cached the last ones.
    let scatter = Scatter::open(&target.sources, since_1970.as_nanos() as u64);
    let mut measured = Measured {
        curve: Vec::new(),
        disturbed_kb: Vec::new(),
        is_estimate: window.is_none(),
        visits: Vec::new(),
        adjacent_s: None,
        concurrency: None,
        queue_gain: None,
        overlapped_mb_s: None,
        disturbed: false,
        waited: false,
        zero_share: 0.0,
        seconds: 0.0,
    };
    match &scatter {
        Ok(scatter) => {
            scattered(scatter, &foreign, effort, stop, report, &mut measured).map_err(unreadable)?
        }
        // No direct reads here: the curve has to do.
        Err(_) if window.is_some() => {}
        Err(error) => return Err(unreadable(error.kind().into())),
    }
    report.part(1.0 - CURVE_SHARE, CURVE_SHARE);
    let sweep = Sweep {
        foreign: &foreign,
        latency_s: measured.random_s(0.5).unwrap_or(0.001),
        time: effort.time.mul_f64(CURVE_SHARE),
        most_bytes: most_bytes(target, effort),
        stop,
    };
    let swept = match window {
        Some(window) => with_windows(target, window, &sweep, report)?,
        None => with_requests(target, &sweep, report)?,
    };
    let others_are_counted = target.disk.is_some();
    measured.curve = swept.sizes.iter().filter_map(Sized::point).collect();
    let spoilt = swept.sizes.iter().filter(|size| size.is_disturbed(others_are_counted));
    measured.disturbed_kb = spoilt.map(|size| size.kb).collect();
    measured.disturbed |= !measured.disturbed_kb.is_empty();
    measured.waited |= swept.waited;
    measured.zero_share = swept.zero_share;
    measured.seconds = began.elapsed().as_secs_f64();
    report.tell(1.0, "done");
    Ok(measured)
}

fn most_bytes(target: &Target, effort: &Effort) -> u64 {
    let all = target.readable_bytes();
    let share = if all > SMALL_DEVICE_BYTES { all / DEVICE_SHARE } else { u64::MAX };
    effort.most_bytes.min(share)
}

/// Latency and overlap; what others spoil is taken again once.
fn scattered(
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

/// The curve, with every window set in turn.
fn with_windows(
    target: &Target,
    window: &Borrowed,
    sweep: &Sweep<'_>,
    report: &mut Report<'_>,
) -> Result<Swept, MeasureError> {
    let unreadable = |error| MeasureError::Read { path: target.given.clone(), error };
    let mut ground = Ground::new(target.sources.clone());
    let mut is_cached = false;
    let pace = |kb: u64, wanted: u64, slice: Duration| {
        let bytes = kb * 1024;
        let extent = ground.take(sequential::extent_bytes(bytes, wanted)).map_err(unreadable)?;
        let Some(extent) = extent else {
            // No cold stretch is as long as this size needs; others may be.
            is_cached = true;
            return Ok(None);
        };
        window.set(kb)?;
        let pace = sequential::pace(&extent, bytes, slice, sweep.stop);
        // Evicted also where reading failed half-way.
        let left = ground::leave(&extent);
        let pace = pace.map_err(unreadable)?;
        left.map_err(unreadable)?;
        Ok(pace)
    };
    let swept = sweep.run(pace, report)?;
    if is_cached && swept.sizes.iter().all(|size| size.point().is_none()) {
        return Err(MeasureError::Cached(target.given.clone()));
    }
    Ok(swept)
}

/// The curve, from direct requests.
fn with_requests(
    target: &Target,
    sweep: &Sweep<'_>,
    report: &mut Report<'_>,
) -> Result<Swept, MeasureError> {
    let unreadable = |error| MeasureError::Read { path: target.given.clone(), error };
    let largest = target.sources.iter().max_by_key(|source| source.bytes);
    let Some(largest) = largest else {
        return Err(unreadable(io::ErrorKind::NotFound.into()));
    };
    let mut requests = Requests::open(largest).map_err(unreadable)?;
    let pace = |kb: u64, _, slice| requests.pace(kb * 1024, slice, sweep.stop).map_err(unreadable);
    sweep.run(pace, report)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(random_us: &[f64], adjacent_us: f64, concurrency: usize) -> Measured {
        let visit = |us: &f64| Visit { distance: 1 << 20, seconds: us * 1e-6 };
        Measured {
            curve: Vec::new(),
            disturbed_kb: Vec::new(),
            is_estimate: false,
            visits: random_us.iter().map(visit).collect(),
            adjacent_s: Some(adjacent_us * 1e-6),
            concurrency: Some(concurrency),
            queue_gain: None,
            overlapped_mb_s: None,
            disturbed: false,
            waited: false,
            zero_share: 0.0,
            seconds: 0.0,
        }
    }

    #[test]
    fn a_head_that_moves_shows_in_what_reads_cost() {
        assert!(measured(&[7000.0, 8000.0, 9000.0], 150.0, 1).is_positional());
        assert!(!measured(&[5000.0; 3], 5000.0, 32).is_positional(), "a network volume");
        assert!(!measured(&[5000.0; 3], 100.0, 32).is_positional(), "one that reads ahead itself");
        assert!(!measured(&[520.0; 3], 510.0, 1).is_positional(), "a stick");
    }

    #[test]
    fn percentiles_of_few_reads_are_of_those_there_are() {
        let measured = measured(&[3.0, 1.0, 2.0], 1.0, 1);
        assert_eq!(measured.random_s(0.5), Some(2e-6));
        assert_eq!(measured.random_s(0.99), Some(3e-6));
        assert_eq!(Measured { visits: Vec::new(), ..measured }.random_s(0.5), None);
    }
}
