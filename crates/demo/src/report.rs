//! The pieces of a report, shown as they are finished.

use std::fmt::{self, Display};

use linux::provenance;
use serde_json::{Value, json};

use crate::row::{FALLS_SHORT, Row};
use crate::small::Section;
use crate::trade_off::TradeOff;

/// One piece.
#[derive(Clone, Debug)]
pub enum Report {
    /// The heading of a device.
    Device {
        /// Its name.
        device: String,
        /// Runs of each pattern under each setting.
        rounds: u32,
        /// Whether rows follow, below one line of headings.
        has_rows: bool,
    },
    /// A timed pattern.
    Row(Row),
    /// The random reader beside streams.
    TradeOff {
        /// The device.
        device: String,
        /// The pattern's name.
        pattern: String,
        /// All settings.
        trade_off: TradeOff,
    },
    /// A table of a small machine.
    Section {
        /// The device.
        device: String,
        /// The table.
        section: Section,
    },
    /// A message to the user.
    Note(String),
}

impl Report {
    /// The figures as JSON objects, one for each row or point of a trade-off.
    pub fn json_rows(&self) -> Vec<Value> {
        let of = |device: &str, mut row: Value| {
            row["device"] = json!(device);
            row
        };
        match self {
            Report::Device { .. } | Report::Note(_) => Vec::new(),
            Report::Row(row) => vec![json!(row)],
            Report::TradeOff { device, pattern, trade_off } => {
                let point = |point| {
                    let mut row = of(device, json!(point));
                    row["pattern"] = json!(pattern);
                    row
                };
                trade_off.points.iter().map(point).collect()
            }
            Report::Section { device, section } => {
                section.rows.iter().map(|row| of(device, row.clone())).collect()
            }
        }
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Report::Device { device, rounds, has_rows } => {
                let rounds = match rounds {
                    1 => "1 round".to_owned(),
                    rounds => format!("medians of {rounds} rounds"),
                };
                let (kernel, date) = (provenance::kernel(), provenance::date());
                write!(f, "\n{device}, Linux {kernel}, {date}, {rounds}")?;
                if *has_rows { write!(f, "\n{}", headings()) } else { Ok(()) }
            }
            Report::Row(row) => {
                write!(f, "{}", row.line())?;
                if row.falls_short() {
                    write!(f, "\n  ! below {FALLS_SHORT} of the better static window")?;
                }
                row.footnote().map_or(Ok(()), |footnote| write!(f, "\n  {footnote}"))
            }
            Report::TradeOff { pattern, trade_off, .. } => {
                write!(f, "\n{pattern}\n{}", trade_off.to_string().trim_end())
            }
            Report::Section { section, .. } => write!(f, "\n{}", section.text.trim_end()),
            Report::Note(note) => write!(f, "{note}"),
        }
    }
}

/// Below the last table.
pub const LEGEND: &str = "\
to 128K, to best: how many times faster bowwave is than the stock kernel with a window of 128 KiB, and with the
better of 128 KiB and 4 MiB. docs/demo.md explains the other columns. --list names all patterns, --full runs them.";

fn headings() -> String {
    format!(
        "{:<21}{:>7}      {:>7}      {:>7}      {:>8}{:>8} {:>8}{:>7}{:>8}",
        "pattern", "128K s", "4M s", "bowwave", "to 128K", "to best", "limit s", "read", "cpu s"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Verdict;
    use crate::row::tests::{row, sample, warm};

    fn fast() -> Row {
        row([vec![sample(2.0)], vec![sample(1.0)], vec![sample(0.5)]])
    }

    fn not_cold() -> Row {
        row([vec![warm(1.0)], vec![sample(1.0)], vec![sample(1.0)]])
    }

    #[test]
    fn a_device_is_headed_by_where_when_and_how_often() {
        let device = Report::Device { device: "hdd".into(), rounds: 3, has_rows: false };
        let text = device.to_string();
        assert!(
            text.starts_with("\nhdd, Linux ") && text.ends_with("medians of 3 rounds"),
            "{text}"
        );
    }

    #[test]
    fn columns_line_up() {
        let width = |text: &str| text.chars().count();
        assert_eq!(width(&headings()), width(&fast().line()));
        assert!(width(&headings()) <= 100);
    }

    #[test]
    fn marks_and_missing_figures_are_explained_below_their_row() {
        let slow = row([vec![sample(1.0)], vec![sample(1.0)], vec![sample(1.1)]]);
        let skipped = Row { verdict: Verdict::Skipped { skipped: "no tac".into() }, ..fast() };
        for (row, words) in [
            (slow, "  ! below 0.97 of the better static window"),
            (not_cold(), "  backward-64k: not cold"),
            (skipped, "  backward-64k: no tac"),
        ] {
            let text = Report::Row(row).to_string();
            assert_eq!(text.lines().nth(1), Some(words), "{text}");
        }
        assert_eq!(Report::Row(fast()).to_string().lines().count(), 1);
    }

    #[test]
    fn json_rows_have_figures_or_a_reason_and_never_both() {
        let (measured, rejected) =
            (Report::Row(fast()).json_rows(), Report::Row(not_cold()).json_rows());
        assert_eq!(measured[0]["device"], "hdd");
        assert_eq!(measured[0]["bowwave_s"], 0.5);
        assert_eq!(measured[0].get("rejected"), None);
        assert_eq!(rejected[0]["rejected"], "not cold");
        assert_eq!(rejected[0].get("bowwave_s"), None);
        assert!(Report::Note("a word".into()).json_rows().is_empty());
    }

    #[test]
    fn rows_of_a_small_machine_name_their_device() {
        let section = Section { text: "one\n".into(), rows: vec![json!({ "a": 1 })] };
        let report = Report::Section { device: "hdd".into(), section };
        assert_eq!(report.to_string(), "\none");
        assert_eq!(report.json_rows(), [json!({ "a": 1, "device": "hdd" })]);
    }

    #[test]
    fn points_of_a_trade_off_are_rows_of_their_own() {
        let samples: Vec<_> = TradeOff::SETTINGS.iter().map(|_| vec![warm(1.0)]).collect();
        let trade_off = TradeOff::of(&samples);
        let report = Report::TradeOff { device: "hdd".into(), pattern: "beside".into(), trade_off };
        let rows = report.json_rows();
        assert_eq!(rows.len(), 5);
        assert_eq!(rows[4]["pattern"], "beside");
        assert_eq!(rows[4]["setting"], "bowwave");
        assert_eq!(rows[4]["device"], "hdd");
    }
}
