//! How busy block devices were, how large their requests were and how long these took: in words and as a table.

use analysis::{Analysis, DeviceUse, Requests};
use trace::Trace;

use super::device_pictures::pictures;
use super::words::{code, counted, duration, name, percent, thousands};
use crate::document::{cell, head_of, row, table, words};
use crate::short;

/// Devices that are described in words.
const MOST_DESCRIBED: usize = 5;

/// Devices that have pictures, three each.
const MOST_PICTURED: usize = 3;

/// Devices in the table.
const MOST_ROWS: usize = 40;

/// Characters of a name in the table: the kernel's names have up to 31.
const MOST_CHARACTERS: usize = 32;

/// Requests such as to flush a device's cache, or to discard blocks.
const OTHERS: [&str; 2] =
    ["request that neither read nor wrote", "requests that neither read nor wrote"];

/// How busy the busiest device was; nothing if the trace does not tell of any.
pub(crate) fn summary(trace: &Trace, analysis: &Analysis) -> String {
    let Some(first) = analysis.devices.first() else { return String::new() };
    let (name, share) = (code(name_of(trace, first)), share_of_time(analysis, first));
    match analysis.devices.len() {
        1 => format!(" The device {name} was busy {share} of the time."),
        count => format!(
            " Of {} devices, {name} was the busiest, for {share} of the time.",
            thousands(count as u64)
        ),
    }
}

/// The busiest devices, some in words and in pictures, more in a table. Nothing if the trace does not tell of any.
pub(crate) fn section(trace: &Trace, analysis: &Analysis) -> String {
    let devices = &analysis.devices;
    if devices.is_empty() {
        return String::new();
    }
    let described = devices.iter().take(MOST_DESCRIBED);
    let items: String = described.map(|device| described_one(trace, analysis, device)).collect();
    let pictured = devices.iter().take(MOST_PICTURED);
    let plots: String = pictured.map(|device| pictures(trace, analysis, device.device)).collect();
    let table = table(&rows(trace, analysis));
    format!("<ul>\n{items}</ul>\n<div class=\"plots\">\n{plots}</div>\n{table}")
}

fn name_of<'a>(trace: &'a Trace, device: &DeviceUse) -> &'a str {
    &trace.devices()[device.device as usize]
}

fn share_of_time(analysis: &Analysis, device: &DeviceUse) -> String {
    percent(device.all.busy, analysis.span.1 - analysis.span.0)
}

/// A device as an item of a list.
fn described_one(trace: &Trace, analysis: &Analysis, device: &DeviceUse) -> String {
    let (name, share) = (code(name_of(trace, device)), share_of_time(analysis, device));
    let mut served = vec![
        described_requests(["read", "reads"], &device.all.reads),
        described_requests(["write", "writes"], &device.all.writes),
    ];
    if device.others > 0 {
        served.push(counted(device.others, OTHERS[0], OTHERS[1]));
    }
    served.retain(|words| !words.is_empty());
    format!("<li>{name} was busy {share} of the time: {}.</li>\n", served.join("; "))
}

/// Reads or writes in words; nothing if there are none.
fn described_requests([one, many]: [&str; 2], requests: &Requests) -> String {
    let [median, largest] = [requests.median_bytes, requests.largest_bytes].map(kib);
    let [mean, p95] = [requests.mean, requests.p95].map(duration);
    match requests.count {
        0 => String::new(),
        1 => format!("one {one} of {largest} KiB, which took {mean}"),
        count => format!(
            "{} {many}, half of them up to {median} KiB, the largest {largest} KiB, which took {mean} on average, 95 % \
             of them up to {p95}",
            thousands(count),
        ),
    }
}

/// A row for the reads of each device, one for its writes, and one for what is neither.
fn rows(trace: &Trace, analysis: &Analysis) -> String {
    let mut rows = head_of([
        ("device", false),
        ("% of time", false),
        ("requests", true),
        ("count", false),
        ("MB", false),
        ("median, KiB", false),
        ("largest, KiB", false),
        ("mean, ms", false),
        ("95 % up to, ms", false),
    ]);
    for device in analysis.devices.iter().take(MOST_ROWS) {
        let share = device.all.busy as f64 * 1e-9 / analysis.seconds();
        let title = cell(name(name_of(trace, device), MOST_CHARACTERS))
            + &cell(format_args!("{:.0}", 100.0 * share));
        let kinds = [("reads", &device.all.reads), ("writes", &device.all.writes)];
        for (kind, requests) in kinds.into_iter().filter(|(_, requests)| requests.count > 0) {
            rows += &row(&(title.clone() + &words(kind) + &figures(requests)));
        }
        if device.others > 0 {
            let figures = cell(thousands(device.others)) + &cell("").repeat(5);
            rows += &row(&(title + &words("others") + &figures));
        }
    }
    rows
}

fn figures(requests: &Requests) -> String {
    let ms = |nanos: u64| short(nanos as f64 * 1e-6);
    let cells = [
        thousands(requests.count),
        short(requests.bytes as f64 * 1e-6),
        kib(requests.median_bytes),
        kib(requests.largest_bytes),
        ms(requests.mean),
        ms(requests.p95),
    ];
    cells.map(cell).concat()
}

/// Bytes in KiB. Most requests are a whole number of these, but blocks may have 512 bytes.
fn kib(bytes: u32) -> String {
    short(f64::from(bytes) / 1024.0)
}
