//! A table: published figures beside simulated ones.

use std::collections::HashSet;

use sim::Plot;

/// How a simulated figure relates to the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It has to be the same, to the last digit.
    Exact,
    /// An unknown of the experiment was chosen to bring it near.
    Calibrated,
    /// It follows from what other figures were calibrated to.
    Prediction,
}

impl Kind {
    /// As programs are told.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Exact => "exact",
            Kind::Calibrated => "calibrated",
            Kind::Prediction => "prediction",
        }
    }
}

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The row, as the published table names it.
    pub row: String,
    /// The policy or elevator: the column.
    pub policy: String,
    /// `s`, `pages`, `MB/s` ...
    pub unit: &'static str,
    /// The published figure, if there is one.
    pub published: Option<f64>,
    /// The simulator's.
    pub simulated: f64,
    /// Whether it was calibrated.
    pub kind: Kind,
}

impl Figure {
    /// Simulated over published, less one; `None` where either is missing.
    pub fn error(&self) -> Option<f64> {
        let published = self.published.filter(|published| *published != 0.0)?;
        self.simulated.is_finite().then(|| self.simulated / published - 1.0)
    }

    /// Whether it is too far from the published figure to stand for it: by a quarter, or at all where
    /// it has to be exact.
    pub fn is_off(&self) -> bool {
        let limit = if self.kind == Kind::Exact { 0.0 } else { 0.25 };
        match (self.published, self.error()) {
            (_, Some(error)) => error.is_nan() || error.abs() > limit,
            (Some(published), None) => self.kind == Kind::Exact && self.simulated != published,
            (None, None) => false,
        }
    }
}

/// A published table with what the simulator makes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// As users type it.
    pub name: &'static str,
    /// What was measured, by whom and when.
    pub title: String,
    /// What the sources do not tell, and was assumed.
    pub assumptions: Vec<String>,
    /// The figures, row by row.
    pub figures: Vec<Figure>,
    /// What the table was to show, and whether it does.
    pub verdicts: Vec<Verdict>,
    /// What is worth seeing.
    pub plots: Vec<Plot>,
}

impl Table {
    /// The rows with their units, in order.
    pub fn rows(&self) -> Vec<(&str, &'static str)> {
        let mut seen = HashSet::new();
        let rows = self.figures.iter().map(|figure| (figure.row.as_str(), figure.unit));
        rows.filter(|(row, _)| seen.insert(*row)).collect()
    }

    /// The columns, in order.
    pub fn policies(&self) -> Vec<&str> {
        let mut seen = HashSet::new();
        let policies = self.figures.iter().map(|figure| figure.policy.as_str());
        policies.filter(|policy| seen.insert(*policy)).collect()
    }

    /// The lines of a debug log, if that is what the table is: rows called `... start`, `... asked`
    /// and `... read`. For each line its name, and for each column what was published and what was
    /// simulated, as `start+asked=read`.
    pub fn as_log(&self) -> Option<Vec<(&str, Vec<LogCell>)>> {
        let (rows, policies) = (self.rows(), self.policies());
        let stem_bytes = |rows: &[(&str, &str)]| -> Option<usize> {
            let stem = rows.first()?.0.strip_suffix(" start")?;
            let belongs = |index: usize, field| {
                rows.get(index).and_then(|(row, _)| row.strip_suffix(field)) == Some(stem)
            };
            (belongs(1, " asked") && belongs(2, " read")).then_some(stem.len())
        };
        let lines = rows.chunks(3).map(|three| {
            let stem = &three[0].0[..stem_bytes(three)?];
            let cell = |policy: &&str| {
                let of = |value: fn(&Figure) -> Option<f64>| -> Option<String> {
                    let of = |row: &str| value(self.figure(row, policy)?);
                    let [start, asked, read] = [0, 1, 2].map(|index| of(three[index].0));
                    Some(format!("{:.0}+{:.0}={:.0}", start?, asked?, read?))
                };
                let simulated = |f: &Figure| Some(f.simulated).filter(|value| value.is_finite());
                LogCell { published: of(|f| f.published), simulated: of(simulated) }
            };
            Some((stem, policies.iter().map(cell).collect()))
        });
        lines.collect::<Option<Vec<_>>>().filter(|lines| !lines.is_empty())
    }

    /// The figure of a row and a column, if there is one.
    pub fn figure(&self, row: &str, policy: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.row == row && figure.policy == policy)
    }
}

/// A line of a debug log in one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogCell {
    /// As it was published, if it was.
    pub published: Option<String>,
    /// As simulated, if there is such a line.
    pub simulated: Option<String>,
}

/// One thing a table was to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// In a sentence.
    pub claim: String,
    /// Whether it holds.
    pub holds: bool,
}

impl Verdict {
    pub(super) fn new(claim: impl Into<String>, holds: bool) -> Self {
        Verdict { claim: claim.into(), holds }
    }

    /// A claim about several things. It names those of which it does not hold.
    pub(super) fn of_all(claim: &str, things: impl IntoIterator<Item = (String, bool)>) -> Self {
        let things: Vec<(String, bool)> = things.into_iter().collect();
        let failing = things.iter().filter(|(_, holds)| !holds).map(|(name, _)| name.as_str());
        let failing: Vec<&str> = failing.collect();
        let claim = match failing.len() {
            0 => format!("{claim}: all {}", things.len()),
            count => format!("{claim}: {count} of {} fail; {}", things.len(), failing.join(", ")),
        };
        Verdict::new(claim, failing.is_empty())
    }
}

/// A simulated change of less, in percent, is none: runs of the simulator do not vary, but its parameters
/// might.
const LEAST_CHANGE_PERCENT: f64 = 1.0;

/// Whether a simulated change goes the way of a published one, both in percent.
pub(super) fn goes_the_same_way(published: f64, simulated: f64) -> bool {
    published * simulated > 0.0 && simulated.abs() >= LEAST_CHANGE_PERCENT
}

/// The geometric mean; NaN of no values.
pub(super) fn geometric_mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) =
        values.fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value.ln()));
    f64::exp(sum / count)
}

/// The middle one of some values, the upper one of two; NaN of no values.
pub(super) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[(&str, f64)]) -> Table {
        let figure = |(row, simulated): &(&str, f64)| Figure {
            row: (*row).to_owned(),
            policy: "stock".to_owned(),
            unit: "pages",
            published: Some(4.0),
            simulated: *simulated,
            kind: Kind::Exact,
        };
        Table {
            name: "a-table",
            title: String::new(),
            assumptions: Vec::new(),
            figures: rows.iter().map(figure).collect(),
            verdicts: Vec::new(),
            plots: Vec::new(),
        }
    }

    #[test]
    fn twice_and_half_are_as_much_as_once() {
        assert!((geometric_mean([2.0, 0.5].into_iter()) - 1.0).abs() < 1e-12);
        assert!((geometric_mean([2.0, 8.0].into_iter()) - 4.0).abs() < 1e-12);
        assert!(geometric_mean([].into_iter()).is_nan());
    }

    #[test]
    fn a_log_is_told_by_its_rows() {
        let log = table(&[("line 1 start", 4.0), ("line 1 asked", 5.0), ("line 1 read", 6.0)]);
        let cell = LogCell { published: Some("4+4=4".into()), simulated: Some("4+5=6".into()) };
        assert_eq!(log.as_log(), Some(vec![("line 1", vec![cell])]));
        assert_eq!(table(&[("line 1 start", 4.0), ("line 1 asked", 5.0)]).as_log(), None);
        assert_eq!(table(&[("a", 1.0), ("b", 1.0), ("c", 1.0)]).as_log(), None);
        assert_eq!(table(&[]).as_log(), None);
    }

    #[test]
    fn a_claim_about_several_things_names_those_that_fail() {
        let of = |holds: [bool; 3]| {
            let names = ["a", "b", "c"].map(str::to_owned);
            Verdict::of_all("small", names.into_iter().zip(holds))
        };
        assert_eq!(of([true; 3]), Verdict::new("small: all 3", true));
        assert_eq!(of([false, true, false]), Verdict::new("small: 2 of 3 fail; a, c", false));
    }

    #[test]
    fn no_change_goes_neither_way() {
        assert!(goes_the_same_way(15.0, 1.0) && goes_the_same_way(-15.0, -1.0));
        for (published, simulated) in [(15.0, 0.0), (-15.0, 0.0), (15.0, 0.9), (15.0, -20.0)] {
            assert!(!goes_the_same_way(published, simulated), "{published} {simulated}");
        }
        assert!(!goes_the_same_way(15.0, f64::NAN));
    }

    #[test]
    fn what_has_to_be_exact_is_off_by_the_smallest_error() {
        let off: Vec<bool> = table(&[("a", 4.0), ("b", 4.1), ("c", f64::NAN)])
            .figures
            .iter()
            .map(Figure::is_off)
            .collect();
        assert_eq!(off, [false, true, true]);
    }
}
