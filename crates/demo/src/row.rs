//! One pattern on one device: medians over the rounds, and ratios.

use serde::Serialize;
use serde_json::Value;

use crate::bench::{DEFAULT_KB, Sample, Setting};

/// The larger static window to compare with, in KiB: the usual advice for slow storage.
const LARGE_KB: u64 = 4096;

/// A row below this ratio to the better static window is marked. Runs differ by three hundredths.
pub(crate) const FALLS_SHORT: f64 = 0.97;

/// The result of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Verdict<F> {
    /// Figures.
    Measured(F),
    /// No run counted.
    Rejected {
        /// Why.
        rejected: String,
    },
    /// It cannot run here.
    Skipped {
        /// Why.
        skipped: String,
    },
}

/// One pattern on one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The device.
    pub device: String,
    /// The pattern.
    pub pattern: String,
    /// The result.
    #[serde(flatten)]
    pub verdict: Verdict<Figures>,
}

/// Medians over the rounds that counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Seconds with the kernel's window of 128 KiB.
    pub stock_128k_s: f64,
    /// Seconds with a window of 4 MiB.
    pub stock_4m_s: f64,
    /// Seconds under bowwave; unknown if it cannot run.
    pub bowwave_s: Option<f64>,
    /// The least time of the device for the bytes needed, in seconds; unknown for a real device.
    pub limit_s: Option<f64>,
    /// Bytes that the device delivered under bowwave, if it counts them.
    pub bytes_read: Option<u64>,
    /// Bytes of the pages that the pattern touches.
    pub bytes_needed: u64,
    /// CPU seconds of bowwave during the run; unknown if it cannot run.
    pub daemon_cpu_s: Option<f64>,
    /// How far each time may be wrong because the machine was busy, in percent.
    pub error_percent: ErrorPercent,
    /// Bowwave's report at the end of its last run.
    pub daemon: Value,
}

/// How far the times of a row may be wrong, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ErrorPercent {
    /// Of the kernel's window of 128 KiB.
    pub stock_128k: f64,
    /// Of the window of 4 MiB.
    pub stock_4m: f64,
    /// Of bowwave.
    pub bowwave: Option<f64>,
}

impl Row {
    pub(crate) const SETTINGS: &[Setting] =
        &[Setting::Stock(DEFAULT_KB), Setting::Stock(LARGE_KB), Setting::Bowwave];

    /// The row as text, with a dash for each unknown figure.
    pub(crate) fn line(&self) -> String {
        match &self.verdict {
            Verdict::Measured(figures) => format!("{:<21}{}", self.pattern, figures.columns()),
            Verdict::Rejected { .. } => format!("{:<21}not cold, see below", self.pattern),
            Verdict::Skipped { .. } => format!("{:<21}skipped, see below", self.pattern),
        }
    }

    /// Why there are no figures, if so.
    pub(crate) fn footnote(&self) -> Option<String> {
        match &self.verdict {
            Verdict::Measured(_) => None,
            Verdict::Rejected { rejected: why } | Verdict::Skipped { skipped: why } => {
                Some(format!("{}: {why}", self.pattern))
            }
        }
    }

    pub(crate) fn falls_short(&self) -> bool {
        matches!(&self.verdict, Verdict::Measured(figures) if figures.falls_short())
    }
}

impl Verdict<Figures> {
    /// From the samples of [`Row::SETTINGS`], in that order; no samples of bowwave if it cannot run.
    pub(crate) fn of(samples: &[Vec<Sample>], needed: u64, limit_s: Option<f64>) -> Self {
        let counted: Result<Vec<_>, _> = samples.iter().map(|runs| counting(runs)).collect();
        let counted = match counted {
            Ok(counted) => counted,
            Err(rejected) => return Verdict::Rejected { rejected },
        };
        let seconds = |at: usize| median(counted[at].iter().map(|run| run.outcome.seconds));
        let error = |at: usize| error_percent(&counted[at]);
        let managed = &counted[2];
        let is_managed = !managed.is_empty();
        let read: Option<Vec<u64>> = managed.iter().map(|run| run.bytes_read).collect();
        let read = read.filter(|_| is_managed);
        Verdict::Measured(Figures {
            stock_128k_s: seconds(0),
            stock_4m_s: seconds(1),
            bowwave_s: is_managed.then(|| seconds(2)),
            error_percent: ErrorPercent {
                stock_128k: error(0),
                stock_4m: error(1),
                bowwave: is_managed.then(|| error(2)),
            },
            limit_s,
            bytes_read: read.map(|read| median(read.iter().map(|bytes| *bytes as f64)) as u64),
            bytes_needed: needed,
            daemon_cpu_s: is_managed.then(|| median(managed.iter().map(|run| run.daemon_cpu_s))),
            daemon: managed.last().map(|run| run.daemon.clone()).unwrap_or_default(),
        })
    }
}

impl Figures {
    /// How many times faster than the kernel with its default window.
    pub fn to_stock(&self) -> Option<f64> {
        Some(self.stock_128k_s / self.bowwave_s?)
    }

    /// How many times faster than the better of the two static windows.
    pub fn to_better_static(&self) -> Option<f64> {
        Some(self.stock_128k_s.min(self.stock_4m_s) / self.bowwave_s?)
    }

    /// Bytes read to bytes needed; `None` if none were.
    fn read_to_needed(&self) -> Option<f64> {
        let bytes_read = self.bytes_read.filter(|_| self.bytes_needed > 0)?;
        Some(bytes_read as f64 / self.bytes_needed as f64)
    }

    fn falls_short(&self) -> bool {
        self.to_better_static().is_some_and(|ratio| ratio < FALLS_SHORT)
    }

    fn columns(&self) -> String {
        let dash = |figure: Option<String>| figure.unwrap_or_else(|| "-".into());
        let ratio = |ratio: Option<f64>| dash(ratio.map(|ratio| format!("{ratio:.2}x")));
        let seconds = |seconds: Option<f64>| dash(seconds.map(|seconds| format!("{seconds:.3}")));
        format!(
            "{:>7.3} {:<5}{:>7.3} {:<5}{:>7} {:<5}{:>8}{:>8}{}{:>8}{:>7}{:>8}",
            self.stock_128k_s,
            bound(self.error_percent.stock_128k),
            self.stock_4m_s,
            bound(self.error_percent.stock_4m),
            seconds(self.bowwave_s),
            self.error_percent.bowwave.map_or(String::new(), bound),
            ratio(self.to_stock()),
            ratio(self.to_better_static()),
            if self.falls_short() { "!" } else { " " },
            seconds(self.limit_s),
            dash(self.read_to_needed().map(|ratio| format!("{ratio:.2}"))),
            seconds(self.daemon_cpu_s),
        )
    }
}

/// The error of the worst run, in percent. The median of the runs is not worse.
pub(crate) fn error_percent(runs: &[&Sample]) -> f64 {
    runs.iter().map(|run| run.error * 100.0).fold(0.0, f64::max)
}

/// An error as it is shown, in whole percent, rounded up.
pub(crate) fn bound(percent: f64) -> String {
    format!("\u{b1}{:.0}%", percent.ceil())
}

/// The runs that count. If there are none, why the last one does not.
pub(crate) fn counting(runs: &[Sample]) -> Result<Vec<&Sample>, String> {
    let counted: Vec<&Sample> = runs.iter().filter(|run| run.rejection.is_none()).collect();
    match runs.last().and_then(|run| run.rejection.clone()) {
        Some(reason) if counted.is_empty() => Err(reason),
        _ => Ok(counted),
    }
}

/// The median; NaN without values.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    linux::median(values).unwrap_or(f64::NAN)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::worker::Outcome;

    pub(crate) fn sample(seconds: f64) -> Sample {
        Sample {
            outcome: Outcome { seconds, ..Outcome::default() },
            bytes_read: Some(21 << 20),
            daemon_cpu_s: 0.004,
            daemon: Value::Null,
            error: 0.021,
            rejection: None,
        }
    }

    pub(crate) fn warm(seconds: f64) -> Sample {
        Sample { rejection: Some("not cold".into()), error: 0.5, ..sample(seconds) }
    }

    pub(crate) fn row(samples: [Vec<Sample>; 3]) -> Row {
        Row {
            device: "hdd".into(),
            pattern: "backward-64k".into(),
            verdict: Verdict::of(&samples, 20 << 20, Some(0.21)),
        }
    }

    #[test]
    fn a_row_shows_ratios_to_both_static_windows_and_fits_a_terminal() {
        let row = row([vec![sample(2.455)], vec![sample(2.2)], vec![sample(0.25)]]);
        let line = row.line();
        for figure in ["2.455", "2.200", "0.250", "9.82x", "8.80x ", "0.210", "1.05", "0.004"] {
            assert!(line.contains(figure), "{figure} in {line}");
        }
        assert!(line.chars().count() <= 100, "{line}");
    }

    #[test]
    fn a_row_that_falls_short_of_the_better_window_is_marked() {
        let row = row([vec![sample(2.5)], vec![sample(0.94)], vec![sample(1.0)]]);
        assert!(row.falls_short() && row.line().contains("0.94x!"), "{}", row.line());
    }

    #[test]
    fn figures_are_medians_of_the_rounds_that_count() {
        let managed = vec![sample(0.2), warm(9.0), sample(0.4)];
        let row = row([vec![sample(2.0)], vec![sample(2.0)], managed]);
        let Verdict::Measured(figures) = row.verdict else { panic!("two rounds count") };
        assert!(figures.bowwave_s.is_some_and(|seconds| (seconds - 0.3).abs() < 1e-9));
    }

    #[test]
    fn a_setting_without_a_run_that_counts_leaves_no_figures() {
        let row = row([vec![sample(2.455)], vec![warm(2.4), warm(2.5)], vec![sample(0.25)]]);
        assert_eq!(row.verdict, Verdict::Rejected { rejected: "not cold".into() });
        assert!(!row.line().contains("2.455"));
        assert_eq!(row.footnote().as_deref(), Some("backward-64k: not cold"));
    }

    #[test]
    fn what_the_device_does_not_count_is_a_dash() {
        let unknown = || vec![Sample { bytes_read: None, ..sample(1.0) }];
        let verdict = Verdict::of(&[unknown(), unknown(), unknown()], 1 << 20, None);
        let row = Row { device: "local".into(), pattern: "seq-4k".into(), verdict };
        assert_eq!(row.line().split_whitespace().filter(|word| *word == "-").count(), 2);
    }

    #[test]
    fn each_time_is_shown_with_its_error_which_is_that_of_the_worst_run() {
        let busy = Sample { error: 0.182, ..sample(0.3) };
        let row = row([vec![sample(2.0)], vec![sample(2.0)], vec![busy, sample(0.2)]]);
        assert!(
            row.line().contains("2.000 \u{b1}3%") && row.line().contains("0.250 \u{b1}19%"),
            "{}",
            row.line()
        );
        let errors = &serde_json::json!(row)["error_percent"];
        assert!(errors["bowwave"].as_f64().is_some_and(|error| (error - 18.2).abs() < 1e-9));
        assert!(errors["stock_4m"].as_f64().is_some_and(|error| (error - 2.1).abs() < 1e-9));
    }

    #[test]
    fn where_bowwave_cannot_run_the_stock_kernel_is_shown_without_it() {
        let row = row([vec![sample(2.0)], vec![sample(1.5)], Vec::new()]);
        assert!(row.line().contains("1.500 \u{b1}3%        -"), "{}", row.line());
        assert!(!row.falls_short());
    }

    #[test]
    fn medians_are_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
    }
}
