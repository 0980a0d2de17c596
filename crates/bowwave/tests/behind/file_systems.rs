//! Unmounting, and a stick that is slower than who writes to it.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::bench::{Bench, MB, bench_with, bytes, end, is_gone, resident};

fn can_be_unmounted_while_it_is_dropped_behind(fs_type: &str) {
    let Some(bench) = bench_with("net", fs_type) else { return };
    let daemon = bench.daemon(&["--drop-behind", "always"]);
    let path = bench.lab.mount_point().join("file");
    for round in 0..4 {
        bench.lab.set_fast(false).expect("slow");
        fs::File::create(&path)
            .and_then(|mut file| file.write_all(&vec![1; 48 << 20]))
            .expect("written");
        // What was just written, and then what is not cached.
        for _ in 0..2 {
            let mut cat = Command::new("cat");
            let read = cat.arg(&path).stdout(std::process::Stdio::null()).status();
            assert!(read.expect("it runs").success());
            // Unmounts and mounts; whoever holds a file for longer than half a second is in the way.
            let evicted = bench.lab.evict();
            evicted.unwrap_or_else(|error| panic!("round {round}: {error}"));
        }
        bench.lab.set_fast(true).expect("fast");
    }
    let done = end(daemon);
    assert!(bytes(&done, "dropped_bytes") > 0, "{done}");
}

#[test]
fn an_ext4_can_be_unmounted_while_it_is_dropped_behind() {
    can_be_unmounted_while_it_is_dropped_behind("ext4");
}

#[test]
fn an_xfs_can_be_unmounted_while_it_is_dropped_behind() {
    can_be_unmounted_while_it_is_dropped_behind("xfs");
}

#[test]
fn a_btrfs_can_be_unmounted_while_it_is_dropped_behind() {
    can_be_unmounted_while_it_is_dropped_behind("btrfs");
}

/// Descriptors by which a process has files below the lab's mount open. They are not listed all at one moment,
/// so those count that are there when they are listed once more.
fn held(bench: &Bench, pid: u32) -> usize {
    let list = || -> HashSet<PathBuf> {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs").flatten();
        let is_below = |descriptor: &PathBuf| {
            fs::read_link(descriptor).is_ok_and(|to| to.starts_with(bench.lab.mount_point()))
        };
        open.map(|entry| entry.path()).filter(is_below).collect()
    };
    list().intersection(&list()).count()
}

#[test]
fn a_copy_to_a_slow_stick_does_not_wait_for_it_and_its_file_is_held_by_two_at_most() {
    const BYTES: u64 = 48 * MB;
    let Some(bench) = bench_with("usb-2g", "ext4") else { return };
    let source = tempfile::NamedTempFile::new().expect("a file").into_temp_path();
    fs::write(&source, vec![7; BYTES as usize]).expect("written");
    let copy = bench.lab.mount_point().join("copy");
    let daemon = bench.daemon(&["--drop-behind", "always"]);
    bench.lab.set_fast(false).expect("slow");
    let written = || bench.lab.status().expect("counters").bytes_written;
    let before = written();
    let copied = Command::new("cp").arg(&source).arg(&copy).status();
    assert!(copied.expect("it runs").success());
    let at_its_end = written() - before;
    // The stick writes 15 MB/s: also a slow machine copies sooner. Had the copy waited, all but a few MB would be
    // there.
    let most = BYTES * 3 / 4;
    assert!(at_its_end < most, "{at_its_end} bytes were on the stick when the copy ended");
    let (mut most, until) = (0, Instant::now() + Duration::from_secs(60));
    while !is_gone(&copy) && Instant::now() < until {
        most = most.max(held(&bench, daemon.id()));
    }
    assert!(is_gone(&copy), "{} bytes stay, when all is written", resident(&copy));
    assert!(most <= 2, "{most} descriptors");
    let all = written() - before;
    assert!((BYTES..BYTES + 4 * MB).contains(&all), "{all} bytes, once each");
    bench.lab.set_fast(true).expect("fast");
    assert!(fs::read(&copy).expect("read") == fs::read(&source).expect("read"));
}
