//! The parsers of one table, for a fuzzer and for tests that give them any text.

use serde::de::DeserializeOwned;

use super::experiment::{Experiment, ExperimentError, figures};

/// The parsers of one table.
#[derive(Clone, Copy)]
pub(super) struct Parsers {
    /// Of its experiment file.
    pub(super) experiment: fn(&str) -> Result<Experiment<()>, ExperimentError>,
    /// Of its published figures.
    pub(super) figures: fn(&str) -> Result<(), ExperimentError>,
}

impl Parsers {
    /// Those of a workload and of a record.
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
