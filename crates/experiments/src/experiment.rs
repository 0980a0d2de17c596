//! An experiment file: the machine a table was measured on, the workload, the assumptions.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use sim::{Machine, MachineError, MachineSpec};

use super::table::Table;

/// Why an experiment cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The description is not valid.
    #[error("the experiment {name} is not valid: {error}")]
    Malformed {
        /// The experiment.
        name: &'static str,
        /// Where and why.
        error: Box<toml::de::Error>,
    },
    /// The published figures are not valid.
    #[error("the published figures of {name} are not valid: {error}")]
    Figures {
        /// The experiment.
        name: &'static str,
        /// Where and why.
        error: csv::Error,
    },
    /// A row of the published figures names something without a script.
    #[error("the published figures of {name} are not valid: in the row {row:?} {problem}")]
    Row {
        /// The experiment.
        name: &'static str,
        /// The row, as the table names it.
        row: String,
        /// What is wrong, and what is allowed.
        problem: String,
    },
    /// Its machine cannot be simulated.
    #[error(transparent)]
    Machine(#[from] MachineError),
}

/// An experiment; `W` is its workload.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Experiment<W> {
    pub(super) title: String,
    pub(super) assumptions: Vec<String>,
    pub(super) machine: MachineSpec,
    /// Policies by the columns' names.
    #[serde(default)]
    pub(super) policies: BTreeMap<String, String>,
    pub(super) workload: W,
}

impl<W: DeserializeOwned> Experiment<W> {
    /// Reads an experiment file.
    pub(super) fn parse(name: &'static str, text: &str) -> Result<Self, ExperimentError> {
        toml::from_str(text)
            .map_err(|error| ExperimentError::Malformed { name, error: Box::new(error) })
    }

    /// Its table, still empty.
    pub(super) fn table(&self, name: &'static str) -> Table {
        Table {
            name,
            title: self.title.clone(),
            assumptions: self.assumptions.clone(),
            figures: Vec::new(),
            verdicts: Vec::new(),
            plots: Vec::new(),
        }
    }

    /// The machine under the policy of a column.
    pub(super) fn build(&self, column: &str) -> Result<Machine, ExperimentError> {
        Ok(self.machine.build(self.policy(column))?)
    }

    /// The policy of a column.
    pub(super) fn policy<'a>(&'a self, column: &'a str) -> &'a str {
        self.policies.get(column).map_or(column, String::as_str)
    }
}

/// Reads published figures: one record per line, remarks after `#`.
pub(super) fn figures<R: DeserializeOwned>(
    name: &'static str,
    text: &str,
) -> Result<Vec<R>, ExperimentError> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let records: Result<Vec<R>, csv::Error> = reader.deserialize().collect();
    records.map_err(|error| ExperimentError::Figures { name, error })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = include_str!("../../../experiments/desktop-2006.toml");

    #[test]
    fn an_experiment_that_is_cut_off_or_damaged_is_one_error_with_its_line() {
        let lines = WHOLE.lines().count();
        let error = |text: &str| {
            let experiment = Experiment::<toml::Table>::parse("desktop-2006", text);
            experiment.map(drop).expect_err("it is none").to_string()
        };
        let cut = error(&WHOLE[..WHOLE.rfind('=').expect("a setting")]);
        assert!(cut.starts_with("the experiment desktop-2006 is not valid: "), "{cut}");
        assert!(cut.contains(&format!("line {lines}")), "{cut}");
        let unknown = error(&format!("{WHOLE}\nx y\n"));
        assert!(unknown.contains(&format!("line {}", lines + 2)), "{unknown}");
    }

    #[test]
    fn published_figures_that_are_damaged_are_one_error_with_their_line() {
        let figures = figures::<(String, f64)>("table", "row,seconds\none,1.5\ntwo,many\n");
        let error = figures.expect_err("no number").to_string();
        assert!(
            error.starts_with("the published figures of table") && error.contains("line: 3"),
            "{error}"
        );
    }
}
