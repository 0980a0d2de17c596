//! Measures a device: read-only, within limits of time and bytes.
//!
//! ```text
//!   random reads   4 KiB here and there, one at a time      latency, seek and rotation
//!   overlap        4 KiB, 1 2 4 ... 64 at once              concurrency; then large ones: bandwidth
//!   windows        4 KiB ... 16 MiB, read sequentially      the curve
//! ```
//!
//! Between slices, the kernel's counters show whether other programs used the disk or kept the
//! processors busy. If so, the slice is repeated after a pause. Figures that remain disturbed are
//! marked.

mod direct;
mod measured;
mod other_programs;
mod random;
mod report;
mod scatter;
mod sequential;
mod stop;
mod sweep;

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use linux::knob::{Borrowed, KnobError};

use crate::ground::{self, Ground};
use crate::target::Target;

use direct::Requests;
use other_programs::OtherPrograms;
use scatter::Scatter;
use sweep::{Figures, Sweep, Swept};

pub use measured::Measured;
pub use report::Report;
pub use scatter::RandomRead;
pub use stop::Stop;

/// How much time and data a measurement may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Total time.
    pub time: Duration,
    /// Approximate total of bytes read.
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

/// Shares of the time, in the order of measuring.
const RANDOM_SHARE: f64 = 0.10;
const OVERLAP_SHARE: f64 = 0.12;
const CURVE_SHARE: f64 = 0.76;

/// Read at most one part in this many of a large device.
const DEVICE_SHARE: u64 = 4;

/// A smaller device is read several times if needed.
const SMALL_DEVICE_BYTES: u64 = 4 << 30;

/// Why measuring ended without a result.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The user stopped it.
    #[error("stopped; the window is as it was")]
    Stopped,
    /// The window could not be set.
    #[error(transparent)]
    Knob(#[from] KnobError),
    /// Everything that could be read is in the page cache.
    #[error(
        "all of {0} is in the page cache, so the device cannot be measured; name something that was not read recently"
    )]
    Cached(PathBuf),
    /// Reading failed.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The target.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Measures `target`. Sets the `window`, if borrowed, to every size in turn; without it, estimates
/// the curve from direct requests.
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
    let others = OtherPrograms::on(target.disk.as_ref());
    let at_first = others.read();
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Use other places each time: a server may have cached the last ones.
    let scatter = Scatter::open(&target.sources, since_1970.as_nanos() as u64);
    let mut measured = Measured { is_estimate: window.is_none(), ..Measured::default() };
    match &scatter {
        Ok(scatter) => random::reads(scatter, &others, effort, stop, report, &mut measured)
            .map_err(unreadable)?,
        // Without direct reads, the curve must suffice.
        Err(_) if window.is_some() => {}
        Err(error) => return Err(unreadable(error.kind().into())),
    }
    report.part(1.0 - CURVE_SHARE, CURVE_SHARE);
    let sweep = Sweep {
        others: &others,
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
    measured.curve = swept.sizes.iter().filter_map(Figures::point).collect();
    let spoilt = swept.sizes.iter().filter(|size| size.is_disturbed(others_are_counted));
    measured.disturbed_kb = spoilt.map(|size| size.kb).collect();
    measured.disturbed |= !measured.disturbed_kb.is_empty();
    measured.waited |= swept.waited;
    measured.zero_share = swept.zero_share;
    measured.seconds = began.elapsed().as_secs_f64();
    let latency_s = sweep.latency_s;
    measured.wait_share = others
        .disturbance(at_first, measured.seconds, latency_s, sweep::REQUESTS_AT_ONCE)
        .wait_share;
    report.tell(1.0, "done");
    Ok(measured)
}

/// The bytes that a sweep may read.
fn most_bytes(target: &Target, effort: &Effort) -> u64 {
    let all = target.readable_bytes();
    let share = if all > SMALL_DEVICE_BYTES { all / DEVICE_SHARE } else { u64::MAX };
    effort.most_bytes.min(share)
}

/// The curve, measured with every window in turn.
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
            // No uncached range is long enough for this size; smaller ones may be.
            is_cached = true;
            return Ok(None);
        };
        window.set(kb)?;
        let pace = sequential::pace(&extent, bytes, slice, sweep.stop);
        // Evict the pages even if reading failed half-way.
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
