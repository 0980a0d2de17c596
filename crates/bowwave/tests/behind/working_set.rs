//! A working set beside a program that reads or copies more than memory holds. A memory cgroup stands in for a small
//! machine.
//!
//! Each page of the working set was read once, so that the kernel by itself gives it up for pages that are read later.
//! The copy is no faster than a disk: who writes faster fills memory with pages that are not on the disk yet, and nobody
//! can drop these.

use std::fs;
use std::process::{Command, Stdio};

use crate::bench::{Bench, MB, bench_with, evict, summary_of, text};
use crate::cgroup::Cgroup;
use crate::removals::Watched;

const MEMORY_BYTES: u64 = 256 * MB;
const WORKING_SET_BYTES: u64 = 64 * MB;
const LARGE_BYTES: u64 = 384 * MB;

/// Reads a file and writes another, 160 MiB in a second.
const PACED_COPY: &str = "import os,sys,time
a,b=os.open(sys.argv[1],0),os.open(sys.argv[2],os.O_WRONLY|os.O_CREAT)
begun,at=time.monotonic(),0
while piece:=os.read(a,1<<20):
    os.write(b,piece)
    at+=1
    time.sleep(max(0,begun+at/160-time.monotonic()))";

/// The part of a working set that stays with bowwave, at least; and the part that may stay without.
const KEPT: f64 = 0.99;
const KEPT_BY_STOCK: f64 = 0.5;

/// The part of a working set that this job leaves in the cgroup; `None` where the kernel does not trace.
fn left_by(bench: &Bench, job: &[&str], cgroup: &Cgroup, options: Option<&[&str]>) -> Option<f64> {
    let working_set = bench.cold("working-set", WORKING_SET_BYTES);
    let mut watched = Watched::new(&working_set)?;
    // Its pages are charged there.
    run(&mut cgroup.hold(Command::new("cat").arg(&working_set)));
    // The machine may have reclaimed a page of it already.
    let before = watched.kept();
    assert!(before >= WORKING_SET_BYTES * 99 / 100, "it fits: {}", watched.story());
    match options {
        Some(options) => {
            let done = summary_of(cgroup.hold(&bench.run(options, job)));
            eprintln!("{options:?} {job:?}: {done}, {} bytes stay", watched.kept());
        }
        None => {
            let (program, arguments) = job.split_first().expect("a program");
            let mut stock = Command::new(program);
            run(&mut cgroup.hold(stock.args(arguments)));
        }
    }
    Some(watched.kept() as f64 / before as f64)
}

fn run(command: &mut Command) {
    assert!(command.stdout(Stdio::null()).status().expect("it runs").success());
}

fn survives_on(fs_type: &str, options: &[&[&str]]) {
    let Some(bench) = bench_with("net", fs_type) else { return };
    let Some(cgroup) = Cgroup::with_memory(Some(MEMORY_BYTES)) else { return };
    let large = bench.cold("large", LARGE_BYTES);
    let copy = bench.lab.mount_point().join("copy");
    let jobs: [&[&str]; 2] =
        [&["cat", text(&large)], &["python3", "-c", PACED_COPY, text(&large), text(&copy)]];
    for job in jobs {
        let left = |options| {
            evict(&large);
            let _ = fs::remove_file(&copy);
            left_by(&bench, job, &cgroup, options)
        };
        let Some(by_stock) = left(None) else { return };
        eprintln!("{job:?}: {by_stock} by stock");
        assert!(by_stock <= KEPT_BY_STOCK, "{job:?}: the kernel itself leaves {by_stock}");
        for options in options {
            // If the machine is busy, a job may fill the memory before bowwave comes to drop anything.
            let kept = (0..3).map_while(|_| left(Some(options))).find(|left| *left >= KEPT);
            assert!(kept.is_some(), "{options:?} {job:?}: less than {KEPT} stays each time");
        }
    }
}

#[test]
fn a_working_set_survives_on_ext4_asked_for_and_by_itself() {
    survives_on("ext4", &[&["--drop-behind"], &[]]);
}

#[test]
fn a_working_set_survives_on_xfs() {
    survives_on("xfs", &[&["--drop-behind"]]);
}

#[test]
fn a_working_set_survives_on_btrfs() {
    survives_on("btrfs", &[&["--drop-behind"]]);
}
