//! How near the simulator comes to published figures: their numbers, by how far it is off.

use derive_more::Add;

use super::table::{Figure, Kind, Table, goes_the_same_way};

/// A smaller published change, in percent, is within the variation of such runs.
const LEAST_PUBLISHED_CHANGE_PERCENT: f64 = 3.0;

/// Numbers of published figures, for one table or several.
#[derive(Add, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    pub published: usize,
    /// That must come out exactly, and those that do.
    pub exact: usize,
    pub exact_and_same: usize,
    pub calibrated: usize,
    /// That were predicted, and those of them within 15 % and 30 %, and off by more than 60 %.
    pub predicted: usize,
    pub within_15: usize,
    pub within_30: usize,
    pub beyond_60: usize,
    /// Published changes of 3 % or more against the first column of the row, and those that were simulated with
    /// the same sign. Changes of exact figures do not count.
    pub changes: usize,
    pub same_signs: usize,
}

impl Census {
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
        let table = Table {
            name: "a-table",
            title: String::new(),
            assumptions: Vec::new(),
            figures,
            verdicts: Vec::new(),
            plots: Vec::new(),
        };
        let census = Census::of(&table);
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
        let twice = census + expected;
        assert_eq!((twice.published, twice.same_signs), (16, 2));
    }
}
