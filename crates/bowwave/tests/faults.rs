//! What programs see of a failing disk, with bowwave and without.
//!
//! A schedule is a set of bad sectors in each of several files, at times with short or late answers of the disk. Six
//! readers, each of another pattern, read these files at once, page by page where a read fails. BOWWAVE_FAULTS says
//! how many schedules there are (5, or 1,000 with BOWWAVE_TORTURE=1), BOWWAVE_SEED which is the first. Skipped where
//! labs or eBPF do not work, unless BOWWAVE_REQUIRE_LIVE=1 makes that a failure.
//!
//! If a sector is bad, the kernel fails reads of the whole folio (the piece of the page cache) that it is in. Its own
//! read-ahead makes large folios, so a program loses good pages, too. Which pages these are depends on the sizes of
//! windows. Where folios are single pages, a program must see the same; elsewhere, no more reads may fail.
//!
//! Even without large folios a good page fails once in a long while. The likely cause: the block layer may merge requests
//! for adjacent sectors, whoever makes them, and a merged request fails as a whole.

mod managed;
mod own;
mod stage;
mod trial;

use std::fs::{self, File};
use std::iter::repeat_n;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use lab::Fault;
use linux::sys::place_of;
use managed::{Bench, Daemon};
use rustix::fs::{Advice, fadvise};
use trial::Random;

const PAGE_BYTES: u64 = 4096;
const SECTOR_BYTES: u64 = 512;
const FILE_BYTES: u64 = 1 << 20;

/// Bad places in one file, at most.
const MOST_BAD: u64 = 4;

/// Sectors that are bad in one place, at most.
const MOST_BAD_SECTORS: u64 = 20;

/// With bowwave, the disk serves at most so many times as many reads as without: nobody tries a bad sector again and
/// again.
const MOST_READS: u64 = 2;

/// Of so many errors, one may hit another page than without bowwave.
const OTHER_ONE_IN: usize = 1_000;

/// The offset and length of a program's reads, in its order.
type Reads = Vec<(u64, u64)>;

/// What a program sees of each page that it reads: its bytes, which are right, or the number of an error.
type Seen = Vec<Result<(), i32>>;

/// The pieces of the page cache in which files are read.
#[derive(Clone, Copy, PartialEq)]
enum Folios {
    /// Of a page each: ext4 has no large ones for files whose data it journals.
    Single,
    Large,
}

const PATTERNS: [&str; 6] = ["forward", "large", "backward", "stride", "streams", "random"];

/// The reads of a pattern.
fn reads(pattern: &str, random: &mut Random) -> Reads {
    let each = |pages: u64| {
        let bytes = pages * PAGE_BYTES;
        (0..FILE_BYTES / bytes).map(move |number| (number * bytes, bytes))
    };
    match pattern {
        "forward" => each(1).collect(),
        "large" => each(16).collect(),
        "backward" => each(2).rev().collect(),
        "stride" => each(8).map(|(start, _)| (start, PAGE_BYTES)).collect(),
        "streams" => {
            let half = each(4).take_while(|(start, _)| *start < FILE_BYTES / 2);
            half.flat_map(|(start, bytes)| [(start, bytes), (start + FILE_BYTES / 2, bytes)])
                .collect()
        }
        "random" => {
            let mut page = |_| random.below(FILE_BYTES / PAGE_BYTES) * PAGE_BYTES;
            (0..64).map(|number| (page(number), PAGE_BYTES)).collect()
        }
        other => unreachable!("{other}"),
    }
}

impl Bench {
    /// A lab with a file for each pattern.
    fn new(folios: Folios) -> Option<Self> {
        let bench = Bench::on("ssd", "faults", 64 << 20)?;
        if folios == Folios::Single {
            let mut tune2fs = Command::new("tune2fs");
            tune2fs.args(["-o", "journal_data"]).arg(bench.lab.block_device());
            let output = tune2fs.output().expect("it is installed");
            assert!(output.status.success(), "{output:?}");
            bench.lab.evict().expect("nobody uses it");
        }
        bench.lab.set_fast(true).expect("fast");
        for path in PATTERNS.map(|pattern| bench.path(pattern)) {
            fs::write(&path, content(0, FILE_BYTES)).expect("room on the lab");
        }
        bench.lab.evict().expect("nobody uses it");
        Some(bench)
    }

    fn path(&self, pattern: &str) -> PathBuf {
        self.lab.mount_point().join(pattern)
    }

    fn faults(&self, random: &mut Random) -> Vec<Fault> {
        let mut faults = Vec::new();
        for pattern in PATTERNS {
            let file = File::open(self.path(pattern)).expect("it was written");
            for _ in 0..random.below(MOST_BAD + 1) {
                let page = random.below(FILE_BYTES / PAGE_BYTES);
                let place = place_of(&file, page).expect("ext4 tells it");
                let first = place / SECTOR_BYTES + random.below(PAGE_BYTES / SECTOR_BYTES);
                let last = first + random.below(MOST_BAD_SECTORS);
                faults.push(format!("eio:{first}-{last}"));
            }
        }
        faults.extend(match random.below(4) {
            0 => Some("short".into()),
            1 => Some("spike:5".into()),
            _ => None,
        });
        faults.iter().map(|text| text.parse().expect("a fault")).collect()
    }

    /// What the reader of each pattern sees under each schedule, and how many reads the disk serves meanwhile.
    fn seen(&self, schedules: u64) -> (Vec<[Seen; 6]>, u64) {
        let seed = trial::seed();
        let served = || self.lab.status().expect("counters").reads;
        let before = served();
        let seen = (seed..seed + schedules).map(|seed| self.schedule(seed)).collect();
        (seen, served() - before)
    }

    fn schedule(&self, seed: u64) -> [Seen; 6] {
        let random = &mut Random(seed);
        self.lab.set_faults(&self.faults(random)).expect("faults of this disk");
        thread::scope(|scope| {
            let readers = PATTERNS.map(|pattern| {
                let (path, reads) = (self.path(pattern), reads(pattern, random));
                scope.spawn(move || seen_of(&path, &reads))
            });
            readers.map(|reader| reader.join().expect("it reads what was written"))
        })
    }

    fn daemon(&self) -> Daemon {
        Daemon::begin(&mut managed::daemon(&self.lab, self.state.path(), &[]))
    }
}

/// What a program sees that reads a cold file so. After an error it goes on with the next page.
fn seen_of(path: &Path, reads: &Reads) -> Seen {
    let file = File::open(path).expect("it was written");
    fadvise(&file, 0, None, Advice::DontNeed).expect("advice");
    let mut seen = Vec::new();
    for &(start, bytes) in reads {
        let (mut at, end) = (start, start + bytes);
        while at < end {
            let mut buffer = vec![0; (end - at) as usize];
            let got = file.read_at(&mut buffer, at).map_err(|e| e.raw_os_error().unwrap_or(0));
            let count = got.unwrap_or(0) as u64;
            assert_eq!(buffer[..count as usize], content(at, count), "{} at {at}", path.display());
            at += if got.is_ok() { count } else { PAGE_BYTES };
            assert!(got != Ok(0), "{} ends at {at}", path.display());
            // How many pages one call returns depends on which of them are there.
            let pages = count.div_ceil(PAGE_BYTES).max(1) as usize;
            seen.extend(repeat_n(got.map(drop), pages));
        }
    }
    seen
}

/// What is written there: each word tells its place.
fn content(start: u64, bytes: u64) -> Vec<u8> {
    (start / 8..(start + bytes) / 8).flat_map(u64::to_le_bytes).collect()
}

/// Errors that programs see.
fn errors(seen: &[[Seen; 6]]) -> usize {
    seen.iter().flatten().flatten().filter(|seen| seen.is_err()).count()
}

/// What programs see without bowwave and with it. No bad sector is read again and again.
fn stock_and_with(bench: &Bench) -> (Vec<[Seen; 6]>, Vec<[Seen; 6]>) {
    let schedules = trial::number("BOWWAVE_FAULTS", 5, 1_000);
    let (stock, stock_reads) = bench.seen(schedules);
    let daemon = bench.daemon();
    let (with, reads) = bench.seen(schedules);
    let summary = daemon.end();
    println!(
        "{schedules} schedules: {} reads failed, with bowwave {}; the disk served {stock_reads} reads, with bowwave \
         {reads}; {} windows",
        errors(&stock),
        errors(&with),
        summary["reads"]
    );
    assert!(summary["reads"].as_u64() > Some(0), "bowwave did nothing: {summary}");
    assert!(errors(&stock) > 0, "nothing failed");
    assert!(reads <= MOST_READS * stock_reads, "{reads} reads in place of {stock_reads}");
    (stock, with)
}

#[test]
fn where_folios_are_single_pages_a_program_sees_the_same_of_a_failing_disk() {
    let Some(bench) = Bench::new(Folios::Single) else { return };
    let (stock, with) = stock_and_with(&bench);
    let most = 1 + errors(&stock) / OTHER_ONE_IN;
    let (stock, with) = (stock.as_flattened().concat(), with.as_flattened().concat());
    assert_eq!(with.len(), stock.len(), "they read the same pages");
    let others = stock.iter().zip(&with).filter(|(stock, with)| stock != with).count();
    println!("{others} of {} pages are seen otherwise", stock.len());
    assert!(others <= most, "{others} pages");
}

#[test]
fn where_folios_are_large_no_more_reads_fail() {
    let Some(bench) = Bench::new(Folios::Large) else { return };
    let (stock, with) = stock_and_with(&bench);
    assert!(errors(&with) <= errors(&stock));
}
