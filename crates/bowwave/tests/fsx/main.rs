//! Random operations on files, while bowwave reads ahead of them and drops behind them whatever it may: each read gives
//! what was written, as a model in memory tells, and so does the disk in the end. (After `fsx`, the file system
//! exerciser.) So does fio, which verifies what it has written ([`verified`]).
//!
//! BOWWAVE_OPERATIONS says how many on each file system (4,000, or a million with BOWWAVE_TORTURE=1), BOWWAVE_FIO_ROUNDS
//! how often fio writes (once, or 10 times larger files), BOWWAVE_SEED what they do. Skipped where labs or eBPF do not
//! work, unless BOWWAVE_REQUIRE_LIVE=1 makes that a failure.

mod ground;
#[path = "../managed/mod.rs"]
mod managed;
mod mapped;
mod modelled;
#[path = "../own/mod.rs"]
mod own;
#[path = "../programs/mod.rs"]
mod programs;
#[path = "../stage/mod.rs"]
mod stage;
#[path = "../trial/mod.rs"]
mod trial;
mod verified;

use std::collections::BTreeMap;
use std::process::Command;
use std::thread;

use ground::Ground;
use modelled::{Ended, Modelled};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// Files that are worked on at once.
const FILES: u64 = 2;

/// As many operations as wanted on files of that ground, under a daemon that drops behind always.
fn files_are_as_modelled_on(ground: Option<Ground>) {
    let Some(mut ground) = ground else { return };
    let (seed, operations) = (trial::seed(), trial::number("BOWWAVE_OPERATIONS", 4_000, 1_000_000));
    let daemon = ground.daemon();
    let work = |number: u64| {
        let path = ground.folder().join(format!("file{number}"));
        let mut file = Modelled::new(path, seed + number);
        for _ in 0..operations / FILES {
            file.operate();
        }
        file.end()
    };
    let files: Vec<Ended> = thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..FILES).map(|number| scope.spawn(move || work(number))).collect();
        threads.into_iter().map(|it| it.join().expect("a file is not as modelled")).collect()
    });
    let summary = daemon.end();
    // Nothing in the page cache hides what is on the disk.
    ground.evict();
    let mut done = BTreeMap::new();
    for file in &files {
        file.is_as_modelled();
        file.done.iter().for_each(|(name, times)| *done.entry(*name).or_insert(0) += times);
    }
    println!(
        "{}: {done:?}; {} windows read ahead, {} bytes dropped",
        ground.name(),
        summary["reads"],
        summary["dropped_bytes"]
    );
    // What is dropped is dropped a moment later: within a second that may be nothing.
    let is_long = operations >= 100_000;
    for figure in ["reads", "dropped_bytes"].into_iter().take(1 + usize::from(is_long)) {
        assert!(summary[figure].as_u64() > Some(0), "bowwave did nothing: {summary}");
    }
}

#[test]
fn files_are_as_modelled_on_ext4() {
    files_are_as_modelled_on(Ground::disk("ext4"));
}

#[test]
fn files_are_as_modelled_on_xfs() {
    files_are_as_modelled_on(Ground::disk("xfs"));
}

#[test]
fn files_are_as_modelled_on_btrfs() {
    files_are_as_modelled_on(Ground::disk("btrfs"));
}

#[test]
fn files_are_as_modelled_on_an_overlay() {
    files_are_as_modelled_on(Ground::overlay());
}

#[test]
fn files_are_as_modelled_on_fuse() {
    files_are_as_modelled_on(Ground::fuse());
}

#[test]
fn a_tmpfs_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    if let Err(error) = mount("none", folder.path(), "tmpfs", MountFlags::empty(), None) {
        return stage::skipped(&format!("no tmpfs can be mounted: {error}")).unwrap_or_default();
    }
    let daemon =
        Command::new(stage::BOWWAVE).arg("daemon").arg("--path").arg(folder.path()).output();
    unmount(folder.path(), UnmountFlags::DETACH).expect("it is mounted");
    let daemon = daemon.expect("it ran");
    let said = String::from_utf8_lossy(&daemon.stderr);
    assert!(!daemon.status.success() && said.contains("tmpfs"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}
