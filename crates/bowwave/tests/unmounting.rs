//! A file system can be unmounted soon after its last reader has ended, although bowwave was reading a tree of files
//! ahead for it. What lies below its mount point is then not managed in its place.
//!
//! An open file keeps its file system from being unmounted, and so does bowwave while it waits for the device. The
//! judge is what the device still serves. Skipped where labs or eBPF do not work, unless BOWWAVE_REQUIRE_LIVE=1 makes
//! that a failure.

mod managed;
mod own;
mod stage;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use own::Own;
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

const FOLDERS: u64 = 20;
const FILES: u64 = 60;

/// Moments at which a reader ends.
const ROUNDS: u64 = 8;

/// On average, what bowwave's threads may have under way: an inode, a folder or an extent, and a file's pages each.
/// More may be served in a round, as the device's queue holds what was asked for before.
const MOST_READS: u64 = 24;

/// Reads all files of a tree, one after the other.
const WALK: &str = "import os,sys
for folder, _, files in os.walk(sys.argv[1]):
    for name in files:
        open(os.path.join(folder, name), 'rb').read()";

/// What comes sooner or later comes within that time, also on a busy machine.
const MOST_WAITING: Duration = Duration::from_secs(60);

#[test]
fn bowwave_stops_to_read_a_tree_when_its_reader_has_ended_so_that_it_can_be_unmounted() {
    if managed::possible().is_none() {
        return;
    }
    let (_alone, lab) = stage::lab("unmounting", "hdd", 256 << 20, "ext4");
    let (state, folder) = (stage::state(), lab.mount_point());
    lab.set_fast(true).expect("fast");
    for number in 0..FOLDERS {
        let tree = folder.join(number.to_string());
        fs::create_dir_all(&tree).expect("a folder");
        for file in 0..FILES {
            fs::write(tree.join(file.to_string()), vec![7; 20 << 10]).expect("a file");
        }
    }
    lab.evict().expect("evicted");
    lab.set_fast(false).expect("slow");
    let (mut daemon, _output) = managed::begin(&mut managed::daemon(&lab, state.path(), &[]));
    let served = || lab.status().expect("counters").reads;
    let mut while_busy = Vec::new();
    for round in 1..=ROUNDS {
        let before = served();
        let mut walk = Own::start(Command::new("python3").args(["-c", WALK]).arg(&folder));
        // Each time at another moment.
        stage::wait_until("it reads", MOST_WAITING, || served() - before > 36 * round);
        let _ = walk.kill();
        walk.wait().expect("it ends");
        let (ended, begun) = (served(), Instant::now());
        let mut reads = 0;
        while let Err(error) = unmount(&folder, UnmountFlags::empty()) {
            assert_eq!(error, Errno::BUSY);
            assert!(begun.elapsed() < MOST_WAITING, "it cannot be unmounted");
            thread::sleep(Duration::from_millis(1));
            reads = served() - ended;
        }
        while_busy.push(reads);
        mount(lab.block_device(), &folder, c"ext4", MountFlags::empty(), None).expect("mounted");
    }
    daemon.kill().expect("it runs");
    daemon.wait().expect("it ends");
    println!("requests while it is busy: {while_busy:?}");
    assert!(while_busy.iter().sum::<u64>() <= MOST_READS * ROUNDS, "{while_busy:?}");
}

#[test]
fn the_file_system_above_an_unmounted_one_is_not_managed_in_its_place() {
    let Some(bench) = managed::Bench::of("unmounted", 64 << 20) else { return };
    let folder = bench.lab.mount_point();
    let mut command = managed::daemon(&bench.lab, bench.state.path(), &[]);
    let (mut daemon, _output) = managed::begin(&mut command);
    let mut seen = BTreeSet::new();
    // `None` if there is no answer.
    let mut is_managed = || {
        let mut status = Command::new(stage::BOWWAVE);
        status.args(["status", "--json", "--state"]).arg(bench.state.path());
        let told = status.output().expect("it ran").stdout;
        let told: serde_json::Value = serde_json::from_slice(&told).ok()?;
        let devices = told[0]["devices"].as_array()?.iter();
        let places = devices.flat_map(|of| of["mount_points"].as_array().expect("places"));
        let places: Vec<_> = places.filter_map(|place| place.as_str()).map(str::to_owned).collect();
        let is_managed = !places.is_empty();
        seen.extend(places);
        Some(is_managed)
    };
    stage::wait_until("it is managed", MOST_WAITING, || is_managed() == Some(true));
    stage::wait_until("it is unmounted", MOST_WAITING, || {
        match unmount(&folder, UnmountFlags::empty()) {
            Err(Errno::BUSY) => false,
            unmounted => unmounted.map(|()| true).expect("root may do that"),
        }
    });
    stage::wait_until("it is not managed", MOST_WAITING, || is_managed() == Some(false));
    mount(bench.lab.block_device(), &folder, c"ext4", MountFlags::empty(), None).expect("mounted");
    stage::wait_until("it is managed again", MOST_WAITING, || is_managed() == Some(true));
    daemon.kill().expect("it runs");
    daemon.wait().expect("it ends");
    assert_eq!(seen, BTreeSet::from([folder.display().to_string()]));
}
