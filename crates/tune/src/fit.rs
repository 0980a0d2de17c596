//! Fits a device model to a curve.
//!
//! ```text
//!   t(s) = ceil(s / cap) * (L + L1 * (1 - e^(-min(s, cap)/s0))) + s / B
//!
//!   one window of s bytes takes t(s) = s / throughput; L, L1 and 1/B enter linearly
//! ```
//!
//! For each candidate of request cap and `s0`, least squares of the *relative* error give the three
//! linear unknowns, so that small and large windows count alike. The candidate with the smallest
//! error wins, but another term must pay for itself: it must reduce the error to 60 %. The result
//! is a `[channels]` table as in device files.

use device::ChannelsSpec;

use crate::curve::Point;

/// Request caps found in devices, from 64 KiB to 1 MiB, including usb-storage's 240 sectors.
const CAPS_KIB: [u64; 9] = [64, 88, 96, 120, 128, 240, 256, 512, 1024];

/// Sizes at which an SSD's overhead has grown to 63 %.
const SATURATING_KIB: [f64; 8] = [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 84.0, 128.0];

/// A model with one more number must reduce the error to this share.
const WORTH_A_NUMBER: f64 = 0.6;

/// Added to each error, in percent, so that no further number pays where a model is exact already.
const EXACT_PERCENT: f64 = 0.05;

/// A model fitted to a curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Latency, bandwidth, cap and saturating overhead, for one request at a time.
    pub channels: ChannelsSpec,
    /// Root mean square of the relative errors, in percent.
    pub rms_percent: f64,
}

/// The parameters of a candidate that do not enter linearly.
#[derive(Clone, Copy, Debug)]
struct Shape {
    cap_kib: Option<u64>,
    saturating_kib: Option<f64>,
}

impl Shape {
    /// How many parameters it has beyond latency and bandwidth.
    fn extra_numbers(self) -> i32 {
        i32::from(self.cap_kib.is_some()) + 2 * i32::from(self.saturating_kib.is_some())
    }

    fn commands(self, bytes: f64) -> f64 {
        self.cap_kib.map_or(1.0, |kib| (bytes / (kib as f64 * 1024.0)).ceil().max(1.0))
    }

    /// The factor of `L1`.
    fn saturation(self, bytes: f64) -> f64 {
        let command = self.cap_kib.map_or(bytes, |kib| bytes.min(kib as f64 * 1024.0));
        self.saturating_kib.map_or(0.0, |kib| 1.0 - (-command / (kib * 1024.0)).exp())
    }
}

/// Fits a model to a curve; `None` for fewer than three points or without throughput.
pub fn fit(curve: &[Point]) -> Option<Fit> {
    let samples: Vec<(f64, f64)> = curve
        .iter()
        .filter(|point| point.mb_s > 0.0 && point.readahead_kb > 0)
        .map(|point| {
            let bytes = point.readahead_kb as f64 * 1024.0;
            (bytes, bytes / (point.mb_s * 1e6))
        })
        .collect();
    if samples.len() < 3 {
        return None;
    }
    let fits = shapes().filter_map(|shape| Some((shape, solve(shape, &samples)?)));
    let penalised = |shape: &Shape, fit: &Fit| {
        (fit.rms_percent + EXACT_PERCENT) / WORTH_A_NUMBER.powi(shape.extra_numbers())
    };
    let best = fits.min_by(|a, b| penalised(&a.0, &a.1).total_cmp(&penalised(&b.0, &b.1)));
    best.map(|(_, fit)| fit)
}

fn shapes() -> impl Iterator<Item = Shape> {
    let caps = std::iter::once(None).chain(CAPS_KIB.into_iter().map(Some));
    caps.flat_map(|cap_kib| {
        let sizes = std::iter::once(None).chain(SATURATING_KIB.into_iter().map(Some));
        sizes.map(move |saturating_kib| Shape { cap_kib, saturating_kib })
    })
}

/// Least squares for one shape; `None` if no device could be like that.
fn solve(shape: Shape, samples: &[(f64, f64)]) -> Option<Fit> {
    let unknowns = if shape.saturating_kib.is_some() { 3 } else { 2 };
    let row = |bytes: f64| {
        let commands = shape.commands(bytes);
        [commands, bytes, commands * shape.saturation(bytes)]
    };
    let mut normal = [[0.0; 4]; 3];
    for (bytes, seconds) in samples {
        let weighed = row(*bytes).map(|x| x / seconds);
        for (i, line) in normal.iter_mut().enumerate().take(unknowns) {
            for j in 0..unknowns {
                line[j] += weighed[i] * weighed[j];
            }
            line[3] += weighed[i];
        }
    }
    let [latency, per_byte, saturating] = eliminate(normal, unknowns)?;
    let channels = ChannelsSpec {
        latency_us: latency * 1e6,
        bandwidth_mb_s: 1e-6 / per_byte,
        concurrency: 1,
        request_cap_kib: shape.cap_kib,
        saturating_us: saturating * 1e6,
        saturating_kib: shape.saturating_kib.unwrap_or(0.0),
        jitter: 0.0,
        seed: 0,
    };
    channels.check().ok()?;
    let error = |(bytes, seconds): &(f64, f64)| {
        let [a, b, c] = row(*bytes);
        (seconds / (a * latency + b * per_byte + c * saturating) - 1.0) * 100.0
    };
    let squares: f64 = samples.iter().map(error).map(|e| e * e).sum();
    Some(Fit { channels, rms_percent: (squares / samples.len() as f64).sqrt() })
}

/// Solves the first `n` of three normal equations. The last column holds their right sides.
fn eliminate(mut m: [[f64; 4]; 3], n: usize) -> Option<[f64; 3]> {
    for pivot in 0..n {
        let largest =
            (pivot..n).max_by(|a, b| m[*a][pivot].abs().total_cmp(&m[*b][pivot].abs()))?;
        m.swap(pivot, largest);
        if m[pivot][pivot].abs() < f64::MIN_POSITIVE {
            return None;
        }
        for other in (0..n).filter(|other| *other != pivot) {
            let factor = m[other][pivot] / m[pivot][pivot];
            for column in (pivot..n).chain([3]) {
                m[other][column] -= factor * m[pivot][column];
            }
        }
    }
    let mut solution = [0.0; 3];
    for (unknown, value) in solution.iter_mut().enumerate().take(n) {
        *value = m[unknown][3] / m[unknown][unknown];
    }
    Some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::tests::published;

    const SIZES_KB: [u64; 9] = [4, 16, 32, 64, 128, 256, 512, 1024, 2048];

    /// The curve of a device that takes `seconds` for a window of the given bytes.
    fn curve(seconds: impl Fn(f64) -> f64) -> Vec<Point> {
        let point = |readahead_kb: u64| {
            let bytes = readahead_kb as f64 * 1024.0;
            Point { readahead_kb, mb_s: bytes / seconds(bytes) / 1e6 }
        };
        SIZES_KB.into_iter().map(point).collect()
    }

    #[test]
    fn latency_and_bandwidth_are_found_again() {
        let fit = fit(&curve(|bytes| 0.005 + bytes / 100e6)).expect("there are points");
        assert!((fit.channels.latency_us - 5000.0).abs() < 1.0, "{fit:?}");
        assert!((fit.channels.bandwidth_mb_s - 100.0).abs() < 0.1, "{fit:?}");
        assert_eq!(fit.channels.request_cap_kib, None);
        assert!(fit.rms_percent < 0.01);
    }

    #[test]
    fn a_request_cap_is_found() {
        let capped = |bytes: f64| (bytes / 122_880.0).ceil() * 0.0004 + bytes / 34e6;
        let fit = fit(&curve(capped)).expect("there are points");
        assert_eq!(fit.channels.request_cap_kib, Some(120), "{fit:?}");
        assert!(fit.rms_percent < 0.1);
    }

    #[test]
    fn the_published_curves_are_fitted_within_three_percent() {
        for (device, curve, _) in published() {
            let fit = fit(&curve).expect(&device);
            assert!(fit.rms_percent < 3.0, "{device}: {fit:?}");
        }
    }

    #[test]
    fn too_few_points_fit_nothing() {
        assert_eq!(fit(&curve(|_| 1.0)[..2]), None);
        assert_eq!(fit(&[]), None);
    }
}
