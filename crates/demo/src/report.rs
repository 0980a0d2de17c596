//! The rows, and the table they make.

use std::fmt::Write;

use serde::Serialize;

use crate::bench::Sample;
use crate::machine;

/// One pattern on one device: medians over the rounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The device.
    pub device: String,
    /// The pattern.
    pub pattern: String,
    /// Seconds with the kernel's window of 128 KiB.
    pub stock_128k_s: f64,
    /// Seconds with a window of 4 MiB.
    pub stock_4m_s: f64,
    /// Seconds under bowwave.
    pub bowwave_s: f64,
    /// The least the device needs for the bytes needed; unknown for a real disk.
    pub limit_s: Option<f64>,
    /// Bytes that the device delivered under bowwave.
    pub bytes_read: u64,
    /// Bytes of the pages that the pattern touches.
    pub bytes_needed: u64,
    /// CPU seconds that bowwave used during the run.
    pub daemon_cpu_s: f64,
    /// How late the device's replies were on average, at worst of all runs; none for a real disk.
    pub lateness_us: Option<f64>,
    /// Why the figures do not count, if so.
    pub rejected: Option<String>,
}

/// A row below this ratio to the better static setting is marked.
const FALLS_SHORT: f64 = 0.97;

impl Row {
    pub(crate) fn new(
        device: &str,
        pattern: &str,
        samples: &[Vec<Sample>; 3],
        bytes_needed: u64,
        limit_s: Option<f64>,
    ) -> Self {
        let seconds = |samples: &[Sample]| median(samples.iter().map(|s| s.outcome.seconds));
        let all = || samples.iter().flatten();
        let [stock, large, bowwave] = samples;
        Row {
            device: device.into(),
            pattern: pattern.into(),
            stock_128k_s: seconds(stock),
            stock_4m_s: seconds(large),
            bowwave_s: seconds(bowwave),
            limit_s,
            bytes_read: median(bowwave.iter().map(|s| s.bytes_read as f64)) as u64,
            bytes_needed,
            daemon_cpu_s: median(bowwave.iter().map(|s| s.daemon_cpu_s)),
            lateness_us: all().filter_map(|s| s.lateness_us).reduce(f64::max),
            rejected: all().find_map(|s| s.rejection.clone()),
        }
    }

    /// How many times faster than the kernel with its default window.
    pub fn to_stock(&self) -> f64 {
        self.stock_128k_s / self.bowwave_s
    }

    /// How many times faster than the better of the two static windows.
    pub fn to_better_static(&self) -> f64 {
        self.stock_128k_s.min(self.stock_4m_s) / self.bowwave_s
    }

    fn line(&self) -> String {
        if let Some(reason) = &self.rejected {
            return format!("{:<17} rejected: {reason}", self.pattern);
        }
        let mark = if self.to_better_static() < FALLS_SHORT { "!" } else { " " };
        format!(
            "{:<17}{:>9.3}{:>9.3}{:>9.3}{:>8.1}x{:>8.2}x{mark}{:>8}{:>7.2}{:>8.3}",
            self.pattern,
            self.stock_128k_s,
            self.stock_4m_s,
            self.bowwave_s,
            self.to_stock(),
            self.to_better_static(),
            self.limit_s.map_or("-".into(), |limit| format!("{limit:.3}")),
            self.bytes_read as f64 / self.bytes_needed as f64,
            self.daemon_cpu_s,
        )
    }
}

/// The table of one device.
pub fn render(device: &str, rounds: u32, rows: &[Row]) -> String {
    let mut out = format!(
        "{device}, Linux {}, {}, {}\n{:<17}{:>9}{:>9}{:>9}{:>9}{:>9} {:>8}{:>7}{:>8}\n",
        machine::kernel(),
        machine::date(),
        if rounds == 1 { "1 round".into() } else { format!("medians of {rounds} rounds") },
        "pattern",
        "128K s",
        "4M s",
        "bowwave",
        "to 128K",
        "to best",
        "limit",
        "read",
        "cpu s",
    );
    for row in rows {
        let _ = writeln!(out, "{}", row.line());
    }
    if rows.iter().any(|row| row.rejected.is_none() && row.to_better_static() < FALLS_SHORT) {
        let _ = writeln!(out, "! below {FALLS_SHORT} of the better static window");
    }
    out
}

/// The middle value; the mean of the two middle ones of an even number.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row {
            device: "hdd".into(),
            pattern: "backward-64k".into(),
            stock_128k_s: 2.455,
            stock_4m_s: 2.457,
            bowwave_s: 0.25,
            limit_s: Some(0.21),
            bytes_read: 21 << 20,
            bytes_needed: 20 << 20,
            daemon_cpu_s: 0.004,
            lateness_us: Some(31.0),
            rejected: None,
        }
    }

    #[test]
    fn a_row_shows_ratios_to_both_static_windows_and_fits_a_terminal() {
        let line = row().line();
        assert!(line.contains("9.8x") && line.contains("9.82x") && line.contains("1.05"), "{line}");
        assert!(line.len() <= 100);
    }

    #[test]
    fn a_row_that_falls_short_is_marked_and_explained() {
        let slow = Row { bowwave_s: 2.6, ..row() };
        let table = render("hdd", 1, &[slow]);
        assert!(table.contains("0.94x!") && table.contains("! below 0.97"), "{table}");
    }

    #[test]
    fn a_rejected_row_shows_no_figures() {
        let line = Row { rejected: Some("late".into()), ..row() }.line();
        assert!(line.contains("rejected: late") && !line.contains("2.455"), "{line}");
    }

    #[test]
    fn medians_are_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
    }
}
