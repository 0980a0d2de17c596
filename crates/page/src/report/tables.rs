//! The tables of a report: processes, files, folders of small files, and each process in each file.

use std::cmp::Reverse;

use analysis::{Analysis, Durations, Part, Pattern, Stream, Use, folders, is_small};
use trace::Trace;

use super::words::{counted, name, thousands};
use crate::document::{cell, head_of, row, table, words};
use crate::short;

/// Rows of a table; what is left is one more row.
const MOST_ROWS: usize = 40;

/// Characters of a name in a table.
const MOST_CHARACTERS: usize = 100;

/// Who read and waited.
pub(crate) fn processes(trace: &Trace, analysis: &Analysis) -> String {
    let line = |number: usize| {
        let part = &analysis.processes[number];
        let title = cell(name(&trace.processes()[number], MOST_CHARACTERS));
        title + &cell(thousands(part.partners)) + &words(patterns(part))
    };
    let share = |number: usize| cell(share_of_time(&analysis.processes[number]));
    let usages = analysis.processes.iter().map(|part| part.usage).enumerate().collect();
    let columns = Columns { first: &["process", "files", "pattern"], last: "% of time" };
    shown(analysis, usages, &columns, "processes", line, share)
}

/// What was read and waited for: large files one by one, small ones by folder.
pub(crate) fn files(trace: &Trace, analysis: &Analysis) -> String {
    large_files(trace, analysis) + &small_files(trace, analysis)
}

fn large_files(trace: &Trace, analysis: &Analysis) -> String {
    let line = |number: usize| {
        let (part, file) = (&analysis.files[number], &trace.files()[number]);
        [
            cell(name(&file.name, MOST_CHARACTERS)),
            cell(short(file.bytes as f64 * 1e-6)),
            cell(thousands(part.partners)),
            words(patterns(part)),
        ]
        .concat()
    };
    let share = |number: usize| {
        let (part, file) = (&analysis.files[number], &trace.files()[number]);
        let share = 100.0 * part.usage.distinct_bytes as f64 / file.bytes.max(1) as f64;
        cell(format_args!("{share:.0}"))
    };
    let usages = analysis.files.iter().map(|part| part.usage).enumerate();
    let usages = usages.filter(|(number, _)| !is_small(trace.files()[*number].bytes)).collect();
    let columns = Columns { first: &["file", "size, MB", "processes", "pattern"], last: "% read" };
    shown(analysis, usages, &columns, "files", line, share)
}

fn small_files(trace: &Trace, analysis: &Analysis) -> String {
    let folders = folders(trace, analysis);
    let line = |number: usize| {
        let folder = &folders[number];
        let path = if folder.path.is_empty() { "no folder" } else { &folder.path };
        cell(name(path, MOST_CHARACTERS))
            + &cell(thousands(folder.files))
            + &cell(thousands(folder.processes))
    };
    let share = |number: usize| cell(short(mean_kib(&folders[number].usage)));
    let usages = folders.iter().map(|folder| folder.usage).enumerate().collect();
    let columns = Columns { first: &["small files in", "files", "processes"], last: "KiB a read" };
    shown(analysis, usages, &columns, "folders", line, share)
}

/// How each process reads each file that is not small.
pub(crate) fn streams(trace: &Trace, analysis: &Analysis) -> String {
    let line = |number: usize| {
        let stream = &analysis.streams[number];
        let process = &trace.processes()[stream.process as usize];
        let file = &trace.files()[stream.file as usize].name;
        [
            cell(format_args!(
                "{} in {}",
                name(process, MOST_CHARACTERS / 2),
                name(file, MOST_CHARACTERS)
            )),
            words(pattern(stream.is_mapped, stream.pattern)),
            cell(thousands(stream.steps.runs())),
        ]
        .concat()
    };
    let size = |number: usize| cell(short(mean_kib(&analysis.streams[number].usage)));
    let bytes = |stream: &Stream| trace.files()[stream.file as usize].bytes;
    let large = analysis.streams.iter().enumerate().filter(|(_, stream)| !is_small(bytes(stream)));
    let usages = large.map(|(number, stream)| (number, stream.usage)).collect();
    let columns = Columns { first: &["process in file", "pattern", "runs"], last: "KiB a read" };
    shown(analysis, usages, &columns, "streams", line, size)
}

/// The columns that only one table has.
struct Columns {
    first: &'static [&'static str],
    last: &'static str,
}

/// A table of the uses that waited longest, or read most; all others, called `what`, are its last row. `line` and
/// `last` write the first columns and the last one of the use at an index. No table if there are none.
fn shown(
    analysis: &Analysis,
    mut usages: Vec<(usize, Use)>,
    columns: &Columns,
    what: &str,
    line: impl Fn(usize) -> String,
    last: impl Fn(usize) -> String,
) -> String {
    usages.retain(|(_, usage)| usage.operations > 0);
    if usages.is_empty() {
        return String::new();
    }
    usages.sort_by_key(|(_, usage)| Reverse((usage.waits.total, usage.bytes)));
    let others = usages.split_off(usages.len().min(MOST_ROWS));
    let has_durations = analysis.durations != Durations::Unknown;
    // A share of time needs durations, other shares do not.
    let has_last = has_durations || !columns.last.contains("time");
    let of_waits: &[&str] = &["waits", "s waited", "median, ms", "90 %, ms", "longest, ms"];
    let of_waits = if has_durations { of_waits } else { &[] };
    let names = columns.first.iter().chain(&["reads", "MB", "distinct MB"]).chain(of_waits);
    let names = names.chain(has_last.then_some(&columns.last));
    let mut rows = head_of(names.map(|name| (*name, *name == "pattern")));
    for (number, usage) in usages {
        let waited = if has_durations { waited(&usage) } else { String::new() };
        let last = if has_last { last(number) } else { String::new() };
        rows += &row(&(line(number) + &read(&usage) + &waited + &last));
    }
    if !others.is_empty() {
        let title = cell(format_args!("{} other {what}", thousands(others.len() as u64)));
        let first = title + &cell("").repeat(columns.first.len() - 1);
        let waited = if has_durations { waited_together(&others) } else { String::new() };
        let last = cell("").repeat(usize::from(has_last));
        rows += &row(&(first + &read_together(&others) + &waited + &last));
    }
    table(&rows)
}

fn read_together(usages: &[(usize, Use)]) -> String {
    let reads = usages.iter().map(|(_, usage)| usage.operations).sum();
    let bytes: u64 = usages.iter().map(|(_, usage)| usage.bytes).sum();
    // The same bytes may be distinct in several of these.
    cell(thousands(reads)) + &cell(short(bytes as f64 * 1e-6)) + &cell("")
}

fn waited_together(usages: &[(usize, Use)]) -> String {
    let waits = usages.iter().map(|(_, usage)| usage.waits.count).sum();
    let seconds: f64 = usages.iter().map(|(_, usage)| usage.waits.total as f64 * 1e-9).sum();
    cell(thousands(waits)) + &cell(short(seconds)) + &cell("").repeat(3)
}

fn read(usage: &Use) -> String {
    let megabytes = |bytes: u64| cell(short(bytes as f64 * 1e-6));
    cell(thousands(usage.operations)) + &megabytes(usage.bytes) + &megabytes(usage.distinct_bytes)
}

fn waited(usage: &Use) -> String {
    let waits = &usage.waits;
    let mut cells = cell(thousands(waits.count)) + &cell(short(waits.total as f64 * 1e-9));
    for wait in [waits.median, waits.p90, waits.longest] {
        cells += &cell(if waits.count > 0 { short(wait as f64 * 1e-6) } else { String::new() });
    }
    cells
}

/// The pattern of most operations, and the second one if that is more than a tenth.
fn patterns(part: &Part) -> String {
    let all: u64 = part.patterns.iter().map(|(.., count)| count).sum();
    let shown = part.patterns.iter().take(2).filter(|(.., count)| count * 10 > all);
    let shown: Vec<String> = shown
        .map(|(is_mapped, of, count)| match *count == all {
            true => pattern(*is_mapped, *of),
            false => {
                format!("{} {:.0} %", pattern(*is_mapped, *of), 100.0 * *count as f64 / all as f64)
            }
        })
        .collect();
    match shown.is_empty() {
        true => counted(part.patterns.len() as u64, "pattern", "patterns"),
        false => shown.join(", "),
    }
}

fn pattern(is_mapped: bool, pattern: Pattern) -> String {
    let mapped = if is_mapped { "mapped, " } else { "" };
    format!("{mapped}{}", pattern.name())
}

/// Waits in percent of the time from a process's first read to its last one.
fn share_of_time(part: &Part) -> String {
    let Some((began, ended)) = part.span else { return String::new() };
    let share = 100.0 * part.usage.waits.total as f64 / (ended - began).max(1) as f64;
    format!("{share:.0}")
}

fn mean_kib(usage: &Use) -> f64 {
    usage.bytes as f64 / usage.operations.max(1) as f64 / 1024.0
}
