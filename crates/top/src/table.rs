//! Adds up what belongs together, and sorts it.

use std::cmp::Ordering;
use std::collections::HashMap;

use readahead::{DeviceNumber, FileKey};

use crate::activity::Activity;
use crate::history::Use;
use crate::names::Names;
use crate::sample::Key;
use crate::view::{By, Sort};

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What the row adds up.
    pub of: Of,
    /// Its name.
    pub name: String,
    /// What happened.
    pub activity: Activity,
}

/// What a row adds up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Of {
    /// What a process did.
    Process(u32),
    /// What a process did with a file.
    Stream(Key),
    /// What was done with a file.
    File(FileKey),
    /// What was done with the files of a file system.
    Device(DeviceNumber),
    /// What the processes of a cgroup did.
    Cgroup(String),
}

/// The rows whose name contains `filter`, in whatever case, in descending order.
pub fn rows(uses: &[Use], names: &Names, by: By, sort: Sort, filter: &str) -> Vec<Row> {
    let mut sums: HashMap<Of, Activity> = HashMap::new();
    for used in &credited(uses, names) {
        sums.entry(of(used, names, by)).or_default().add(&used.activity);
    }
    let rows = sums.into_iter().map(|(of, activity)| Row { name: name(&of, names), of, activity });
    let filter = filter.to_lowercase();
    let mut rows: Vec<Row> = rows.filter(|row| row.name.to_lowercase().contains(&filter)).collect();
    rows.sort_by(|one, other| order(one, other, sort));
    rows
}

/// The sum of all rows.
pub fn total(rows: &[Row]) -> Activity {
    let mut total = Activity::default();
    rows.iter().for_each(|row| total.add(&row.activity));
    total
}

fn of(used: &Use, names: &Names, by: By) -> Of {
    match by {
        By::Process => Of::Process(used.key.pid),
        By::Stream => Of::Stream(used.key),
        By::File => Of::File(used.key.file),
        By::Device => Of::Device(used.key.file.dev),
        By::Cgroup => Of::Cgroup(names.of_cgroup(used.key.pid)),
    }
}

/// The pages of one file in an interval.
#[derive(Clone, Copy, Default)]
struct Shared {
    /// Pages that programs asked for.
    asked: u64,
    /// Of these, the pages of programs that have got their share.
    counted: u64,
    /// Pages that bowwave brought.
    brought: u64,
    /// Of these, the pages that programs have got.
    given: u64,
}

/// What bowwave has brought into the cache counts as brought for those who read the file in the same interval, in
/// proportion to the pages that they asked for. If nobody did, it stays with bowwave's process.
fn credited(uses: &[Use], names: &Names) -> Vec<Use> {
    let is_bowwave = |used: &Use| names.managers.pids.contains(&used.key.pid);
    let mut files: HashMap<FileKey, Shared> = HashMap::new();
    for used in uses {
        let file = files.entry(used.key.file).or_default();
        match is_bowwave(used) {
            true => file.brought += used.activity.kernel_pages,
            false => file.asked += used.activity.pages,
        }
    }
    let credit = |used: &Use| {
        let (mut used, file) = (*used, files.entry(used.key.file).or_default());
        let is_ours = is_bowwave(&used);
        let activity = &mut used.activity;
        if !is_ours {
            file.counted += activity.pages;
            let due = u128::from(file.brought) * u128::from(file.counted);
            let due = due.checked_div(file.asked.into()).unwrap_or(0) as u64;
            activity.bowwave_pages = due - std::mem::replace(&mut file.given, due);
        } else {
            let brought = std::mem::take(&mut activity.kernel_pages);
            activity.bowwave_pages = if file.asked == 0 { brought } else { 0 };
        }
        used
    };
    uses.iter().map(credit).collect()
}

fn name(of: &Of, names: &Names) -> String {
    match of {
        Of::Process(pid) => names.of_process(*pid),
        Of::Stream(key) => names.of_stream(*key),
        Of::File(file) => names.of_file(*file),
        Of::Device(dev) => names.of_file_system(*dev),
        Of::Cgroup(path) => path.clone(),
    }
}

/// More of the figure comes first; then more bytes; then the name that is first in the alphabet.
fn order(one: &Row, other: &Row, sort: Sort) -> Ordering {
    let figure = |row: &Row| {
        let activity = &row.activity;
        match sort {
            Sort::Wait => activity.stalled_s,
            Sort::Reads => (activity.reads + activity.faults) as f64,
            Sort::Bytes => activity.bytes() as f64,
            Sort::Missing => activity.missing_pages as f64,
            Sort::Stalls => activity.stalls as f64,
            Sort::Bowwave => activity.bowwave_pages as f64,
        }
    };
    let descending = figure(other).total_cmp(&figure(one));
    let bytes = other.activity.bytes().cmp(&one.activity.bytes());
    descending.then(bytes).then_with(|| one.name.cmp(&other.name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::names::Process;

    const BOWWAVE: u32 = 4;

    fn names() -> Names {
        let mut names = Names::default();
        for pid in 1..=5u32 {
            let cgroup = format!("/slice{}", pid % 2);
            names
                .processes
                .insert(pid, Process { name: format!("program{pid}"), cgroup_number: 1, cgroup });
        }
        names.managers.pids.insert(BOWWAVE);
        names
    }

    fn used() -> impl Strategy<Value = Use> {
        let numbers = (1u32..=5, 0u32..3, 1u64..6, 0u64..1000, 0u64..1000, 0u64..50);
        numbers.prop_map(|(pid, minor, ino, reads, brought, stalls)| Use {
            key: Key { pid, file: FileKey { dev: DeviceNumber { major: 8, minor }, ino } },
            activity: Activity {
                reads,
                pages: reads * 2,
                kernel_pages: brought,
                stalls,
                stalled_s: stalls as f64 * 0.25,
                ..Activity::default()
            },
        })
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_counted_twice_however_it_is_added_up(
            uses in prop::collection::vec(used(), 0..60),
        ) {
            let names = names();
            let reads: u64 = uses.iter().map(|used| used.activity.reads).sum();
            let brought: u64 = uses.iter().map(|used| used.activity.kernel_pages).sum();
            let ours = uses.iter().filter(|used| used.key.pid == BOWWAVE);
            let ours: u64 = ours.map(|used| used.activity.kernel_pages).sum();
            for by in By::ALL {
                let rows = rows(&uses, &names, by, Sort::Reads, "");
                let sum = total(&rows);
                prop_assert_eq!(sum.reads, reads);
                prop_assert_eq!(sum.kernel_pages + sum.bowwave_pages, brought);
                prop_assert_eq!(sum.bowwave_pages, ours);
                let mut of: Vec<_> = rows.iter().map(|row| format!("{:?}", row.of)).collect();
                of.sort();
                of.dedup();
                prop_assert_eq!(of.len(), rows.len(), "each once");
            }
        }

        #[test]
        fn the_order_is_descending_and_does_not_depend_on_the_tables_order(
            uses in prop::collection::vec(used(), 0..60),
        ) {
            for sort in Sort::ALL {
                let sorted = rows(&uses, &names(), By::File, sort, "");
                let is_so = sorted.is_sorted_by(|one, other| order(one, other, sort).is_le());
                prop_assert!(is_so);
                let mut turned = uses.clone();
                turned.reverse();
                prop_assert_eq!(sorted, rows(&turned, &names(), By::File, sort, ""));
            }
        }
    }

    #[test]
    fn what_bowwave_brings_counts_for_those_who_read_the_file() {
        let file = |ino| FileKey { dev: DeviceNumber { major: 8, minor: 0 }, ino };
        let used = |pid, ino, pages, kernel_pages| Use {
            key: Key { pid, file: file(ino) },
            activity: Activity { reads: 1, pages, kernel_pages, ..Activity::default() },
        };
        let uses = [
            used(1, 1, 300, 25),
            used(2, 1, 100, 0),
            used(BOWWAVE, 1, 0, 75),
            used(BOWWAVE, 2, 0, 10),
            used(3, 3, 50, 5),
        ];
        let found = rows(&uses, &names(), By::Process, Sort::Bowwave, "");
        let shown: Vec<_> = found
            .iter()
            .map(|row| (row.name.as_str(), row.activity.bowwave_pages, row.activity.kernel_pages))
            .collect();
        let expected = [
            ("1 program1", 56, 25),
            ("2 program2", 19, 0),
            ("4 program4", 10, 0),
            ("3 program3", 0, 5),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_filter_keeps_the_rows_whose_name_contains_it() {
        let uses: Vec<Use> = (1..=5)
            .map(|pid| Use {
                key: Key {
                    pid,
                    file: FileKey { dev: DeviceNumber { major: 8, minor: 0 }, ino: 1 },
                },
                activity: Activity { reads: 1, ..Activity::default() },
            })
            .collect();
        let found = rows(&uses, &names(), By::Process, Sort::Reads, "PROGRAM3");
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), &found[0].of), ("3 program3", &Of::Process(3)));
        assert!(rows(&uses, &names(), By::Process, Sort::Reads, "none").is_empty());
        assert_eq!(rows(&uses, &names(), By::Cgroup, Sort::Reads, "slice").len(), 2);
    }
}
