//! What the kernel read ahead, and what it was good for: in words and as a table.

use std::cmp::Reverse;
use std::fmt::Write;

use analysis::{Ahead, Analysis, Stream, is_small};
use readahead::PAGE_BYTES;
use trace::Trace;

use super::words::{code, counted, name, percent, size, thousands};
use crate::document::{cell, head, row, table};
use crate::short;

/// Streams that are described in words.
const MOST_DESCRIBED: usize = 5;

/// Rows of the table.
const MOST_ROWS: usize = 40;

/// Characters of a name in the table.
const MOST_CHARACTERS: usize = 100;

/// What all windows come to; nothing if the trace does not tell of any.
pub(crate) fn summary(analysis: &Analysis) -> String {
    let Some(all) = &analysis.ahead else { return String::new() };
    format!(
        " For all this, the kernel brought {} into memory, in {}.{}",
        size(all.brought * PAGE_BYTES),
        counted(all.windows, "window", "windows"),
        shares(all)
    )
}

/// The streams in large files for which most was brought in, some in words, more in a table; those in small files
/// together. Nothing if there are none.
pub(crate) fn section(trace: &Trace, analysis: &Analysis) -> String {
    let has_any = |stream: &&Stream| stream.ahead.brought > 0 || stream.ahead.hits > 0;
    let is_in_small = |stream: &&Stream| is_small(trace.files()[stream.file as usize].bytes);
    let streams = analysis.streams.iter().filter(has_any);
    let (small, mut large): (Vec<&Stream>, Vec<&Stream>) = streams.partition(is_in_small);
    large.sort_by_key(|stream| Reverse((stream.ahead.brought, stream.ahead.hits)));
    let mut items: String =
        large.iter().take(MOST_DESCRIBED).map(|stream| described(trace, stream)).collect();
    let mut lines = rows(trace, &large);
    if !small.is_empty() {
        let together = sum(&small);
        items += &described_together(&together);
        lines += &line("small files".into(), &together, false);
    }
    match items.is_empty() {
        true => items,
        false => format!("<ul>\n{items}</ul>\n{}", table(&lines)),
    }
}

fn sum(streams: &[&Stream]) -> Ahead {
    let mut sum = Ahead::default();
    streams.iter().for_each(|stream| sum.add(&stream.ahead));
    sum
}

/// Small files as an item of a list.
fn described_together(small: &Ahead) -> String {
    format!(
        "<li>All small files together: {} in {}.{}</li>\n",
        size(small.brought * PAGE_BYTES),
        counted(small.windows, "window", "windows"),
        shares(small)
    )
}

/// A stream as an item of a list.
fn described(trace: &Trace, stream: &Stream) -> String {
    let ahead = &stream.ahead;
    let [process, file] = names(trace, stream).map(code);
    let windows = match ahead.windows {
        0 => "nothing was brought in for it".into(),
        1 => format!("one window of {}", kib(ahead.largest)),
        count => format!(
            "{} windows, half of them up to {}, the largest {}",
            thousands(count),
            kib(ahead.median),
            kib(ahead.largest)
        ),
    };
    format!("<li>{process} in {file}: {windows}.{}</li>\n", shares(ahead))
}

/// Hit and waste, in sentences.
fn shares(ahead: &Ahead) -> String {
    let mut text = String::new();
    if let Some((hits, all)) = ahead.hit() {
        let _ = write!(
            text,
            " Of the pages that had to come from the device, {} were there, or on their way, before they were asked for \
             (<em>hit</em>).",
            percent(hits, all)
        );
    }
    match ahead.waste() {
        Some((wasted, all)) => {
            let what = match all == ahead.brought {
                true => "those brought in",
                false => "those brought in of files that nobody maps",
            };
            let _ = write!(
                text,
                " Of {what}, {} were not read until the end (<em>waste</em>).",
                percent(wasted, all)
            );
        }
        None if ahead.brought > 0 => {
            text += " How much of it nobody read is not known, as it is mapped.";
        }
        None => {}
    }
    text
}

fn rows(trace: &Trace, streams: &[&Stream]) -> String {
    let mut rows = head([
        "process in file",
        "windows",
        "median, KiB",
        "largest, KiB",
        "MB brought in",
        "hit, %",
        "waste, %",
    ]);
    for stream in streams.iter().take(MOST_ROWS) {
        let [process, file] = names(trace, stream);
        let [process, file] = [name(process, MOST_CHARACTERS / 2), name(file, MOST_CHARACTERS)];
        rows += &line(format!("{process} in {file}"), &stream.ahead, true);
    }
    if let Some(others) = streams.get(MOST_ROWS..).filter(|others| !others.is_empty()) {
        let title = format!("{} other streams", thousands(others.len() as u64));
        rows += &line(title, &sum(others), false);
    }
    rows
}

/// A row of the table. Of several streams, no median is known.
fn line(title: String, ahead: &Ahead, has_median: bool) -> String {
    let has_windows = ahead.windows > 0;
    let kib = |is_known: bool, pages: u64| match is_known {
        true => thousands(pages * PAGE_BYTES / 1024),
        false => String::new(),
    };
    let cells = [
        title,
        thousands(ahead.windows),
        kib(has_windows && has_median, ahead.median),
        kib(has_windows, ahead.largest),
        short((ahead.brought * PAGE_BYTES) as f64 * 1e-6),
        share(ahead.hit()),
        share(ahead.waste()),
    ];
    row(&cells.map(cell).concat())
}

/// A share in percent; empty if there is none.
fn share(of: Option<(u64, u64)>) -> String {
    of.map_or(String::new(), |(part, all)| format!("{:.0}", 100.0 * part as f64 / all as f64))
}

fn names<'a>(trace: &'a Trace, stream: &Stream) -> [&'a str; 2] {
    [&trace.processes()[stream.process as usize], &trace.files()[stream.file as usize].name]
}

/// Pages of 4 KiB.
fn kib(pages: u64) -> String {
    format!("{} KiB", thousands(pages * PAGE_BYTES / 1024))
}
