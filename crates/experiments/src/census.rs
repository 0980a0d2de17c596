//! How near the simulator comes to published figures: their numbers, by how far it is off.

use derive_more::Add;

use super::table::{Figure, Kind, Table, goes_the_same_way};

/// A smaller published change, in percent, is within the variation of such runs.
const LEAST_PUBLISHED_CHANGE_PERCENT: f64 = 3.0;

/// Numbers of published figures, for one table or several.
#[derive(Add, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// All of them.
    pub published: usize,
    /// Those that must come out exactly.
    pub exact: usize,
    /// Of these, those that do.
    pub exact_and_same: usize,
    /// Those that were calibrated.
    pub calibrated: usize,
    /// Those that were predicted.
    pub predicted: usize,
    /// Of these, those off by at most 15 %.
    pub within_15: usize,
    /// Of these, those off by at most 30 %.
    pub within_30: usize,
    /// Of these, those off by more than 60 %.
    pub beyond_60: usize,
    /// Published changes of 3 % or more against the first column of the row. Changes of exact figures do not count.
    pub changes: usize,
    /// Of these, those that were simulated with the same sign.
    pub same_signs: usize,
}

/// The table whose `published` figures are bowwave's own, measured live.
const OURS: &str = "demo";

impl Census {
    /// Names of what [`cells`](Self::cells) shows.
    pub const COLUMNS: [&str; 8] =
        ["published", "exact", "calibrated", "predicted", "<=15%", "<=30%", ">60%", "signs"];

    /// One for each table with published figures, and one for the tables of publications together.
    pub fn of_each(tables: &[Table]) -> Vec<(&'static str, Self)> {
        let counted = tables.iter().map(|table| (table.name, Census::of(table)));
        let mut censuses: Vec<_> = counted.filter(|(_, census)| census.published > 0).collect();
        if censuses.len() > 1 {
            let others = censuses.iter().filter(|(name, _)| *name != OURS);
            let all = others.fold(Census::default(), |all, (_, census)| all + *census);
            censuses.push(("all but demo", all));
        }
        censuses
    }

    /// The numbers as text; `same/all` where something is to be the same.
    pub fn cells(&self) -> [String; 8] {
        let of = |part: usize, all: usize| format!("{part}/{all}");
        [
            self.published.to_string(),
            of(self.exact_and_same, self.exact),
            self.calibrated.to_string(),
            self.predicted.to_string(),
            self.within_15.to_string(),
            self.within_30.to_string(),
            self.beyond_60.to_string(),
            of(self.same_signs, self.changes),
        ]
    }

    /// The census of a table.
    pub fn of(table: &Table) -> Self {
        let mut census = Census::default();
        let published = || table.figures.iter().filter(|figure| figure.published.is_some());
        published().for_each(|figure| census.count(figure));
        for (row, _) in table.rows() {
            let mut columns = published().filter(|figure| figure.row == row);
            let Some(first) = columns.next().filter(|first| first.kind != Kind::Exact) else {
                continue;
            };
            columns.for_each(|figure| census.count_change(first, figure));
        }
        census
    }

    fn count(&mut self, figure: &Figure) {
        self.published += 1;
        match figure.kind {
            Kind::Exact => {
                self.exact += 1;
                self.exact_and_same += usize::from(!figure.is_off());
            }
            Kind::Calibrated => self.calibrated += 1,
            Kind::Prediction => {
                let error = figure.error().map_or(f64::INFINITY, f64::abs);
                self.predicted += 1;
                self.within_15 += usize::from(error <= 0.15);
                self.within_30 += usize::from(error <= 0.3);
                self.beyond_60 += usize::from(error > 0.6);
            }
        }
    }

    fn count_change(&mut self, from: &Figure, to: &Figure) {
        let change = |from: f64, to: f64| (to / from - 1.0) * 100.0;
        let (Some(was), Some(now)) = (from.published, to.published) else { return };
        let published = change(was, now);
        if published.abs() >= LEAST_PUBLISHED_CHANGE_PERCENT {
            let simulated = change(from.simulated, to.simulated);
            self.changes += 1;
            self.same_signs += usize::from(goes_the_same_way(published, simulated));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(row: &str, policy: &str, kind: Kind, [published, simulated]: [f64; 2]) -> Figure {
        Figure {
            row: row.to_owned(),
            policy: policy.to_owned(),
            unit: "s",
            published: (published > 0.0).then_some(published),
            simulated,
            kind,
        }
    }

    fn table(name: &'static str, figures: Vec<Figure>) -> Table {
        Table {
            name,
            title: String::new(),
            assumptions: Vec::new(),
            figures,
            verdicts: Vec::new(),
            plots: Vec::new(),
        }
    }

    #[test]
    fn figures_are_counted_by_kind_and_error_and_changes_by_their_sign() {
        use Kind::{Calibrated, Exact, Prediction};
        let figures = vec![
            figure("a", "stock", Calibrated, [10.0, 10.0]),
            figure("a", "adaptive", Prediction, [5.0, 5.5]),
            figure("a", "oracle", Prediction, [0.0, 4.0]),
            figure("b", "stock", Calibrated, [10.0, 10.0]),
            figure("b", "adaptive", Prediction, [8.0, 10.0]),
            figure("c", "stock", Prediction, [10.0, 17.0]),
            figure("c", "adaptive", Prediction, [10.2, 5.0]),
            figure("d", "stock", Exact, [4.0, 4.0]),
            figure("d", "adaptive", Exact, [8.0, 7.0]),
        ];
        let census = Census::of(&table("a-table", figures));
        let expected = Census {
            published: 8,
            exact: 2,
            exact_and_same: 1,
            calibrated: 2,
            predicted: 4,
            within_15: 1,
            within_30: 2,
            beyond_60: 1,
            changes: 2,
            same_signs: 1,
        };
        assert_eq!(census, expected);
        assert_eq!(census.cells(), ["8", "1/2", "2", "4", "1", "2", "1", "1/2"]);
    }

    #[test]
    fn only_tables_of_publications_are_counted_together() {
        let one = |name, published| {
            table(name, vec![figure("a", "stock", Kind::Prediction, [published, 10.0])])
        };
        let tables = [one("a", 10.0), one("demo", 10.0), one("field", 0.0), one("b", 10.0)];
        let counted = Census::of_each(&tables).into_iter();
        let counted: Vec<_> = counted.map(|(name, census)| (name, census.published)).collect();
        assert_eq!(counted, [("a", 1), ("demo", 1), ("b", 1), ("all but demo", 2)]);
        assert_eq!(Census::of_each(&tables[..1]).len(), 1, "nothing to add up");
    }
}
