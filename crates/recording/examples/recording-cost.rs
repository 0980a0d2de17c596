//! The cost of a recording: bytes on the disk and time of the deciding thread.
//!
//! ```text
//! cargo run --release -p bowwave-recording --example recording-cost
//! ```

#[path = "../tests/support/mod.rs"]
mod support;

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use controller::{Controller, Input};
use recording::{Entry, Event, Item, Recorder, Recording};
use support::session::{REQUEST_PAGES, Session};

/// A file of 1 GiB.
const FILE_PAGES: u64 = 1 << 18;

/// Times are medians of this many runs.
const RUNS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    println!(
        "reads of 64 KiB in a file of 1 GiB; times of the deciding thread, medians of {RUNS} runs"
    );
    println!(
        "{:10} {:>8} {:>9} {:>9} {:>12} {:>14} {:>14}",
        "reader", "reads", "accesses", "inputs", "bytes", "bytes/access", "ns/input"
    );
    row("backward", folder.path(), |session| {
        session.read_backward(Session::file(1, 1), FILE_PAGES);
    })?;
    row("random", folder.path(), |session| {
        let requests = FILE_PAGES / REQUEST_PAGES;
        // An odd step reads each request once.
        let at = |number: u64| number * 7919 % requests * REQUEST_PAGES;
        let previous = |number: u64| number.checked_sub(1).map(at);
        for number in 0..requests {
            session.read(Session::file(2, 1), at(number), previous(number), FILE_PAGES);
            session.pass_time(1_000_000);
        }
    })?;
    row("idle hour", folder.path(), |session| session.pass_time(3_600_000_000_000))
}

fn row(name: &str, folder: &Path, play: impl FnOnce(&mut Session)) -> Result<(), Box<dyn Error>> {
    let (path, header) = (folder.join("recording"), support::header());
    let mut session = Session::begin(&header, Some(Recorder::create(&path, &header)?));
    play(&mut session);
    let bytes = session.finish().ok_or("it records")?.bytes;
    let mut entries = Vec::new();
    for item in Recording::open(&path)? {
        if let Item::Entry(entry) = item? {
            entries.push(entry);
        }
    }
    let is_access = |entry: &&Entry| matches!(entry.event, Event::Input(Input::Access(_)));
    let accesses = entries.iter().filter(is_access).count();
    let reads = if accesses > 0 { FILE_PAGES / REQUEST_PAGES } else { 0 };
    let mut noting = Vec::new();
    let mut deciding = Vec::new();
    for _ in 0..RUNS {
        deciding.push(time_deciding(&entries)?);
        noting.push(time_noting(&entries, &path)?);
    }
    let (noting, deciding) = (median(noting), median(deciding));
    let each = |ns: u128| ns as f64 / entries.len() as f64;
    println!(
        "{name:10} {reads:>8} {accesses:>9} {:>9} {bytes:>12} {:>14} {:>6.0} + {:>5.0}",
        entries.len(),
        if accesses > 0 { format!("{:.0}", bytes as f64 / accesses as f64) } else { "-".into() },
        each(deciding),
        each(noting),
    );
    Ok(())
}

/// Nanoseconds that a controller takes to decide about all inputs among these entries.
fn time_deciding(entries: &[Entry]) -> Result<u128, Box<dyn Error>> {
    let (header, mut commands) = (support::header(), Vec::new());
    let mut controller =
        Controller::new(header.options, recording::policy(header.limits)?, &mut commands);
    let begun = Instant::now();
    for entry in entries {
        commands.clear();
        if let Event::Input(input) = &entry.event {
            controller.on(entry.at, input, &mut commands);
        }
        black_box(&commands);
    }
    Ok(begun.elapsed().as_nanos())
}

/// Nanoseconds that the deciding thread takes to record all inputs among these entries.
fn time_noting(entries: &[Entry], path: &Path) -> Result<u128, Box<dyn Error>> {
    let mut recorder = Recorder::create(path, &support::header())?;
    let begun = Instant::now();
    for entry in entries {
        if let Event::Input(input) = &entry.event {
            recorder.note(entry.at, input, &entry.commands);
        }
    }
    let took = begun.elapsed().as_nanos();
    recorder.finish()?;
    Ok(took)
}

fn median(mut runs: Vec<u128>) -> u128 {
    runs.sort_unstable();
    runs[runs.len() / 2]
}
