//! A memory cgroup stands in for a small machine.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::bench::{Bench, Cgroup, MB, bench, evict, kept, resident, summary_of, text};

/// Reads the file within the cgroup, thrice: its pages are active then, and charged there.
fn work_with(cgroup: &Cgroup, file: &Path) {
    for _ in 0..3 {
        let mut cat = Command::new("cat");
        let status = cgroup.hold(cat.arg(file)).status().expect("it runs");
        assert!(status.success());
    }
}

pub(crate) fn disturbed(bench: &Bench, options: &[&str], command: &[&str], cgroup: &Cgroup) -> f64 {
    let working_set = bench.cold("working-set", 32 * MB);
    work_with(cgroup, &working_set);
    assert_eq!(kept(&working_set), 32 * MB, "it fits");
    let run = cgroup.hold(&bench.run(options, command));
    let done = summary_of(run);
    eprintln!("{options:?} {command:?}: {done}");
    resident(&working_set) as f64 / (32 * MB) as f64
}

/// A program that reads a large file here and there may come again, whatever the file's size.
#[test]
fn what_is_read_at_random_stays_unless_everything_shall_go() {
    let Some(bench) = bench() else { return };
    let Some(cgroup) = Cgroup::with_limit(128 * MB) else { return };
    let file = bench.cold("large", 64 * MB);
    // 200 blocks of 64 KiB.
    let script = "open F, $ARGV[0]; for (0..199) { sysseek F, 65536 * ($_ * 7919 % 1024), 0; \
                  sysread F, $b, 65536 }";
    let command = ["perl", "-e", script, text(&file)];
    let done = summary_of(cgroup.hold(&bench.run(&["--drop-behind=auto"], &command)));
    assert!(kept(&file) >= 200 * 65536, "{} bytes, {done}", kept(&file));
}

#[test]
fn a_working_set_survives_reading_and_copying_more_than_memory() {
    let Some(bench) = bench() else { return };
    let Some(cgroup) = Cgroup::with_limit(128 * MB) else { return };
    let large = bench.cold("large", 256 * MB);
    let copy = bench.lab.mount_point().join("copy");
    let jobs: [&[&str]; 2] =
        [&["cat", text(&large)], &["cp", "--reflink=never", text(&large), text(&copy)]];
    for job in jobs {
        // Asked for, and by itself, as the file is larger than an eighth of this memory.
        for options in [&["--drop-behind"][..], &[]] {
            evict(&large);
            let _ = fs::remove_file(&copy);
            let left = disturbed(&bench, options, job, &cgroup);
            assert!(left >= 0.99, "{job:?} {options:?}: {left} of the working set");
        }
    }
}

#[test]
fn what_is_read_ahead_is_charged_to_the_cgroup_of_run_and_to_that_of_the_daemon() {
    let Some(bench) = bench() else { return };
    let Some(cgroup) = Cgroup::with_limit(256 * MB) else { return };
    let file = bench.cold("file", 48 * MB);
    let read = ["tac", text(&file)];
    summary_of(cgroup.hold(&bench.run(&["--drop-behind=never"], &read)));
    let charged = cgroup.charged();
    assert!(charged >= 47 * MB, "{charged} bytes");

    evict(&file);
    let before = cgroup.charged();
    let daemon = bench.daemon(&[]);
    let mut reader = Command::new("tac");
    let status = cgroup.hold(reader.arg(&file)).status().expect("it runs");
    drop(daemon);
    assert!(status.success());
    assert!(resident(&file) >= 47 * MB);
    let of_reader = cgroup.charged().saturating_sub(before);
    assert!(of_reader <= 24 * MB, "{of_reader} of 48 MB are charged to the reader");
}
