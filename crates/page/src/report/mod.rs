//! What a trace shows, as a page for somebody who does not know read-ahead.

mod ahead;
mod device_pictures;
mod devices;
mod opportunities;
mod pictures;
mod raster;
mod tables;
mod words;

#[cfg(test)]
mod tests;

use std::fmt::Write;

use analysis::{ALLOWED, Analysis, COPIED_PER_NS, Durations};
use trace::Trace;

use crate::document::{Text, document};
use words::{code, counted, duration, percent, size, thousands};

/// A page of what programs read, and where they waited; `about` names the trace.
pub fn report(about: &str, trace: &Trace) -> String {
    let analysis = Analysis::of(trace);
    let mut body = first(about, trace, &analysis);
    if analysis.total.operations > 0 {
        body += &sections(trace, &analysis);
    }
    body += "<p>Written by <code>bowwave report</code>.</p>\n";
    document("What programs read, and where they waited", &body)
}

/// The sections, each with a link at the top.
fn sections(trace: &Trace, analysis: &Analysis) -> String {
    let mut sections = Vec::new();
    if analysis.total.waits.count > 0 {
        let text = opportunities::opportunities(trace, analysis);
        sections.push(("opportunities", "Opportunities, the biggest first", text));
    }
    sections.push(("pictures", "Pictures", pictures::pictures(trace, analysis)));
    let read_ahead = ahead::section(trace, analysis);
    if !read_ahead.is_empty() {
        sections.push(("ahead", "What the kernel read ahead", read_ahead));
    }
    let devices = devices::section(trace, analysis);
    if !devices.is_empty() {
        sections.push(("devices", "Devices", devices));
    }
    sections.push(("processes", "Processes", tables::processes(trace, analysis)));
    sections.push(("files", "Files", tables::files(trace, analysis)));
    let streams = tables::streams(trace, analysis);
    if !streams.is_empty() {
        sections.push(("streams", "Each process in each large file", streams));
    }
    sections.push(("counted", "How this was counted", how_it_was_counted(trace, analysis)));
    let links: Vec<String> =
        sections.iter().map(|(id, title, _)| format!("<a href=\"#{id}\">{title}</a>")).collect();
    let mut html = format!("<p>{}</p>\n", links.join(" · "));
    for (id, title, text) in sections {
        let _ = writeln!(html, "<h2 id=\"{id}\"><a href=\"#{id}\">{title}</a></h2>\n{text}");
    }
    html
}

/// What was recorded, and what it comes to.
fn first(about: &str, trace: &Trace, analysis: &Analysis) -> String {
    let usage = &analysis.total;
    let about = code(about);
    if usage.operations == 0 {
        return format!("<p>In {about}, no program reads anything.{}</p>\n", notes(trace));
    }
    let readers = analysis.processes.iter().filter(|part| part.usage.operations > 0).count();
    let files = analysis.files.iter().filter(|part| part.usage.operations > 0).count();
    let mut text = format!(
        "<p>{about} records what {} read from {} within {}: <strong>{}</strong> in {}, {} if each byte of a file counts \
         once. ",
        counted(readers as u64, "process", "processes"),
        counted(files as u64, "file", "files"),
        duration(analysis.span.1 - analysis.span.0),
        size(usage.bytes),
        counted(usage.operations, "read", "reads"),
        size(usage.distinct_bytes),
    );
    text += &waited(analysis);
    text += &ahead::summary(analysis);
    text += &devices::summary(trace, analysis);
    text += &notes(trace);
    text += "</p>\n<p>A disk or a server answers slowly. The kernel therefore fetches data before a program asks for them: \
             <em>read-ahead</em>. Where it cannot tell what a program will read next, the program waits. ";
    text += match usage.waits.count {
        0 => "</p>\n",
        _ => {
            "The list below says where that was. Its figures are what was seen, and the most that better read-ahead could \
             save; what would save how much, <code>bowwave advise</code> simulates.</p>\n"
        }
    };
    text
}

/// What the recorder warns of: the page may be all that is kept.
fn notes(trace: &Trace) -> String {
    let notes = trace.origin().map(|origin| origin.notes()).unwrap_or_default();
    notes.iter().map(|note| format!(" <strong>Note: {}.</strong>", Text(note))).collect()
}

/// How long programs waited, and what for.
fn waited(analysis: &Analysis) -> String {
    let waits = &analysis.total.waits;
    let Some((cause, most)) = analysis.causes.first() else {
        return nobody_waited(analysis.durations);
    };
    format!(
        "In {} of these reads, programs waited for their data: <strong>{}</strong> together, where several that wait at the \
         same time all count. Half of these waits took up to {}, the longest {}. The largest part, {} ({}), went into {}.",
        thousands(waits.count),
        duration(waits.total),
        duration(waits.median),
        duration(waits.longest),
        duration(most.total),
        percent(most.total, waits.total),
        opportunities::in_a_sentence(*cause),
    )
}

/// Why there is no wait.
fn nobody_waited(durations: Durations) -> String {
    match durations {
        Durations::Unknown => {
            "The trace does not say how long reads took (<code>took_us</code>), so this page cannot tell who waited.".into()
        }
        Durations::OfCalls => format!(
            "No read took over {} longer than copying its data from memory takes: as far as that shows, nobody waited.",
            duration(ALLOWED)
        ),
        Durations::OfWaits => "All data were in memory when programs asked for them: nobody waited.".into(),
    }
}

/// What the words and figures of the page mean.
fn how_it_was_counted(trace: &Trace, analysis: &Analysis) -> String {
    let (writes, written) = analysis.written;
    let mut points = vec![
        format!(
            "A <em>read</em> is an operation that got data from a file, by a call such as <code>read</code> or through a \
             mapping. The trace has {} of {}, too; this page is not about these.",
            counted(writes, "write", "writes"),
            size(written),
        ),
        "A <em>run</em> is a series of reads that adjoin each other. A file of up to 128 KiB is <em>small</em>: the \
         kernel reads all of it at once. <em>Strided</em> runs begin equally far apart. <em>Random</em> runs are shorter \
         than 128 KiB on average. A program is followed in up to 32 places of a file at once."
            .into(),
        "Of <em>distinct</em> MB, each byte of a file counts once. 1 MB is 1,000,000 bytes, 1 KiB is 1,024. Pictures have a raster of 160 moments and up to 80 places: a spot is \
         where something happened within that time and place."
            .into(),
    ];
    if let Some(how) = how_waits_were_counted(analysis.durations) {
        points.insert(1, how);
    }
    if analysis.ahead.is_some() {
        points.push(WHAT_READ_AHEAD_IS.into());
    }
    if !trace.requests().is_empty() {
        points.push(WHAT_BUSY_IS.into());
    }
    let points: String = points.iter().map(|point| format!("<li>{point}</li>\n")).collect();
    format!("<ul>\n{points}</ul>\n")
}

/// What the figures of read-ahead mean.
const WHAT_READ_AHEAD_IS: &str = "A <em>window</em> is a series of adjoining pages that the kernel brought into memory at once. \
    In pictures, it is where and when its pages were asked of the device. <em>Hits</em> are pages that a window brought in \
    before anybody had asked for them, and that a read or fault then asked for; their share is that of all pages that were \
    brought in and that this program was the first to ask for. Such a page may still be on its way. What was in memory before \
    counts for neither. <em>Waste</em> is what was brought in for a program and read by nobody until the end, or until it was \
    brought in again. Of a mapped file it is not known, as the kernel does not see what a program reads of the pages around \
    a fault.";

/// What the figures of devices mean.
const WHAT_BUSY_IS: &str = "A device is <em>busy</em> while it has at least one request, whoever made it, between the first \
    operation and the end of the last one. A disk can hardly do more if it is busy all the time; a device that serves many \
    requests at once can. A request takes from when the device's driver gets it until it is complete; what it waited for in \
    the kernel's own queue before is not counted. Volumes of LVM, LUKS and RAID have no requests of their own: they are those \
    of the disks below.";

/// What a wait is; `None` if the trace cannot have any.
fn how_waits_were_counted(durations: Durations) -> Option<String> {
    let waited = match durations {
        Durations::Unknown => return None,
        Durations::OfCalls => format!(
            "A read <em>waited</em> if it took over {} longer than copying its data from memory takes at {COPIED_PER_NS} \
             GB/s. Its wait is all that it took beyond that copying. Devices that answer faster are not seen. A program \
             that was stopped in the middle of a read, as others needed the processor, seems to have waited.",
            duration(ALLOWED)
        ),
        Durations::OfWaits => "<code>bowwave record</code> measured how long each read <em>waited</em>, mostly for its data: \
                               from when the program stopped until it ran again. Copying them from memory is no part of it."
            .into(),
    };
    Some(format!(
        "{waited} Half of the waits last up to the <em>median</em>, 90 % up to the next figure. Each wait has one cause, \
         the first of these that fits: operations that had ended had read or written all of the data; operations that had \
         begun were fetching the rest; the program had announced random reading; the file is small; it is mapped; or else \
         the order of reads. In a stream that reads at random, reads that adjoin by chance are random, too."
    ))
}
