//! Drop-behind, end to end on the running kernel: what goes, and what never goes.
//!
//! What is asserted is counted (pages cached, bytes), never timed. Needs root, FUSE and eBPF;
//! elsewhere a test says why it is skipped, unless BOWWAVE_REQUIRE_LIVE=1 makes that a failure. Where xfs or
//! btrfs is not known to the kernel, or has no mkfs installed, its turn is skipped in any case, with the reason.

mod bench;
mod file_systems;
#[path = "../led/mod.rs"]
mod led;
#[path = "../own/mod.rs"]
mod own;
mod small_memory;
#[path = "../stage/mod.rs"]
mod stage;
mod told;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use own::Own;

use bench::{
    Cgroup, MB, RECLAIMED_BYTES, bench, evict, kept, open_random, read, resident, summary_of, text,
};

#[test]
fn what_was_cold_goes_and_what_was_hot_stays() {
    let Some(bench) = bench() else { return };
    let file = bench.cold("file", 64 * MB);
    let done = summary_of(bench.run(&["--drop-behind"], &["cat", text(&file)]));
    assert_eq!(resident(&file), 0, "{done}");
    assert_eq!(done["dropped_bytes"], 64 * MB, "{done}");

    fs::read(&file).expect("it is hot");
    let done = summary_of(bench.run(&["--drop-behind"], &["cat", text(&file)]));
    assert_eq!((kept(&file), &done["dropped_bytes"]), (64 * MB, &0.into()));
}

#[test]
fn of_a_half_cached_file_the_cached_half_stays() {
    let Some(bench) = bench() else { return };
    let file = bench.cold("file", 64 * MB);
    let other = open_random(&file);
    let hot = || (0..64).step_by(2).map(|start| (start * MB, start * MB + MB));
    hot().for_each(|(from, to)| read(&other, from, to));
    assert_eq!(kept(&file), 32 * MB, "before");
    let done = summary_of(bench.run(&["--drop-behind"], &["cat", text(&file)]));
    // A page that was reclaimed before the stream came was not there when it came.
    let lost = 32 * MB - kept(&file).min(32 * MB);
    assert!(lost <= RECLAIMED_BYTES, "{lost}: {done}");
    let before = bench.device_bytes();
    hot().for_each(|(from, to)| read(&other, from, to));
    assert!(bench.device_bytes() - before <= RECLAIMED_BYTES, "the same half");
}

#[test]
fn without_it_the_cache_is_as_stock_leaves_it() {
    let Some(bench) = bench() else { return };
    let file = bench.cold("file", 32 * MB);
    // Nothing of 32 MB is an eighth of this machine's memory, so `auto` leaves it, too.
    for option in ["--drop-behind=never", "--drop-behind=auto"] {
        evict(&file);
        let done = summary_of(bench.run(&[option], &["cat", text(&file)]));
        assert_eq!((kept(&file), &done["dropped_bytes"]), (32 * MB, &0.into()), "{option}");
    }
}

#[test]
fn every_way_of_copying_leaves_neither_side_cached() {
    let Some(bench) = bench() else { return };
    let (from, to) = (bench.cold("from", 48 * MB), bench.lab.mount_point().join("to"));
    let dd = format!("if={}", text(&from));
    let of = format!("of={}", text(&to));
    let ways: [&[&str]; 4] = [
        &["cp", "--reflink=never", "--sparse=never", text(&from), text(&to)],
        &["dd", "bs=64k", "status=none", &dd, &of],
        &["python3", "-c", SENDFILE, text(&from), text(&to)],
        &["python3", "-c", COPY_FILE_RANGE, text(&from), text(&to)],
    ];
    for way in ways {
        let _ = fs::remove_file(&to);
        evict(&from);
        let done = summary_of(bench.run(&["--drop-behind"], way));
        assert_eq!(resident(&from), 0, "{way:?}: {done}");
        // What the disk has not written when the program ends stays.
        let left = done["left_bytes"].as_u64().expect("a number");
        assert!(resident(&to) <= left + MB, "{way:?}: {} of {done}", resident(&to));
        assert!(fs::read(&from).expect("read") == fs::read(&to).expect("read"), "{way:?}");
    }
}

const SENDFILE: &str = "import os,sys
a,b=os.open(sys.argv[1],0),os.open(sys.argv[2],os.O_WRONLY|os.O_CREAT)
n,at=os.fstat(a).st_size,0
while at<n: at+=os.sendfile(b,a,at,n-at)";

const COPY_FILE_RANGE: &str = "import os,sys
a,b=os.open(sys.argv[1],0),os.open(sys.argv[2],os.O_WRONLY|os.O_CREAT)
n,at=os.fstat(a).st_size,0
while at<n: at+=os.copy_file_range(a,b,n-at,at,at)";

#[test]
fn a_tree_of_small_files_is_left_as_cold_as_it_was() {
    let Some(bench) = bench() else { return };
    let folder = bench.lab.mount_point().join("tree");
    fs::create_dir(&folder).expect("a folder");
    let files: Vec<_> =
        (0..200).map(|n| bench.cold(&format!("tree/{n}"), 4096 * (n % 9))).collect();
    let done = summary_of(bench.run(&["--drop-behind"], &["tar", "cf", "-", text(&folder)]));
    let cached: u64 = files.iter().map(|file| resident(file)).sum();
    assert_eq!(cached, 0, "{done}");
}

/// The reader's output is a pipe that this test reads from, so that it knows how far it is.
#[test]
fn a_follower_8_mb_behind_finds_everything_and_what_nobody_follows_goes() {
    let Some(bench) = bench() else { return };
    let file = bench.cold("file", 128 * MB);
    // The disk is measured first.
    summary_of(bench.run(&["--drop-behind"], &["cat", text(&file)]));
    let before = bench.device_bytes();
    let mut run = bench.run(&["--drop-behind"], &["cat", text(&file)]);
    let mut first = Own::start(run.stdout(Stdio::piped()).stderr(Stdio::null()));
    let mut output = first.stdout.take().expect("piped");
    let follower = open_random(&file);
    let mut buffer = vec![0; MB as usize];
    for at in 0..64 {
        output.read_exact(&mut buffer).expect("it goes on");
        if at >= 8 {
            read(&follower, (at - 8) * MB, (at - 7) * MB);
        }
    }
    std::io::copy(&mut output, &mut std::io::sink()).expect("it ends");
    assert!(first.wait().expect("it ended").success());
    // What the follower had missed would have been read twice.
    let missed = (bench.device_bytes() - before).saturating_sub(128 * MB);
    assert!(missed <= 56 * MB / 100, "{missed} bytes");
    let kept = resident(&file);
    assert!(kept >= 56 * MB * 99 / 100, "{kept} bytes that two have read");
    assert!(kept <= 58 * MB, "{kept} bytes, more than two have read");
}

/// A server that sends one file to two clients, one after the other.
const TWO_READERS: &str = "import os,sys
a,b=os.open(sys.argv[1],0),os.open(sys.argv[1],0)
n,step,behind=os.fstat(a).st_size,int(sys.argv[2]),8<<20
for at in range(0,n+behind,step):
    os.pread(a,step,at)
    if at>=behind: os.pread(b,step,at-behind)";

#[test]
fn two_readers_of_one_process_8_mb_apart_read_the_disk_once_and_leave_the_cache_as_it_was() {
    let Some(bench) = bench() else { return };
    let Some(cgroup) = Cgroup::with_limit(64 * MB) else { return };
    let file = bench.cold("file", 192 * MB);
    let run = |step| {
        let python = ["python3", "-c", TWO_READERS, text(&file), step];
        summary_of(cgroup.hold(&bench.run(&["--drop-behind"], &python)))
    };
    // The disk is measured first.
    run("65536");
    // Long reads come in many batches. With longer ones the second reader would be 12 MiB behind and more.
    for step in ["65536", "1048576", "2097152"] {
        evict(&file);
        let before = bench.device_bytes();
        let done = run(step);
        let twice = (bench.device_bytes() - before).saturating_sub(192 * MB);
        assert!(twice <= 192 * MB / 100, "{step}: {twice} bytes were read twice: {done}");
        // The second reader passes its last 8 MB alone, and somewhat more where the first has ended.
        assert!(resident(&file) <= 16 * MB, "{step}: {} bytes stay: {done}", resident(&file));
    }
}

/// After each step forward, within these MiB, the page at 8 MiB once more.
const WITH_INDEX: &str = "import os,sys
f,step,index=os.open(sys.argv[1],0),1<<20,8<<20
begin,end=(int(mib)<<20 for mib in sys.argv[2:])
for at in range(0,os.fstat(f).st_size,step):
    os.pread(f,step,at)
    if begin<=at<end: os.pread(f,4096,index)";

#[test]
fn a_page_looked_up_again_and_again_by_who_reads_on_is_no_second_reader() {
    let Some(bench) = bench() else { return };
    let file = bench.cold("file", 64 * MB);
    // No further away than a second reader would be; and all the time.
    for (begin, end) in [("8", "19"), ("0", "64")] {
        evict(&file);
        let reader = ["python3", "-c", WITH_INDEX, text(&file), begin, end];
        let done = summary_of(bench.run(&["--drop-behind"], &reader));
        let index = bench::kept_within(&file, 2048, 1);
        assert_eq!(index, 1, "{begin} to {end}: {done}");
        assert!(resident(&file) <= 2 * MB, "{begin} to {end}: the rest goes: {done}");
    }
}

#[test]
fn what_one_process_reads_again_stays() {
    let Some(bench) = bench() else { return };
    // Of a larger file the first pass has left its end only.
    for bytes in [MB, 10 * MB] {
        let file = bench.cold("file", bytes);
        let again = format!("cat {0} {0}", text(&file));
        let done = summary_of(bench.run(&["--drop-behind"], &["sh", "-c", &again]));
        assert_eq!(kept(&file), bytes, "{done}");
    }
}

#[test]
fn what_another_process_reads_meanwhile_or_has_mapped_stays() {
    let Some(bench) = bench() else { return };
    let file = bench.cold("file", 64 * MB);
    // The disk is measured first.
    summary_of(bench.run(&["--drop-behind"], &["cat", text(&file)]));
    let before = bench.device_bytes();
    let mut run = bench.run(&["--drop-behind"], &["cat", text(&file)]);
    let mut reader = Own::start(run.stdout(Stdio::piped()).stderr(Stdio::null()));
    let mut output = reader.stdout.take().expect("piped");
    output.read_exact(&mut vec![0; 4 * MB as usize]).expect("4 MB are read");
    let other = open_random(&file);
    read(&other, MB, 2 * MB);
    std::io::copy(&mut output, &mut std::io::sink()).expect("it ends");
    assert!(reader.wait().expect("it ended").success());
    assert_eq!(kept(&file), MB);
    read(&other, MB, 2 * MB);
    let twice = (bench.device_bytes() - before).saturating_sub(64 * MB);
    assert!(twice <= RECLAIMED_BYTES, "{twice} bytes were read twice");

    let program = bench.lab.mount_point().join("sleep");
    fs::copy("/bin/sleep", &program).expect("copied");
    evict(&program);
    let mapper = Own::start(Command::new(&program).arg("1000").stdout(Stdio::piped()));
    let run = bench.run(&["--drop-behind"], &["cat", text(&program)]);
    let mapped = kept(&program);
    assert!(mapped > 0, "its text");
    summary_of(run);
    let still = kept(&program);
    drop(mapper);
    assert!(still >= mapped, "{still} of {mapped} bytes");
}

/// Nothing else has the pages mapped, so they are taken out of its page tables.
#[test]
fn a_scan_of_a_mapped_file_goes_while_the_scanner_is_there() {
    let Some(bench) = bench() else { return };
    let file = bench.cold("file", 64 * MB);
    let mut run = bench.run(&["--drop-behind"], &["python3", "-c", SCAN, text(&file)]);
    run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut scanner = Own::start(&mut run);
    let mut lines = BufReader::new(scanner.stdout.take().expect("piped")).lines();
    lines.next().expect("a line").expect("it has scanned all");
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while resident(&file) > 20 * MB && std::time::Instant::now() < until {
        std::thread::yield_now();
    }
    let left = resident(&file);
    drop(scanner.stdin.take());
    assert!(scanner.wait().expect("it ended").success());
    assert!(left <= 20 * MB, "{left} bytes");
    assert!(resident(&file) <= MB, "and the rest when it has ended");
}

const SCAN: &str = "import mmap,os,sys
f=os.open(sys.argv[1],0)
m=mmap.mmap(f,0,prot=mmap.PROT_READ)
print(sum(m[i] for i in range(0,len(m),4096)),flush=True)
sys.stdin.read()";

/// How often the copy is killed: BOWWAVE_KILLS, or 20.
fn kills() -> u64 {
    std::env::var("BOWWAVE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(20)
}

#[test]
fn a_copy_killed_at_any_point_leaves_what_was_written() {
    let Some(bench) = bench() else { return };
    let (from, to) = (bench.cold("from", 32 * MB), bench.lab.mount_point().join("to"));
    let expected = fs::read(&from).expect("read");
    let mut place = 1u64;
    for round in 0..kills() {
        let _ = fs::remove_file(&to);
        place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let until = (place >> 33) % (32 * MB);
        let mut run = bench.run(&["--drop-behind"], &["dd", "bs=128k", "status=none"]);
        run.arg(format!("if={}", text(&from))).arg(format!("of={}", text(&to)));
        std::os::unix::process::CommandExt::process_group(&mut run, 0);
        let mut copy = Own::start(run.stderr(Stdio::null()));
        let has_got_there = || fs::metadata(&to).is_ok_and(|about| about.len() >= until);
        while !has_got_there() && copy.try_wait().expect("a child").is_none() {
            std::thread::yield_now();
        }
        let group = rustix::process::Pid::from_child(&copy);
        // It may have ended by itself.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        copy.wait().expect("it ended");
        let written = fs::read(&to).expect("it is there");
        let is_prefix = |bytes: &[u8]| expected.starts_with(bytes);
        assert!(written.len() as u64 >= until && is_prefix(&written), "round {round}");
        evict(&to);
        assert!(fs::read(&to).expect("from the disk") == written, "round {round}");
    }
}

#[test]
fn rules_of_the_daemon_decide_by_path_and_command() {
    let Some(bench) = bench() else { return };
    let (dropped, kept) = (bench.cold("dropped", 24 * MB), bench.cold("kept", 24 * MB));
    let config = bench.state.path().join("config.toml");
    let rules = format!(
        "[drop-behind]\nmode = \"never\"\n\
         [[drop-behind.rule]]\ncommand = \"head\"\nmode = \"never\"\n\
         [[drop-behind.rule]]\npath = \"{}/**/drop*\"\nmode = \"always\"\n",
        text(bench.lab.mount_point().parent().expect("a folder"))
    );
    fs::write(&config, rules).expect("written");
    let daemon = bench.daemon(&["--config", text(&config)]);
    let read = |program: &str, arguments: &[&str]| {
        let status = Command::new(program).args(arguments).stdout(Stdio::null()).status();
        assert!(status.expect("it runs").success());
    };
    read("cat", &[text(&kept)]);
    read("head", &["-c8M", text(&dropped)]);
    let after_head = resident(&dropped);
    read("cat", &[text(&dropped)]);
    // The daemon sees the end of a process at its next look.
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while resident(&dropped) > after_head && std::time::Instant::now() < until {
        std::thread::yield_now();
    }
    drop(daemon);
    assert_eq!(bench::kept(&kept), 24 * MB);
    assert!(resident(&dropped) <= after_head);
    assert!(after_head >= 8 * MB);
}
