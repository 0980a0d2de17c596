//! No published figure is left out: what the files of experiments hold is what the tables print.

use std::collections::BTreeMap;

use experiments::Table;

/// The tables of publications, their files, and the columns that hold figures. The others name the row, or follow from
/// those: `accumulated_seconds` is a sum.
///
/// Not simulated, as the experiment files say: involuntary context switches, since every process has a processor of its
/// own; the plateaus, which are marks of the author's on his curves.
const FILES: [(&str, &str, &[&str]); 11] = [
    ("blkid-2011", include_str!("../../../../experiments/blkid-2011.csv"), &["fetched_kb"]),
    (
        "copies-2005",
        include_str!("../../../../experiments/copies-2005.csv"),
        &["real_seconds", "system_seconds", "user_seconds", "voluntary_cs"],
    ),
    (
        "desktop-2006",
        include_str!("../../../../experiments/desktop-2006.csv"),
        &["stock_seconds", "adaptive_seconds"],
    ),
    (
        "drop-behind-2007",
        include_str!("../../../../experiments/drop-behind-2007.csv"),
        &["scan1", "scan2", "scan3", "scan4"],
    ),
    (
        "flash-2011",
        include_str!("../../../../experiments/device-curves-2011.csv"),
        &["mb_per_s_median"],
    ),
    (
        "parallel-streams-2003",
        include_str!("../../../../experiments/parallel-streams-2003.csv"),
        &["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9", "t10"],
    ),
    (
        "parallel-streams-2003",
        include_str!("../../../../experiments/tree-walks-2003.csv"),
        &["seconds"],
    ),
    (
        "ramp-2005",
        include_str!("../../../../experiments/ramp-2005.csv"),
        &["start", "asked", "read"],
    ),
    (
        "random-reads-2006",
        include_str!("../../../../experiments/random-reads-2006.csv"),
        &["stage_seconds"],
    ),
    (
        "servers-2006",
        include_str!("../../../../experiments/servers-2006.csv"),
        &["stock", "adaptive"],
    ),
    (
        "slow-streams-2005",
        include_str!("../../../../experiments/slow-streams-2005.csv"),
        &["stock", "adaptive"],
    ),
];

/// How often each figure occurs.
fn count(figures: impl Iterator<Item = f64>) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for figure in figures {
        *counted.entry(format!("{figure}")).or_default() += 1;
    }
    counted
}

/// The figures in some columns of a file. A range has two: `-67..+1.6`.
fn figures_of(text: &str, columns: &[&str]) -> Vec<f64> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let header = reader.headers().expect("it has one").clone();
    for column in columns {
        assert!(header.iter().any(|name| name == *column), "no column {column}");
    }
    let mut figures = Vec::new();
    for record in reader.records() {
        let record = record.expect("a valid line");
        let cells = header.iter().zip(&record).filter(|(name, _)| columns.contains(name));
        let numbers = cells.flat_map(|(_, cell)| cell.split("..")).filter(|cell| !cell.is_empty());
        figures.extend(numbers.map(|number| number.parse::<f64>().expect("a number")));
    }
    figures
}

/// Checks that a table prints every figure of its files, and calls no other published.
pub(crate) fn check(table: &Table) {
    let files = FILES.into_iter().filter(|(name, ..)| *name == table.name);
    let figures: Vec<f64> =
        files.flat_map(|(_, text, columns)| figures_of(text, columns)).collect();
    if !figures.is_empty() {
        let printed = table.figures.iter().filter_map(|figure| figure.published);
        assert_eq!(count(printed), count(figures.into_iter()), "{}", table.name);
    }
}
