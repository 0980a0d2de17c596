//! Why reads waited, the longest waits first, in words.

use std::fmt::Write;

use analysis::{Analysis, Cause, Waits};
use trace::Trace;

use super::words::{code, counted, duration, percent, thousands};
use crate::document::{cell, head, row, table};
use crate::short;

/// Streams that are named for each cause.
const MOST_NAMED: usize = 3;

/// What a cause is called, why the kernel did not spare these waits, and what may.
struct Explained {
    what: &'static str,
    why: &'static str,
    helps: &'static str,
}

fn explained(cause: Cause) -> Explained {
    let (what, why, helps) = match cause {
        Cause::Forward => (
            "Reading forward",
            "The kernel reads ahead here, as a rule 128 KiB at a time. Where a device takes long to answer, or could deliver \
             more, a program still waits for each of these windows. Where the device gives what it has, nothing is to be gained.",
            "<code>bowwave tune</code> measures a device and chooses its window.",
        ),
        Cause::Interrupted => (
            "Reading forward in several places in turn, or after opening the file again",
            "The kernel follows one place of each open file. When a program comes back to another place, or opens the file \
             again, the kernel has lost it, and begins with small windows.",
            "<code>bowwave run</code> follows each place.",
        ),
        Cause::Backward => (
            "Reading backward",
            "The kernel reads ahead only toward the end of a file, so each of these reads waited for itself.",
            "<code>bowwave run</code> reads ahead backward, too.",
        ),
        Cause::Strided => (
            "Reading in equal steps",
            "The kernel sees a jump at each step, and does not expect the next one.",
            "<code>bowwave run</code> reads ahead in steps, too.",
        ),
        Cause::Random => (
            "Jumping to another place",
            "Nothing in the order of these reads tells where the next one goes.",
            "Where most of a file is read in the end, reading all of it costs less: <code>bowwave run</code> notices that. \
             Elsewhere no read-ahead helps; more memory or a faster device does.",
        ),
        Cause::Mapped => (
            "Reading through a mapping",
            "The kernel sees only the faults. At each one it reads a window around it, whatever the order is, and stops that \
             where it has not helped.",
            "<code>bowwave run</code> finds the order of faults, too.",
        ),
        Cause::MappedRandom => (
            "Jumping to another place of a mapping",
            "The kernel sees only the faults. At each one it reads a window around it, but nothing in the order of the faults \
             tells where the next one is, and much of these windows may be read in vain.",
            "A smaller window may cost less: <code>bowwave advise</code> compares some. For a program that starts in the same \
             way each time, <code>bowwave run --remember</code> knows its places.",
        ),
        Cause::Start => (
            "Reading the beginning of a file",
            "Before the first read of a file nobody knows that it comes.",
            "<code>bowwave run</code> reads the beginnings of the next files of a folder ahead. For a program that starts in the \
             same way each time, <code>bowwave run --remember</code> knows.",
        ),
        Cause::SmallFile => (
            "Reading small files, of 128 KiB at most",
            "The kernel reads ahead within a file, never in the next one, so each file is waited for anew.",
            "<code>bowwave run</code> reads the next files of a tree ahead.",
        ),
        Cause::Again => (
            "Reading what had been read or written before",
            "This is no matter of read-ahead: the data had left memory again, or the reader waited for something else, for \
             example for a processor.",
            "More memory helps, or <code>bowwave run --drop-behind</code> for a program that fills memory with what nobody \
             needs again.",
        ),
        Cause::UnderWay => (
            "Reading what another read was fetching",
            "Somebody had asked for all of the data just before, and they were still on their way.",
            "What spares the other reader its wait spares this one, too.",
        ),
        Cause::Advised => (
            "Reading after the program announced random reading",
            "The program has told the kernel to read nothing ahead (<code>POSIX_FADV_RANDOM</code>).",
            "If it does not read at random, it should not say so.",
        ),
    };
    Explained { what, why, helps }
}

/// What the waits of a cause are called within a sentence.
pub(crate) fn in_a_sentence(cause: Cause) -> String {
    let what = explained(cause).what;
    what[..1].to_lowercase() + &what[1..]
}

/// A numbered list of causes with the streams that waited most, and a table of the same figures.
pub(crate) fn opportunities(trace: &Trace, analysis: &Analysis) -> String {
    let mut html = "<ol>\n".to_owned();
    for (cause, waits) in &analysis.causes {
        let Explained { what, why, helps } = explained(*cause);
        let share = percent(waits.total, analysis.total.waits.total);
        let _ = writeln!(
            html,
            "<li><strong>{what}: {} in {}, {share} of all waiting.</strong> {why} {} {helps}</li>",
            duration(waits.total),
            counted(waits.count, "wait", "waits"),
            mostly(trace, analysis, *cause),
        );
    }
    html + "</ol>\n" + &figures(analysis)
}

/// Who waited for this cause.
fn mostly(trace: &Trace, analysis: &Analysis, cause: Cause) -> String {
    let process = |process: u32| code(&trace.processes()[process as usize]);
    let amount = |waits: &Waits| {
        format!("({}, {})", duration(waits.total), counted(waits.count, "wait", "waits"))
    };
    // Where each file has few waits, the program says more.
    let is_about_many_files = matches!(cause, Cause::Start | Cause::SmallFile);
    let mut named: Vec<String> = match is_about_many_files {
        true => analysis
            .waiting(cause, |stream| stream.process)
            .iter()
            .map(|(number, waits)| format!("{} {}", process(*number), amount(waits)))
            .collect(),
        false => analysis
            .waiting(cause, |stream| (stream.process, stream.file))
            .iter()
            .map(|((number, file), waits)| {
                let file = code(&trace.files()[*file as usize].name);
                format!("{} in {file} {}", process(*number), amount(waits))
            })
            .collect(),
    };
    let begin = if named.len() > MOST_NAMED { "Mostly" } else { "Who waited" };
    named.truncate(MOST_NAMED);
    format!("{begin}: {}.", named.join("; "))
}

fn figures(analysis: &Analysis) -> String {
    let mut rows = head(["cause", "waits", "s", "%", "median, ms", "90 %, ms", "longest, ms"]);
    let total = analysis.total.waits;
    let causes = analysis.causes.iter().map(|(cause, waits)| (explained(*cause).what, *waits));
    for (what, waits) in causes.chain([("All", total)]) {
        let ms = |nanos: u64| cell(short(nanos as f64 * 1e-6));
        let cells = [
            cell(what),
            cell(thousands(waits.count)),
            cell(short(waits.total as f64 * 1e-9)),
            cell(format_args!("{:.1}", 100.0 * waits.total as f64 / total.total.max(1) as f64)),
            ms(waits.median),
            ms(waits.p90),
            ms(waits.longest),
        ];
        rows += &row(&cells.concat());
    }
    table(&rows)
}
