//! Drop-behind, end to end on the running kernel: what goes, and what never goes.
//!
//! What is asserted is counted (pages cached, bytes), never timed. Pages that the machine itself reclaims
//! meanwhile are told from those that bowwave drops by the kernel's trace. Needs root, FUSE and eBPF;
//! elsewhere a test says why it is skipped, unless BOWWAVE_REQUIRE_LIVE=1 makes that a failure. Where xfs or
//! btrfs is not known to the kernel, or has no mkfs installed, its tests are skipped in any case.

mod bench;
#[path = "../cgroup/mod.rs"]
mod cgroup;
mod file_systems;
#[path = "../managed/mod.rs"]
mod managed;
#[path = "../own/mod.rs"]
mod own;
#[path = "../removals/mod.rs"]
mod removals;
mod small_memory;
#[path = "../stage/mod.rs"]
mod stage;
mod told;
mod working_set;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use cgroup::Cgroup;
use own::Own;

use bench::{
    MB, METADATA_BYTES, bench, bytes, comes_true, evict, is_about, is_gone, open_random, read,
    resident, summary_of, text,
};
use removals::{PAGE_BYTES, Watched};

#[test]
fn what_was_cold_goes_and_what_was_hot_stays() {
    let Some(bench) = bench() else { return };
    let file = bench.cold("file", 64 * MB);
    let done = summary_of(bench.run(&["--drop-behind"], &["cat", text(&file)]));
    assert!(is_gone(&file), "{} of {done}", resident(&file));
    assert!(is_about(bytes(&done, "dropped_bytes"), 64 * MB), "{done}");

    fs::read(&file).expect("it is hot");
    let Some(mut watched) = Watched::new(&file) else { return };
    let done = summary_of(bench.run(&["--drop-behind"], &["cat", text(&file)]));
    assert_eq!(watched.dropped_by_bowwave(), 0, "{done}");
    assert_eq!(watched.kept(), 64 * MB, "{}", watched.story());
    // Of other files that cat has read.
    assert!(is_about(bytes(&done, "dropped_bytes"), 0), "{done}");
}

#[test]
fn of_a_half_cached_file_the_cached_half_stays() {
    let Some(bench) = bench() else { return };
    let file = bench.cold("file", 64 * MB);
    let Some(mut watched) = Watched::new(&file) else { return };
    let other = open_random(&file);
    let hot = || (0..64).step_by(2).map(|start| (start * MB, start * MB + MB));
    hot().for_each(|(from, to)| read(&other, from, to));
    let pages = MB / PAGE_BYTES;
    let kept_hot = |watched: &mut Watched| -> u64 {
        hot().map(|(from, _)| watched.kept_within(from / PAGE_BYTES, pages)).sum()
    };
    assert_eq!(kept_hot(&mut watched), 32 * MB, "before: {}", watched.story());
    let done = summary_of(bench.run(&["--drop-behind"], &["cat", text(&file)]));
    let kept = kept_hot(&mut watched);
    assert_eq!(kept, 32 * MB, "{done}: {}", watched.story());
    let (dropped, reclaimed) = (watched.dropped_by_bowwave(), watched.reclaimed());
    let other_half = 32 * MB * 99 / 100;
    assert!(dropped + reclaimed >= other_half, "{dropped} of the other half: {done}");
    let before = bench.device_bytes();
    hot().for_each(|(from, to)| read(&other, from, to));
    let again = bench.device_bytes() - before;
    assert!(again <= reclaimed + METADATA_BYTES, "{again} bytes of the same half were read again");
}

#[test]
fn without_it_the_cache_is_as_stock_leaves_it() {
    let Some(bench) = bench() else { return };
    let file = bench.cold("file", 32 * MB);
    // Nothing of 32 MB is half of this machine's memory, so `auto` leaves it, too.
    for option in ["--drop-behind=never", "--drop-behind=auto"] {
        evict(&file);
        let Some(mut watched) = Watched::new(&file) else { return };
        let done = summary_of(bench.run(&[option], &["cat", text(&file)]));
        assert_eq!(watched.kept(), 32 * MB, "{option}: {}", watched.story());
        assert_eq!(bytes(&done, "dropped_bytes"), 0, "{option}");
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
        assert!(is_gone(&from), "{way:?}: {} of {done}", resident(&from));
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
    let all: u64 = files.iter().map(|file| fs::metadata(file).expect("it is there").len()).sum();
    assert!(cached <= all / 100, "{cached} of {all} bytes: {done}");
}

/// Bowwave reads the beginning of the next file before anybody opens that.
#[test]
fn files_of_a_walk_go_with_their_beginnings() {
    let Some(bench) = bench() else { return };
    fs::create_dir(bench.lab.mount_point().join("walk")).expect("a folder");
    let files: Vec<_> = (10..42).map(|n| bench.cold(&format!("walk/{n}"), 2 * MB)).collect();
    let walk: Vec<&str> = ["cat"].into_iter().chain(files.iter().map(|file| text(file))).collect();
    let done = summary_of(bench.run(&["--drop-behind"], &walk));
    let cached: u64 = files.iter().map(|file| resident(file)).sum();
    assert!(cached <= MB, "{cached} of 64 MB: {done}");
}

/// The reader's output is a pipe that this test reads from, so that it knows how far it is.
#[test]
fn a_follower_8_mb_behind_finds_everything_and_what_nobody_follows_goes() {
    let Some(bench) = bench() else { return };
    let file = bench.cold("file", 128 * MB);
    bench.measure_disk(&file);
    let Some(mut watched) = Watched::new(&file) else { return };
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
    let missed = (bench.device_bytes() - before).saturating_sub(128 * MB + watched.reclaimed());
    assert!(missed <= 56 * MB / 100, "{missed} bytes");
    let kept = watched.kept();
    assert!(kept >= 56 * MB * 99 / 100, "{kept} bytes that two have read");
    let cached = resident(&file);
    assert!(cached <= 58 * MB, "{cached} bytes, more than two have read");
}

/// A server that sends one file to two clients, one after the other.
const TWO_READERS: &str = "import os,sys
a,b=os.open(sys.argv[1],0),os.open(sys.argv[1],0)
n,step,behind=os.fstat(a).st_size,int(sys.argv[2]),8<<20
for at in range(0,n+behind,step):
    os.pread(a,step,at)
    if at>=behind: os.pread(b,step,at-behind)";

#[test]
fn what_two_readers_of_one_process_8_mb_apart_read_goes_once_and_after_both() {
    let Some(bench) = bench() else { return };
    let Some(cgroup) = Cgroup::with_memory(Some(64 * MB)) else { return };
    let file = bench.cold("file", 192 * MB);
    let run = |step| {
        let python = ["python3", "-c", TWO_READERS, text(&file), step];
        summary_of(cgroup.hold(&bench.run(&["--drop-behind"], &python)))
    };
    bench.measure_disk(&file);
    // Long reads come in many batches. With longer ones the second reader would be 12 MiB behind and more.
    for step in ["65536", "1048576", "2097152"] {
        evict(&file);
        let Some(mut watched) = Watched::new(&file) else { return };
        let done = run(step);
        // What is dropped before the second reader comes, it reads and passes once more. On a busy machine bowwave may
        // come too late, so that the readers themselves reclaim some of their 64 MB.
        let twice = watched.dropped_by_bowwave().saturating_sub(192 * MB);
        assert!(twice <= 192 * MB / 10, "{step}: {twice} bytes were dropped twice: {done}");
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
        let Some(mut watched) = Watched::new(&file) else { return };
        let reader = ["python3", "-c", WITH_INDEX, text(&file), begin, end];
        let done = summary_of(bench.run(&["--drop-behind"], &reader));
        let index = watched.kept_within(2048, 1);
        assert_eq!(index, PAGE_BYTES, "{begin} to {end}: {done}: {}", watched.story());
        assert!(resident(&file) <= 2 * MB, "{begin} to {end}: the rest goes: {done}");
    }
}

/// Twice from front to back, as `cat` does with the same file named twice.
const TWICE: &str = "import os,sys
for _ in range(2):
    f=os.open(sys.argv[1],0)
    while os.read(f,int(sys.argv[2])): pass
    os.close(f)";

#[test]
fn what_one_process_reads_again_stays() {
    let Some(bench) = bench() else { return };
    // The first pass of the small file takes several requests: after 0.2 s at its end it would be dropped. Of the larger
    // file it has left the end only. The last read of the second pass begins where the first pass's last one did.
    for (size, step) in [(MB / 4, "65536"), (10 * MB, "65536"), (10 * MB, "262144")] {
        let file = bench.cold("file", size);
        let Some(mut watched) = Watched::new(&file) else { return };
        let twice = ["python3", "-c", TWICE, text(&file), step];
        let done = summary_of(bench.run(&["--drop-behind"], &twice));
        assert_eq!(watched.kept(), size, "{step}: {done}: {}", watched.story());
    }
}

#[test]
fn what_another_process_reads_meanwhile_or_has_mapped_stays() {
    let Some(bench) = bench() else { return };
    let file = bench.cold("file", 64 * MB);
    bench.measure_disk(&file);
    let Some(mut watched) = Watched::new(&file) else { return };
    let before = bench.device_bytes();
    let mut run = bench.run(&["--drop-behind"], &["cat", text(&file)]);
    let mut reader = Own::start(run.stdout(Stdio::piped()).stderr(Stdio::null()));
    let mut output = reader.stdout.take().expect("piped");
    output.read_exact(&mut vec![0; 4 * MB as usize]).expect("4 MB are read");
    let other = open_random(&file);
    read(&other, MB, 2 * MB);
    std::io::copy(&mut output, &mut std::io::sink()).expect("it ends");
    assert!(reader.wait().expect("it ended").success());
    let kept = watched.kept_within(MB / PAGE_BYTES, MB / PAGE_BYTES);
    assert_eq!(kept, MB, "{}", watched.story());
    let cached = resident(&file);
    assert!(cached <= MB + 64 * MB / 100, "{cached} bytes, more than two have read");
    read(&other, MB, 2 * MB);
    let once = 64 * MB + watched.reclaimed();
    let twice = (bench.device_bytes() - before).saturating_sub(once);
    assert!(twice <= METADATA_BYTES, "{twice} bytes were read twice");

    let program = bench.lab.mount_point().join("sleep");
    fs::copy("/bin/sleep", &program).expect("copied");
    evict(&program);
    let mapper = Own::start(Command::new(&program).arg("1000").stdout(Stdio::piped()));
    let Some(mut watched) = Watched::new(&program) else { return };
    assert!(comes_true(|| resident(&program) > 0), "its text");
    let mapped = watched.kept();
    summary_of(bench.run(&["--drop-behind"], &["cat", text(&program)]));
    let still = watched.kept();
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
    let goes = comes_true(|| resident(&file) <= 20 * MB);
    let left = resident(&file);
    drop(scanner.stdin.take());
    assert!(scanner.wait().expect("it ended").success());
    assert!(goes, "{left} bytes");
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
    // Other places each time.
    let mut place = SystemTime::now().duration_since(UNIX_EPOCH).expect("a date").as_nanos() as u64;
    for _ in 0..kills() {
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
        assert!(written.len() as u64 >= until && is_prefix(&written), "killed at {until}");
        evict(&to);
        assert!(fs::read(&to).expect("from the disk") == written, "killed at {until}");
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
    let Some(mut of_kept) = Watched::new(&kept) else { return };
    let Some(mut of_dropped) = Watched::new(&dropped) else { return };
    let daemon = bench.daemon(&["--config", text(&config)]);
    let read = |program: &str, arguments: &[&str]| {
        let status = Command::new(program).args(arguments).stdout(Stdio::null()).status();
        assert!(status.expect("it runs").success());
    };
    read("cat", &[text(&kept)]);
    read("head", &["-c8M", text(&dropped)]);
    let after_head = of_dropped.kept();
    assert!(after_head >= 8 * MB, "{after_head} of what head has read: {}", of_dropped.story());
    read("cat", &[text(&dropped)]);
    // The daemon sees the end of a process at its next look. Beyond the end of what `head` has read there may be a
    // window that was read ahead for it.
    let goes = comes_true(|| resident(&dropped) <= after_head + MB);
    drop(daemon);
    assert_eq!(of_kept.kept(), 24 * MB, "{}", of_kept.story());
    assert!(goes, "{} after {after_head}", resident(&dropped));
}
