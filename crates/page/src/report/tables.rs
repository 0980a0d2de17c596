//! The tables of a report: processes, files, and each process in each file.

use std::cmp::Reverse;

use analysis::{Analysis, Part, Pattern, Stream, Use};
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
    let usages: Vec<Use> = analysis.processes.iter().map(|part| part.usage).collect();
    let columns = Columns { first: &["process", "files", "pattern"], last: "% of its time" };
    shown(analysis, &usages, &columns, "processes", line, share)
}

/// What was read and waited for.
pub(crate) fn files(trace: &Trace, analysis: &Analysis) -> String {
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
    let usages: Vec<Use> = analysis.files.iter().map(|part| part.usage).collect();
    let columns =
        Columns { first: &["file", "size, MB", "processes", "pattern"], last: "% of it read" };
    shown(analysis, &usages, &columns, "files", line, share)
}

/// How each process reads each file.
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
    let size = |number: usize| cell(short(mean_kib(&analysis.streams[number])));
    let usages: Vec<Use> = analysis.streams.iter().map(|stream| stream.usage).collect();
    let columns = Columns { first: &["process in file", "pattern", "runs"], last: "KiB a read" };
    shown(analysis, &usages, &columns, "streams", line, size)
}

/// The columns that only one table has.
struct Columns {
    first: &'static [&'static str],
    last: &'static str,
}

/// A table of the uses that waited longest, or read most; all others are its last row.
fn shown(
    analysis: &Analysis,
    usages: &[Use],
    columns: &Columns,
    what: &str,
    line: impl Fn(usize) -> String,
    last: impl Fn(usize) -> String,
) -> String {
    let mut numbers: Vec<usize> =
        (0..usages.len()).filter(|number| usages[*number].operations > 0).collect();
    numbers.sort_by_key(|number| {
        let usage = &usages[*number];
        Reverse((usage.waits.total, usage.bytes))
    });
    let others = numbers.split_off(numbers.len().min(MOST_ROWS));
    let common: &[&str] = &["reads", "MB", "distinct MB"];
    let of_waits: &[&str] = &["waits", "s waited", "median, ms", "90 %, ms", "longest, ms"];
    let of_waits = if analysis.has_durations { of_waits } else { &[] };
    // A share of time needs durations, other shares do not.
    let has_last = analysis.has_durations || !columns.last.contains("time");
    let names = columns.first.iter().chain(common).chain(of_waits);
    let names = names.chain(has_last.then_some(&columns.last));
    let mut rows = head_of(names.map(|name| (*name, *name == "pattern")));
    for number in numbers {
        let mut cells = line(number) + &read(&usages[number]);
        if analysis.has_durations {
            cells += &waited(&usages[number]);
        }
        if has_last {
            cells += &last(number);
        }
        rows += &row(&cells);
    }
    rows += &rest(usages, &others, columns, what, analysis.has_durations, has_last);
    table(&rows)
}

/// The row of all others.
fn rest(
    usages: &[Use],
    others: &[usize],
    columns: &Columns,
    what: &str,
    has_durations: bool,
    has_last: bool,
) -> String {
    if others.is_empty() {
        return String::new();
    }
    let sum = |of: fn(&Use) -> u64| -> u64 { others.iter().map(|at| of(&usages[*at])).sum() };
    let mut cells = cell(format_args!("{} other {what}", thousands(others.len() as u64)));
    cells += &cell("").repeat(columns.first.len() - 1);
    cells += &cell(thousands(sum(|usage| usage.operations)));
    cells += &cell(short(sum(|usage| usage.bytes) as f64 * 1e-6));
    cells += &cell("");
    if has_durations {
        cells += &cell(thousands(sum(|usage| usage.waits.count)));
        let waits = others.iter().map(|at| usages[*at].waits.total as f64);
        cells += &cell(short(waits.sum::<f64>() * 1e-9));
        cells += &cell("").repeat(3);
    }
    cells += &cell("").repeat(usize::from(has_last));
    row(&cells)
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

fn mean_kib(stream: &Stream) -> f64 {
    stream.usage.bytes as f64 / stream.usage.operations.max(1) as f64 / 1024.0
}
