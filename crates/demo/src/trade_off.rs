//! A random reader beside four streams or a walker: what throughput costs in latency.

use std::fmt::{self, Display};

use serde::Serialize;

use crate::bench::{DEFAULT_KB, Sample, Setting};
use crate::row::{Verdict, bound, counting, error_percent, median};

/// All settings on one device.
#[derive(Clone, Debug, PartialEq)]
pub struct TradeOff {
    /// One for each setting. The others are compared with the first.
    pub points: Vec<Point>,
}

/// One setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The setting.
    pub setting: String,
    /// The result.
    #[serde(flatten)]
    pub verdict: Verdict<Balance>,
}

/// Medians over the rounds that counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Balance {
    /// MB/s of the four streams together, or of the walker.
    pub streams_mb_s: f64,
    /// Median latency of the random reader, in milliseconds.
    pub median_ms: f64,
    /// Its 99th percentile, in milliseconds.
    pub p99_ms: f64,
    /// CPU seconds that bowwave used.
    pub daemon_cpu_s: f64,
    /// How far the other figures may be wrong because the machine was busy, in percent.
    pub error_percent: f64,
}

impl TradeOff {
    pub(crate) const SETTINGS: &[Setting] = &[
        Setting::Stock(DEFAULT_KB),
        Setting::Stock(512),
        Setting::Stock(1024),
        Setting::Stock(4096),
        Setting::Bowwave,
    ];

    /// From the samples of [`TradeOff::SETTINGS`], in that order.
    pub(crate) fn of(samples: &[Vec<Sample>]) -> Self {
        let points = Self::SETTINGS.iter().zip(samples).filter(|(_, runs)| !runs.is_empty());
        let point = |(setting, runs): (&Setting, &Vec<Sample>)| Point {
            setting: setting.to_string(),
            verdict: Verdict::balance(runs),
        };
        TradeOff { points: points.map(point).collect() }
    }
}

impl Verdict<Balance> {
    fn balance(runs: &[Sample]) -> Self {
        let counted = match counting(runs) {
            Ok(counted) => counted,
            Err(rejected) => return Verdict::Rejected { rejected },
        };
        let error_percent = error_percent(&counted);
        let balances: Vec<Balance> = counted.into_iter().filter_map(balance).collect();
        let over = |figure: fn(&Balance) -> f64| median(balances.iter().map(figure));
        Verdict::Measured(Balance {
            streams_mb_s: over(|b| b.streams_mb_s),
            median_ms: over(|b| b.median_ms),
            p99_ms: over(|b| b.p99_ms),
            daemon_cpu_s: over(|b| b.daemon_cpu_s),
            error_percent,
        })
    }
}

fn balance(run: &Sample) -> Option<Balance> {
    let beside = run.outcome.beside?;
    Some(Balance {
        streams_mb_s: beside.stream_bytes as f64 * 1e-6 / run.outcome.seconds,
        median_ms: beside.median_ms,
        p99_ms: beside.p99_ms,
        daemon_cpu_s: run.daemon_cpu_s,
        error_percent: run.error * 100.0,
    })
}

impl Display for TradeOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<14}{:>10}{:>10}{:>11}{:>10}{:>9}{:>7}{:>8}",
            "setting", "MB/s", "to 128K", "median ms", "to 128K", "p99 ms", "error", "cpu s"
        )?;
        let stock = self.points.first().and_then(|point| match &point.verdict {
            Verdict::Measured(balance) => Some(*balance),
            _ => None,
        });
        for Point { setting, verdict } in &self.points {
            match verdict {
                Verdict::Measured(balance) => {
                    let to_stock = |figure: fn(&Balance) -> f64| match &stock {
                        Some(stock) => format!("{:.2}x", figure(balance) / figure(stock)),
                        None => "-".into(),
                    };
                    writeln!(
                        f,
                        "{setting:<14}{:>10.1}{:>10}{:>11.1}{:>10}{:>9.0}{:>7}{:>8.3}",
                        balance.streams_mb_s,
                        to_stock(|balance| balance.streams_mb_s),
                        balance.median_ms,
                        to_stock(|balance| balance.median_ms),
                        balance.p99_ms,
                        bound(balance.error_percent),
                        balance.daemon_cpu_s,
                    )?;
                }
                Verdict::Rejected { rejected: why } | Verdict::Skipped { skipped: why } => {
                    writeln!(f, "{setting:<14}{why}")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::{sample, warm};
    use crate::worker::Beside;

    fn beside(mb: u64, median_ms: f64) -> Sample {
        let mut run = sample(4.0);
        run.outcome.beside =
            Some(Beside { stream_bytes: mb * 1_000_000, median_ms, p99_ms: 2.0 * median_ms });
        run
    }

    #[test]
    fn throughput_and_latency_are_shown_as_they_are_and_as_ratios_to_the_default() {
        let runs = [(184, 50.0), (220, 90.0), (280, 120.0), (368, 400.0), (276, 60.0)];
        let trade_off = TradeOff::of(&runs.map(|(mb, ms)| vec![beside(mb, ms)]));
        let text = trade_off.to_string();
        let last = text.lines().last().unwrap_or_default();
        for word in ["bowwave", "69.0", "1.50x", "60.0", "1.20x", "120"] {
            assert!(last.contains(word), "{word} in {last}");
        }
        assert!(text.lines().all(|line| line.len() <= 100));
    }

    #[test]
    fn a_setting_without_a_cold_run_says_so() {
        let mut samples: Vec<Vec<Sample>> = (0..5).map(|_| vec![beside(184, 50.0)]).collect();
        samples[0] = vec![warm(4.0)];
        let text = TradeOff::of(&samples).to_string();
        assert!(text.contains("stock 128K    not cold"), "{text}");
        assert!(text.lines().last().is_some_and(|line| line.contains(" - ")), "{text}");
    }
}
