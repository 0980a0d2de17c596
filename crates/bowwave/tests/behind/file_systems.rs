//! Unmounting, and a stick that is slower than who writes to it.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::bench::{MB, bench_with, bytes, end, is_gone, resident};
use crate::own::Own;

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

/// How many times a child has a file open. It is stopped while its descriptors are listed: a list that is read while
/// descriptors close and open has some that never were open at one time. What only stands for a path, on the way to
/// the file (`O_PATH`), is not counted.
fn times_open(file: &Path, child: u32) -> usize {
    let pid = i32::try_from(child).ok().and_then(Pid::from_raw).expect("a process");
    kill_process(pid, Signal::STOP).expect("its parent may");
    waitpid(Some(pid), WaitOptions::UNTRACED).expect("all its threads stop");
    let descriptors = fs::read_dir(format!("/proc/{child}/fd")).expect("it is there").flatten();
    let is_open = |descriptor: &fs::DirEntry| {
        let info =
            Path::new("/proc").join(child.to_string()).join("fdinfo").join(descriptor.file_name());
        let info = fs::read_to_string(info).expect("it is stopped");
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).expect("flags");
        let flags = u32::from_str_radix(flags.trim(), 8).expect("octal");
        flags & OFlags::PATH.bits() == 0
    };
    let of_file = descriptors.filter(|it| fs::read_link(it.path()).is_ok_and(|to| to == file));
    let times = of_file.filter(is_open).count();
    kill_process(pid, Signal::CONT).expect("its parent may");
    times
}

#[test]
fn a_copy_to_a_slow_stick_does_not_wait_for_it_and_has_its_file_open_twice_at_most() {
    const BYTES: u64 = 48 * MB;
    let Some(bench) = bench_with("usb-2g", "ext4") else { return };
    let source = tempfile::NamedTempFile::new().expect("a file").into_temp_path();
    fs::write(&source, vec![7; BYTES as usize]).expect("written");
    let copy = bench.lab.mount_point().join("copy");
    let daemon = bench.daemon(&["--drop-behind", "always"]);
    bench.lab.set_fast(false).expect("slow");
    // Where much is dirty, the kernel makes whoever writes wait.
    rustix::fs::sync();
    let written = || bench.lab.status().expect("counters").bytes_written;
    let before = written();
    let has_it_open = fs::File::open(&source).expect("it is there");
    let mut sleeper = Own::start(Command::new("sleep").arg("1000").stdin(has_it_open));
    assert_eq!(times_open(&source, sleeper.id()), 1);
    sleeper.kill().expect("it sleeps");
    sleeper.wait().expect("it ends");
    let copied = Command::new("cp").arg(&source).arg(&copy).status();
    assert!(copied.expect("it runs").success());
    let at_its_end = written() - before;
    // The stick writes 15 MB/s: also a slow machine copies sooner. Had the copy waited, all but a few MB would be
    // there.
    let most = BYTES * 3 / 4;
    assert!(at_its_end < most, "{at_its_end} bytes were on the stick when the copy ended");
    let (mut most, until) = (0, Instant::now() + Duration::from_secs(60));
    while !is_gone(&copy) && Instant::now() < until {
        most = most.max(times_open(&copy, daemon.id()));
    }
    assert!(is_gone(&copy), "{} bytes stay, when all is written", resident(&copy));
    // Once to write it out and once to drop it.
    assert!(most <= 2, "open {most} times");
    let all = written() - before;
    assert!((BYTES..BYTES + 4 * MB).contains(&all), "{all} bytes, once each");
    bench.lab.set_fast(true).expect("fast");
    assert!(fs::read(&copy).expect("read") == fs::read(&source).expect("read"));
}
