//! The pictures of a device: how busy it was, how long its requests took, and how large they were, over time.

use analysis::{Activity, Analysis, DeviceTimeline, Requests, device_timeline};
use sim::{Axis, Plot, Series};
use trace::Trace;

use super::pictures::TIME;
use super::words::name;
use crate::plot;

/// Characters of a name that the title of a picture has room for, beside what it shows.
const MOST_CHARACTERS: usize = 20;

/// Picks the requests of one kind.
type OfKind = fn(&Activity) -> &Requests;

/// Reads and writes, as legends name them.
const KINDS: [(&str, OfKind); 2] =
    [("reads", |activity| &activity.reads), ("writes", |activity| &activity.writes)];

/// All pictures of this device.
pub(crate) fn pictures(trace: &Trace, analysis: &Analysis, device: u32) -> String {
    let timeline = device_timeline(trace, analysis, device);
    let name = name(&trace.devices()[device as usize], MOST_CHARACTERS);
    let [busy, took, sizes] = [share_of_time(&timeline), times(&timeline), sizes(&timeline)];
    plotted(format!("{name}: how busy it was"), "% of time", busy)
        + &plotted(format!("{name}: how long requests took"), "ms", took)
        + &plotted(format!("{name}: how large requests were"), "KiB on average", sizes)
}

/// A picture over time; nothing if there is nothing to show.
fn plotted(title: String, label: &str, mut series: Vec<Series>) -> String {
    series.retain(|series| !series.points.is_empty());
    if series.is_empty() {
        return String::new();
    }
    plot::svg(&Plot { title, x: Axis::linear(TIME), y: Axis::linear(label), series })
}

fn share_of_time(timeline: &DeviceTimeline) -> Vec<Series> {
    let interval = timeline.interval as f64;
    let points = points(timeline, |each| Some(100.0 * each.busy as f64 / interval));
    vec![Series::simulated("with at least one request", points)]
}

fn times(timeline: &DeviceTimeline) -> Vec<Series> {
    let series = KINDS.into_iter().flat_map(|(kind, of)| {
        let ms = |nanos: fn(&Requests) -> u64| {
            points(timeline, |each| some(of(each)).map(|some| nanos(some) as f64 * 1e-6))
        };
        [
            Series::simulated(format!("{kind}, mean"), ms(|some| some.mean)),
            Series::simulated(format!("{kind}, 95 % up to"), ms(|some| some.p95)),
        ]
    });
    series.collect()
}

fn sizes(timeline: &DeviceTimeline) -> Vec<Series> {
    let mean_kib = |some: &Requests| some.bytes as f64 / some.count as f64 / 1024.0;
    let series = KINDS.into_iter().map(|(kind, of)| {
        Series::simulated(kind, points(timeline, |each| some(of(each)).map(mean_kib)))
    });
    series.collect()
}

/// Requests, if there are any: of none, nothing is known.
fn some(requests: &Requests) -> Option<&Requests> {
    (requests.count > 0).then_some(requests)
}

/// A point in the middle of each interval for which there is a figure.
fn points(timeline: &DeviceTimeline, figure: impl Fn(&Activity) -> Option<f64>) -> Vec<(f64, f64)> {
    let seconds = timeline.interval as f64 * 1e-9;
    let middle = |number: usize| (number as f64 + 0.5) * seconds;
    let known = timeline.each.iter().enumerate();
    known.filter_map(|(number, each)| Some((middle(number), figure(each)?))).collect()
}
