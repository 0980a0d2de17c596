//! What is shown of one device.

use std::fmt::{self, Display};

use linux::provenance;
use serde_json::{Value, json};

use crate::row::{FALLS_SHORT, Row};
use crate::small::Section;
use crate::trade_off::TradeOff;

/// All patterns on one device.
#[derive(Clone, Debug)]
pub struct Report {
    /// The device.
    pub device: String,
    /// Runs of each pattern under each setting.
    pub rounds: u32,
    /// One a pattern that is timed.
    pub rows: Vec<Row>,
    /// The random reader beside streams, by its pattern's name.
    pub trade_off: Option<(String, TradeOff)>,
    /// What was shown on a small machine.
    pub sections: Vec<Section>,
}

impl Report {
    /// The rows as JSON objects; the points of a trade-off, which have figures of their own, behind
    /// them.
    pub fn json_rows(&self) -> Vec<Value> {
        let points = self.trade_off.iter().flat_map(|(pattern, trade_off)| {
            trade_off.points.iter().map(move |point| {
                let mut row = json!(point);
                row["device"] = json!(self.device);
                row["pattern"] = json!(pattern);
                row
            })
        });
        let of_sections = self.sections.iter().flat_map(|section| {
            section.rows.iter().map(|row| {
                let mut row = row.clone();
                row["device"] = json!(self.device);
                row
            })
        });
        self.rows.iter().map(|row| json!(row)).chain(points).chain(of_sections).collect()
    }

    fn heading(&self) -> String {
        let rounds = match self.rounds {
            1 => "1 round".to_owned(),
            rounds => format!("medians of {rounds} rounds"),
        };
        format!("{}, Linux {}, {}, {rounds}", self.device, provenance::kernel(), provenance::date())
    }

    fn table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<21}{:>8}{:>9}{:>9}{:>10}{:>10} {:>8}{:>8}{:>8}",
            "pattern",
            "128K s",
            "4M s",
            "bowwave",
            "to 128K",
            "to best",
            "limit s",
            "read",
            "cpu s"
        )?;
        for row in &self.rows {
            writeln!(f, "{}", row.line())?;
        }
        if self.rows.iter().any(Row::falls_short) {
            writeln!(f, "! below {FALLS_SHORT} of the better static window")?;
        }
        for footnote in self.rows.iter().filter_map(Row::footnote) {
            writeln!(f, "{footnote}")?;
        }
        Ok(())
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.heading())?;
        if !self.rows.is_empty() {
            self.table(f)?;
        }
        if let Some((pattern, trade_off)) = &self.trade_off {
            let gap = if self.rows.is_empty() { "" } else { "\n" };
            write!(f, "{gap}{pattern}\n{trade_off}")?;
        }
        for (index, section) in self.sections.iter().enumerate() {
            let is_first = index == 0 && self.rows.is_empty() && self.trade_off.is_none();
            write!(f, "{}{}", if is_first { "" } else { "\n" }, section.text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Verdict;
    use crate::row::tests::{late, row, sample};

    fn report(rows: Vec<Row>) -> Report {
        Report { device: "hdd".into(), rounds: 3, rows, trade_off: None, sections: Vec::new() }
    }

    fn fast() -> Row {
        row([vec![sample(2.0)], vec![sample(1.0)], vec![sample(0.5)]])
    }

    #[test]
    fn the_heading_tells_where_when_and_how_often() {
        let text = report(vec![fast()]).to_string();
        let heading = text.lines().next().unwrap_or_default();
        assert!(heading.starts_with("hdd, Linux ") && heading.ends_with("medians of 3 rounds"));
    }

    #[test]
    fn marks_and_missing_figures_are_explained_below_the_table() {
        let slow = row([vec![sample(1.0)], vec![sample(1.0)], vec![sample(1.1)]]);
        let rejected = row([vec![late(1.0)], vec![sample(1.0)], vec![sample(1.0)]]);
        let skipped = Row { verdict: Verdict::Skipped { skipped: "no tac".into() }, ..fast() };
        let text = report(vec![fast(), slow, rejected, skipped]).to_string();
        for line in [
            "! below 0.97 of the better static window",
            "backward-64k: late",
            "backward-64k: no tac",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in {text}");
        }
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
        assert!(!report(vec![fast()]).to_string().contains('!'));
    }

    #[test]
    fn columns_line_up() {
        let text = report(vec![fast()]).to_string();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(lines[0].len(), lines[1].len());
    }

    #[test]
    fn json_rows_have_figures_or_a_reason_and_never_both() {
        let rejected = row([vec![late(1.0)], vec![sample(1.0)], vec![sample(1.0)]]);
        let rows = report(vec![fast(), rejected]).json_rows();
        assert_eq!(rows[0]["device"], "hdd");
        assert_eq!(rows[0]["bowwave_s"], 0.5);
        assert_eq!(rows[0].get("rejected"), None);
        assert_eq!(rows[1]["rejected"], "late");
        assert_eq!(rows[1].get("bowwave_s"), None);
    }

    #[test]
    fn tables_of_a_small_machine_follow_one_another() {
        let section = |text: &str| Section { text: text.into(), rows: vec![json!({ "a": 1 })] };
        let sections = vec![section("one\n"), section("two\n")];
        let report = Report { sections, ..report(Vec::new()) };
        assert!(report.to_string().ends_with("3 rounds\none\n\ntwo\n"), "{report}");
        assert_eq!(report.json_rows()[1]["device"], "hdd");
    }

    #[test]
    fn points_of_a_trade_off_are_rows_of_their_own() {
        let samples: Vec<_> = TradeOff::SETTINGS.iter().map(|_| vec![late(1.0)]).collect();
        let trade_off = Some(("beside".to_owned(), TradeOff::of(&samples)));
        let rows = Report { trade_off, ..report(Vec::new()) }.json_rows();
        assert_eq!(rows.len(), 5);
        assert_eq!(rows[4]["pattern"], "beside");
        assert_eq!(rows[4]["setting"], "bowwave");
        assert_eq!(rows[4]["device"], "hdd");
    }
}
