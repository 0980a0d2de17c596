//! A random reader beside four streams: what throughput costs in latency.

use std::fmt::Write;

use serde::Serialize;

use crate::bench::{Sample, Setting};
use crate::report::median;

/// One setting's medians over the rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The setting.
    pub setting: String,
    /// MB/s of the four streams together.
    pub streams_mb_s: f64,
    /// Median latency of the random reader, in milliseconds.
    pub median_ms: f64,
    /// Its 99th percentile.
    pub p99_ms: f64,
    /// CPU seconds that bowwave used.
    pub daemon_cpu_s: f64,
}

/// All settings.
#[derive(Clone, Debug)]
pub struct TradeOff {
    samples: Vec<(Setting, Vec<Sample>)>,
}

impl TradeOff {
    pub(crate) const SETTINGS: [Setting; 5] = [
        Setting::Stock(128),
        Setting::Stock(512),
        Setting::Stock(1024),
        Setting::Stock(4096),
        Setting::Bowwave,
    ];

    pub(crate) fn new() -> Self {
        TradeOff { samples: Self::SETTINGS.iter().map(|s| (*s, Vec::new())).collect() }
    }

    pub(crate) fn add(&mut self, setting: Setting, sample: &Sample) {
        for (known, samples) in &mut self.samples {
            if *known == setting {
                samples.push(sample.clone());
            }
        }
    }

    /// The points of the trade-off.
    pub fn points(&self) -> Vec<Point> {
        self.samples.iter().map(|(setting, samples)| point(*setting, samples)).collect()
    }

    /// The points as a table; ratios are to the first row, the stock kernel.
    pub fn render(&self) -> String {
        let points = self.points();
        let mut out = format!(
            "random 4 KiB reader beside four streams\n{:<14}{:>10}{:>10}{:>11}{:>8}{:>9}{:>8}\n",
            "setting", "MB/s", "to 128K", "median ms", "to 128K", "p99 ms", "cpu s"
        );
        for point in &points {
            let _ = writeln!(
                out,
                "{:<14}{:>10.1}{:>9.2}x{:>11.1}{:>7.2}x{:>9.0}{:>8.3}",
                point.setting,
                point.streams_mb_s,
                point.streams_mb_s / points[0].streams_mb_s,
                point.median_ms,
                point.median_ms / points[0].median_ms,
                point.p99_ms,
                point.daemon_cpu_s,
            );
        }
        out
    }
}

fn point(setting: Setting, samples: &[Sample]) -> Point {
    let over = |figure: fn(&Sample) -> f64| median(samples.iter().map(figure));
    Point {
        setting: match setting {
            Setting::Stock(kb) => format!("stock {kb}K"),
            Setting::Bowwave => "bowwave".into(),
        },
        streams_mb_s: over(|s| s.outcome.stream_bytes as f64 * 1e-6 / s.outcome.seconds),
        median_ms: over(|s| quantile(&s.outcome.latencies_ms, 0.5)),
        p99_ms: over(|s| quantile(&s.outcome.latencies_ms, 0.99)),
        daemon_cpu_s: over(|s| s.daemon_cpu_s),
    }
}

/// Of sorted values.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((share * last as f64).round() as usize).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_the_sorted_values() {
        let values: Vec<f64> = (0..=100).map(f64::from).collect();
        assert_eq!(quantile(&values, 0.5), 50.0);
        assert_eq!(quantile(&values, 0.99), 99.0);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
