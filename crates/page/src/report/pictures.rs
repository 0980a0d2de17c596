//! The pictures of a report: who waited when, how large reads and how long waits are, and where in the files.

use std::cmp::Reverse;

use analysis::{Analysis, file_raster, is_small, read_sizes, timeline, tree_raster, wait_lengths};
use sim::{Axis, Plot, Series};
use trace::Trace;

use super::raster;
use super::words::{counted, name};
use crate::plot;

/// Files that have a picture of their own.
const MOST_FILES: usize = 6;

/// With fewer files, the pictures of single files show more.
const FILES_OF_A_TREE: usize = 8;

/// Processes with a line of their own.
const MOST_PROCESSES: usize = 5;

/// Characters that a line of a picture has room for.
const MOST_CHARACTERS: usize = 46;

/// Time, on every picture that has it.
pub(crate) const TIME: &str = "s after the beginning";

/// All pictures.
pub(crate) fn pictures(trace: &Trace, analysis: &Analysis) -> String {
    let mut drawn = String::new();
    if analysis.total.waits.count > 0 {
        drawn += &plot::svg(&waits_over_time(trace, analysis));
        drawn += &plot::svg(&lengths_of_waits(analysis));
    }
    drawn += &plot::svg(&sizes_of_reads(trace, analysis));
    drawn += &files_over_time(trace, analysis);
    for file in files_to_show(trace, analysis) {
        drawn += &places_over_time(trace, analysis, file);
    }
    format!("<div class=\"plots\">\n{drawn}</div>\n")
}

fn waits_over_time(trace: &Trace, analysis: &Analysis) -> Plot {
    let timeline = timeline(trace, analysis, MOST_PROCESSES);
    let seconds = timeline.interval as f64 * 1e-9;
    let middle = |interval: usize| (interval as f64 + 0.5) * seconds;
    let series = timeline.rows.iter().map(|(process, waits)| {
        let label = process.map_or("all others".to_owned(), |process| {
            name(&trace.processes()[process as usize], MOST_CHARACTERS)
        });
        let waits = waits.iter().enumerate();
        let points = waits.map(|(at, wait)| (middle(at), *wait as f64 * 1e-9 / seconds)).collect();
        Series::simulated(label, points)
    });
    Plot {
        title: "Waits over time".into(),
        x: Axis::linear(TIME),
        y: Axis::linear("s waited in each second"),
        series: series.collect(),
    }
}

fn lengths_of_waits(analysis: &Analysis) -> Plot {
    let bins = wait_lengths(analysis);
    let points = bins.iter().map(|bin| (bin.from as f64 * 1e-6, bin.total as f64 * 1e-9));
    Plot {
        title: "How long waits were, and what they add up to".into(),
        x: Axis::log("length of a wait, ms"),
        y: Axis::linear("s waited in all of these"),
        series: vec![Series::binned("waits", points.collect())],
    }
}

fn sizes_of_reads(trace: &Trace, analysis: &Analysis) -> Plot {
    let bins = read_sizes(trace, analysis);
    let kib = |bytes: u64| bytes as f64 / 1024.0;
    // Ticks have room for four digits.
    let is_thousands = bins.iter().any(|bin| bin.reads >= 10_000);
    let (unit, label) = if is_thousands { (1e3, "thousand reads") } else { (1.0, "reads") };
    let of = |count: fn(&analysis::SizeBin) -> u64| {
        bins.iter().map(|bin| (kib(bin.from_bytes), count(bin) as f64 / unit)).collect()
    };
    let mut series = vec![Series::binned("all reads", of(|bin| bin.reads))];
    if analysis.total.waits.count > 0 {
        series.push(Series::binned("those that waited", of(|bin| bin.waited)));
    }
    Plot {
        title: "How large reads were".into(),
        x: Axis::log("asked for, KiB"),
        y: Axis::linear(label),
        series,
    }
}

/// Which file was read when: a program that goes from file to file climbs.
fn files_over_time(trace: &Trace, analysis: &Analysis) -> String {
    let (raster, count) = tree_raster(trace, analysis);
    if count < FILES_OF_A_TREE {
        return String::new();
    }
    let axes = [&Axis::linear(TIME), &Axis::linear("file, in the order of the first read")];
    let title = format!("All {}", counted(count as u64, "file", "files"));
    raster::svg(&title, &raster, axes, [analysis.seconds(), count as f64])
}

/// The files with the longest waits, or of which most was read. A single read, or a small file, makes no picture.
fn files_to_show(trace: &Trace, analysis: &Analysis) -> Vec<u32> {
    let usage = |file: u32| &analysis.files[file as usize].usage;
    let all = 0..trace.files().len() as u32;
    let bytes = |file: u32| trace.files()[file as usize].bytes;
    let is_worth_it = |file: &u32| usage(*file).operations > 1 && !is_small(bytes(*file));
    let mut files: Vec<u32> = all.filter(is_worth_it).collect();
    files.sort_by_key(|file| Reverse((usage(*file).waits.total, usage(*file).bytes)));
    files.truncate(MOST_FILES);
    files
}

/// Where in a file was read when.
fn places_over_time(trace: &Trace, analysis: &Analysis, file: u32) -> String {
    let about = &trace.files()[file as usize];
    let (unit, label) = match about.bytes {
        bytes if bytes >= 10_000_000_000 => (1e9, "place in the file, GB"),
        bytes if bytes >= 10_000_000 => (1e6, "place in the file, MB"),
        _ => (1e3, "place in the file, kB"),
    };
    let raster = file_raster(trace, analysis, file);
    let axes = [&Axis::linear(TIME), &Axis::linear(label)];
    let title = name(&about.name, MOST_CHARACTERS);
    raster::svg(&title, &raster, axes, [analysis.seconds(), about.bytes as f64 / unit])
}
