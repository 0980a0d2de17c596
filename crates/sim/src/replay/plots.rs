//! Plots of replays: how windows grow, when processes end, what a read-ahead size is worth.

use std::collections::BTreeMap;

use super::Replay;
use crate::{Axis, Decision, Plot, Series};
use trace::Trace;

/// Files whose windows are shown.
const FILES: usize = 4;

/// Window growth, completion times and throughput, as far as there is something to show.
pub fn plots(trace: &Trace, replays: &[Replay]) -> Vec<Plot> {
    let mut plots = windows(trace, replays);
    plots.extend(completions(replays));
    plots.extend(throughput(replays));
    plots
}

/// The name of a policy's series, with the read-ahead size if there are several.
fn name(replay: &Replay, replays: &[Replay]) -> String {
    let has_several = replays.iter().any(|other| other.readahead_kb != replay.readahead_kb);
    let size = if has_several { format!(", {}K", replay.readahead_kb) } else { String::new() };
    format!("{}{size}", replay.policy)
}

/// The requested chunks by position, for the files with most requests.
fn windows(trace: &Trace, replays: &[Replay]) -> Vec<Plot> {
    let mut asked: BTreeMap<u32, usize> = BTreeMap::new();
    for decision in replays.iter().flat_map(|replay| &replay.log) {
        *asked.entry(decision.file).or_default() += 1;
    }
    let mut files: Vec<(u32, usize)> = asked.into_iter().collect();
    files.sort_by_key(|(file, count)| (std::cmp::Reverse(*count), *file));
    let plot = |(file, _): (u32, usize)| {
        let of = |replay: &Replay| {
            let log = replay.log.iter().filter(|decision| decision.file == file);
            Series::scattered(name(replay, replays), log.map(window).collect())
        };
        let series = replays.iter().map(of).filter(|series| !series.points.is_empty()).collect();
        window_plot(&format!("Windows in {}", trace.files()[file as usize].name), series)
    };
    files.into_iter().take(FILES).map(plot).collect()
}

/// A plot of windows.
pub fn window_plot(title: &str, series: Vec<Series>) -> Plot {
    Plot {
        title: title.to_owned(),
        x: Axis::linear("place in the file, KiB"),
        y: Axis::log("asked for, KiB"),
        series,
    }
}

/// The start and size of a chunk in KiB.
pub fn window(decision: &Decision) -> (f64, f64) {
    ((decision.start * 4) as f64, (decision.asked * 4) as f64)
}

/// When processes end, sorted; nothing for a single process.
fn completions(replays: &[Replay]) -> Option<Plot> {
    let of = |replay: &Replay| {
        let ends = replay.processes.iter().map(|process| process.ended_s).collect();
        Series::simulated(name(replay, replays), sorted_points(ends))
    };
    let is_worth_it = replays.iter().any(|replay| replay.processes.len() > 1);
    is_worth_it.then(|| completion_plot("When processes end", replays.iter().map(of).collect()))
}

/// A plot of completion times.
pub fn completion_plot(title: &str, series: Vec<Series>) -> Plot {
    Plot {
        title: title.to_owned(),
        x: Axis::linear("process, in the order they end"),
        y: Axis::linear("ended after, s"),
        series,
    }
}

/// Values in ascending order, numbered from 1.
pub fn sorted_points(mut values: Vec<f64>) -> Vec<(f64, f64)> {
    values.sort_by(f64::total_cmp);
    values.into_iter().enumerate().map(|(index, value)| ((index + 1) as f64, value)).collect()
}

/// Throughput against the size of the read-ahead, if there are several sizes.
fn throughput(replays: &[Replay]) -> Option<Plot> {
    let mut series: Vec<Series> = Vec::new();
    for replay in replays {
        let Some(mb_per_s) = replay.mb_per_s() else { continue };
        let point = (replay.readahead_kb as f64, mb_per_s);
        match series.iter_mut().find(|series| series.name == replay.policy) {
            Some(series) => series.points.push(point),
            None => series.push(Series::simulated(&replay.policy, vec![point])),
        }
    }
    series.iter_mut().for_each(|series| series.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    let is_worth_it = series.iter().any(|series| series.points.len() > 1);
    is_worth_it.then(|| Plot {
        title: "Throughput against read-ahead size".to_owned(),
        x: Axis::log("largest read-ahead, KiB"),
        y: Axis::linear("MB/s of needed data"),
        series,
    })
}
