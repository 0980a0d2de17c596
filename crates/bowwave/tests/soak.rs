//! Work that goes on for long does not make bowwave grow.
//!
//! BOWWAVE_SOAK_SECONDS says for how long (6, or 20 minutes with BOWWAVE_TORTURE=1), BOWWAVE_SEED what the programs
//! write. Skipped where labs or eBPF do not work, unless BOWWAVE_REQUIRE_LIVE=1 makes that a failure.

mod managed;
mod own;
mod programs;
mod stage;
mod trial;
mod windows;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use managed::{Bench, Daemon};
use own::Own;
use programs::Programs;

/// What a daemon may need, in KiB.
const MOST_MEMORY_KB: f64 = 65536.0;

/// What grows within the second half by more than this share of it, and by more than `SLACK`, is not flat.
const MOST_GROWTH: f64 = 0.05;

/// What comes and goes within a shorter time looks like growth.
const LEAST_SECONDS: u64 = 60;

/// Once nobody reads, threads, descriptors and windows go within a minute: they are looked for that often.
const MOST_WAITING: Duration = Duration::from_secs(120);

/// The program that looks at open files (open_file.bpf.c) is loaded by a thread, and stays: it and its types have a
/// descriptor each.
const LOADED_LATER: f64 = 2.0;

/// What is looked at each second.
const FIGURES: [&str; 5] = ["resident KiB", "descriptors", "threads", "mappings", "ledger bytes"];

/// Of each figure: what comes and goes with the work.
const SLACK: [f64; 5] = [2048.0, 16.0, 8.0, 32.0, 65536.0];

/// Seconds since the beginning, and the figures.
type Sample = (f64, [f64; FIGURES.len()]);

impl Bench {
    /// An empty lab; `None` where labs or eBPF do not work.
    fn new() -> Option<Self> {
        Bench::of("soak", 256 << 20)
    }

    fn daemon(&self) -> Daemon {
        self.lab.set_fast(false).expect("slow");
        let options = ["--charge", "reader", "--drop-behind", "always"];
        Daemon::begin(&mut managed::daemon(&self.lab, self.state.path(), &options))
    }

    fn ledger_bytes(&self) -> u64 {
        // One may be replaced at any moment.
        let ledgers = windows::ledgers(self.state.path());
        ledgers.filter_map(|it| Some(fs::metadata(it).ok()?.len())).sum()
    }

    fn sample(&self, daemon: &Daemon, begun: Instant) -> Sample {
        let process = PathBuf::from(format!("/proc/{}", daemon.child.id()));
        let status = fs::read_to_string(process.join("status")).expect("it runs");
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
            line.trim().trim_end_matches(" kB").parse().expect("a number")
        };
        let descriptors = fs::read_dir(process.join("fd")).expect("it runs").count();
        let mappings = fs::read_to_string(process.join("maps")).expect("it runs").lines().count();
        let figures = [
            field("VmRSS:"),
            descriptors as f64,
            field("Threads:"),
            mappings as f64,
            self.ledger_bytes() as f64,
        ];
        (begun.elapsed().as_secs_f64(), figures)
    }
}

/// Each descriptor with what it leads to.
fn opened(daemon: &Daemon) -> BTreeSet<(OsString, PathBuf)> {
    let folder = fs::read_dir(format!("/proc/{}/fd", daemon.child.id())).expect("it runs");
    let to = |entry: fs::DirEntry| Some((entry.file_name(), fs::read_link(entry.path()).ok()?));
    folder.flatten().filter_map(to).collect()
}

/// Makes a folder of small files, has tar read them, and removes it.
fn make_and_remove_tree(tree: &Path) {
    fs::create_dir(tree).expect("room on the lab");
    for file in 0..200 {
        fs::write(tree.join(file.to_string()), [7; 5000]).expect("room on the lab");
    }
    let mut tar = Command::new("tar");
    tar.arg("-cf-").arg(".").current_dir(tree).stdout(Stdio::null());
    assert!(Own::start(&mut tar).wait().expect("it ends").success());
    fs::remove_dir_all(tree).expect("it was made");
}

/// By how much a figure grows within an hour: the slope of a straight line through all points (least squares).
fn per_hour(samples: &[Sample], figure: usize) -> f64 {
    let count = samples.len() as f64;
    let mean_s = samples.iter().map(|(at_s, _)| at_s).sum::<f64>() / count;
    let mean = samples.iter().map(|(_, figures)| figures[figure]).sum::<f64>() / count;
    let both = samples.iter().map(|(at_s, figures)| (at_s - mean_s) * (figures[figure] - mean));
    let square = samples.iter().map(|(at_s, _)| (at_s - mean_s).powi(2)).sum::<f64>();
    both.sum::<f64>() / square * 3600.0
}

fn median(samples: &[Sample], figure: usize) -> f64 {
    linux::median(samples.iter().map(|(_, figures)| figures[figure])).expect("there are some")
}

/// Prints each figure's slope, and fails if one grows.
fn is_flat(samples: &[Sample]) {
    let second_half = &samples[samples.len() / 2..];
    let (third_quarter, last_quarter) = second_half.split_at(second_half.len() / 2);
    println!("figure         median  in the end  slope an hour, of the second half");
    for (figure, name) in FIGURES.into_iter().enumerate() {
        let (before, after) = (median(third_quarter, figure), median(last_quarter, figure));
        let slope = per_hour(second_half, figure);
        println!("{name:<12} {before:>8.0} {after:>11.0} {slope:>+14.1}");
        let grows = after - before > (before * MOST_GROWTH).max(SLACK[figure]);
        assert!(!grows, "{name}: {after} after {before}");
    }
}

#[test]
fn what_goes_on_for_long_does_not_make_it_grow() {
    let Some(bench) = Bench::new() else { return };
    let seconds = trial::number("BOWWAVE_SOAK_SECONDS", 6, 20 * 60);
    let daemon = bench.daemon();
    let begun = Instant::now();
    let (_, [_, descriptors, threads, ..]) = bench.sample(&daemon, begun);
    let descriptors = descriptors + LOADED_LATER;
    let opened = opened(&daemon);
    let folder = bench.lab.mount_point();
    let Some(mut programs) = Programs::begin(&folder, trial::seed()) else { return };
    programs.repeat("tar", move |round| make_and_remove_tree(&folder.join(format!("tree{round}"))));
    let mut samples = Vec::new();
    while begun.elapsed() < Duration::from_secs(seconds) {
        samples.push(bench.sample(&daemon, begun));
        thread::sleep(Duration::from_millis(if seconds < 60 { 100 } else { 1000 }));
    }
    println!("{seconds} s: {}", programs.end());
    let is_long = seconds >= LEAST_SECONDS;
    if is_long {
        is_flat(&samples);
    }
    let most_kb = samples.iter().map(|(_, figures)| figures[0]).fold(0.0, f64::max);
    assert!(most_kb < MOST_MEMORY_KB, "{most_kb} KiB");
    // What nobody needs any more goes within a minute, so only a long run waits for it.
    if is_long {
        let (ended, mut now) = (Instant::now(), [0.0; FIGURES.len()]);
        while ended.elapsed() < MOST_WAITING {
            now = bench.sample(&daemon, begun).1;
            let is_idle = now[1] <= descriptors && now[2] <= threads;
            if is_idle && windows::left_over(&bench.lab, bench.state.path()) == 0 {
                break;
            }
            thread::sleep(Duration::from_millis(100));
        }
        println!("{:.1} s after the end: {now:?}", ended.elapsed().as_secs_f64());
        let more: Vec<_> = self::opened(&daemon).difference(&opened).cloned().collect();
        assert!(now[1] <= descriptors, "{} descriptors instead of {descriptors}: {more:?}", now[1]);
        assert!(now[2] <= threads, "{} threads, {threads} at the beginning", now[2]);
        assert_eq!(
            windows::left_over(&bench.lab, bench.state.path()),
            0,
            "windows of files that are closed"
        );
    }
    daemon.end();
    assert_eq!(windows::left_over(&bench.lab, bench.state.path()), 0, "windows after the end");
}
