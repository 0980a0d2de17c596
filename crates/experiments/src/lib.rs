//! Repeats published experiments: compares their figures with the simulator's.
//!
//! ```text
//!   experiments/NAME.toml   the machine, the workload, what had to be assumed   --+
//!   experiments/NAME.csv    the published figures                               --+--> Table
//!   src/NAME.rs             the workload as scripts                             --+
//! ```
//!
//! A figure is *calibrated* if an unknown of the experiment was chosen to match it; otherwise it is a *prediction*. The
//! columns of a row differ only in the policy.

#[cfg(any(test, fuzzing))]
mod any_text;
mod blkid;
mod census;
mod copies;
mod demo;
mod descriptions;
mod desktop;
mod drop_behind;
#[cfg(test)]
mod example;
mod experiment;
mod field;
mod flash;
mod parallel_streams;
#[cfg(any(test, fuzzing))]
mod parsers;
mod ramp;
mod random_reads;
mod rules;
mod run_lengths;
mod servers;
mod side_by_side;
mod slow_streams;
mod table;
mod trees;

pub use census::Census;
pub use descriptions::title;
pub use experiment::ExperimentError;
pub use table::{Figure, Kind, LogCell, Table, Verdict};

/// Runs one table. Calls its argument with the progress in `[0, 1]`.
pub type Run = fn(&mut dyn FnMut(f64)) -> Result<Table, ExperimentError>;

/// Parses any text as the files of every table.
#[cfg(fuzzing)]
pub fn read_any_experiment(text: &str) {
    any_text::read_any(text);
}

/// Every table by the name users type.
pub const TABLES: [(&str, Run); 15] = [
    ("blkid-2011", blkid::run),
    ("copies-2005", copies::run),
    ("demo", demo::run),
    ("desktop-2006", desktop::run),
    ("drop-behind-2007", drop_behind::run),
    ("field", field::run),
    ("parallel-streams-2003", parallel_streams::run),
    ("ramp-2005", ramp::run),
    ("flash-2011", flash::run),
    ("random-reads-2006", random_reads::run),
    ("rules", rules::run),
    ("run-lengths", run_lengths::run),
    ("servers-2006", servers::run),
    ("slow-streams-2005", slow_streams::run),
    ("trees", trees::run),
];

#[cfg(test)]
mod tests {
    use super::example;

    #[test]
    fn the_example_of_the_documentation_is_this_one_and_runs() {
        let page = include_str!("../../../docs/adding-a-table.md");
        // The other two files of a real table are in another folder.
        let page = page.replace("../../../experiments/", "");
        let (_, code) = include_str!("example/mod.rs").split_once("\n\n").expect("a headline");
        let experiment = include_str!("example/backward.toml");
        for text in [code, experiment, include_str!("example/backward.csv")] {
            assert!(page.contains(text), "not in docs/adding-a-table.md:\n{text}");
        }
        let table = example::run(&mut |_| ()).expect("it is valid");
        assert_eq!(table.policies(), ["none", "linux-6", "adaptive"]);
        assert!(table.figures.iter().all(|figure| figure.simulated > 0.05));
        assert!(table.verdicts[0].holds, "{:?}", table.figures);
    }
}
