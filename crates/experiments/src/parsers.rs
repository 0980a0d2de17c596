//! The parsers of one table, for fuzzing and for tests with any text.

use serde::de::DeserializeOwned;

use super::experiment::{Experiment, ExperimentError, figures};

/// The parsers of one table.
#[derive(Clone, Copy)]
pub(super) struct Parsers {
    /// The parser of its experiment file.
    pub(super) experiment: fn(&str) -> Result<Experiment<()>, ExperimentError>,
    /// The parser of its published figures.
    pub(super) figures: fn(&str) -> Result<(), ExperimentError>,
}

impl Parsers {
    /// The parsers for this workload and record.
    pub(super) const fn of<W: DeserializeOwned, R: DeserializeOwned>() -> Self {
        Parsers {
            experiment: |text| {
                let Experiment { title, assumptions, machine, policies, workload: _ } =
                    Experiment::<W>::parse("any", text)?;
                Ok(Experiment { title, assumptions, machine, policies, workload: () })
            },
            figures: |text| figures::<R>("any", text).map(drop),
        }
    }
}
