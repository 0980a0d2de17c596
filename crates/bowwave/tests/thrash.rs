//! Little memory, on the running kernel: random schedules of readers, limits and files, with bowwave
//! beside them in a small cgroup of its own.
//!
//! What must hold in each: no more is read ahead and unused than the budget and one request, nothing
//! that was cached before is dropped, every reader finishes, and reads what was written. (Another
//! bowwave on the machine that drops behind would drop such pages: there must be none.) Seeds are
//! fixed; `BOWWAVE_SCHEDULES` is how many are tried. Skipped where bowwave or cgroups do not work, unless
//! BOWWAVE_REQUIRE_LIVE=1 makes that a failure.

mod cgroup;
mod machine;
mod managed;
mod own;
mod removals;
mod stage;
mod trial;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

use cgroup::Cgroup;
use demo::worker::Streams;
use demo::worker::jobs::{Job, expected};
use machine::{Bench, Hand};
use removals::{PAGE_BYTES, Removals};
use rustix::fs::{Advice, fadvise};
use trial::Random;

/// Few enough for `make test`.
const SCHEDULES: u64 = 12;

/// Of what its own cgroup may hold, bowwave has no more than one part in so many read ahead.
const OWN_SHARE: u64 = 4;

/// The largest request: what one `readahead(2)` of the lab's disk reads.
const REQUEST: u64 = 1 << 20;

/// Four of them are more than may be ahead.
const LARGEST_FILE: u64 = 8 << 20;

/// One file of a schedule.
struct Written {
    name: String,
    ino: u64,
    content: Vec<u8>,
    /// Cached before the readers came, and ever since.
    cached: Vec<bool>,
    /// Touched by a reader.
    touched: Vec<bool>,
}

impl Written {
    /// Of the pages that are cached now.
    fn pages_ahead(&self, now: &[bool]) -> u64 {
        let is_ahead = |page: &usize| now[*page] && !self.cached[*page] && !self.touched[*page];
        (0..now.len()).filter(is_ahead).count() as u64
    }
}

/// One reader: what it reads of which file, in parts between which it pauses.
struct Reader {
    file: usize,
    parts: Vec<Vec<(u64, u64)>>,
}

#[test]
fn random_schedules_keep_the_budget_the_cache_and_every_byte() {
    let Some(bench) = Bench::new("net") else { return };
    let schedules =
        std::env::var("BOWWAVE_SCHEDULES").map_or(SCHEDULES, |n| n.parse().expect("a number"));
    bench.measure_disk();
    let mut managed = 0;
    for seed in 1..=schedules {
        eprintln!("schedule with seed {seed}");
        managed += run(&bench, seed).unwrap_or(0);
    }
    assert!(managed >= schedules, "only {managed} windows were asked for in all of them");
}

/// Gives the windows that were asked for; `None` where no cgroup can be made.
fn run(bench: &Bench, seed: u64) -> Option<u64> {
    let mut random = Random(seed);
    let mut files: Vec<Written> =
        (0..1 + random.below(4)).map(|number| write(bench, &mut random, number)).collect();
    bench.lab.evict().expect("evicted");
    // Without windows of the kernel's own all that is ahead is bowwave's.
    let is_alone = seed.is_multiple_of(2);
    bench.lab.set_read_ahead_kb(if is_alone { 0 } else { 128 }).expect("set");
    // Before bowwave is there: what it reads ahead is in its own cgroup, and may go with that.
    let mut removals = Removals::on_device_of(&bench.path(""))?;
    files.iter_mut().for_each(|file| warm_some(bench, file, &mut random));
    let own_limit = (48 + random.below(80)) << 20;
    let own = Cgroup::with_memory(Some(own_limit))?;
    let daemon = bench.daemon(&["--drop-behind", "always"], Some(&own));
    let limit = (random.below(3) > 0).then(|| (8 + random.below(56)) << 20);
    let cgroup = Cgroup::with_memory(limit)?;
    let readers: Vec<Reader> =
        (0..1 + random.below(4)).map(|_| reader(&files, &mut random)).collect();
    let mut hands: Vec<Hand> = readers.iter().map(|_| Hand::new(&cgroup)).collect();
    let most_ahead = own_limit / OWN_SHARE + REQUEST;
    let parts = readers.iter().map(|reader| reader.parts.len()).max().unwrap_or(0);
    for part in 0..parts {
        read_part(bench, &readers, part, &mut hands, &mut files, seed);
        let ahead = look_at_cache(bench, &mut files, &mut removals, daemon.child.id())
            .unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        assert!(!is_alone || ahead <= most_ahead, "seed {seed}: {ahead} bytes ahead");
    }
    drop(hands);
    let summary = daemon.end();
    let figure = |name: &str| summary[name].as_u64().unwrap_or_else(|| panic!("{name}: {summary}"));
    assert!(figure("most_ahead_bytes") <= most_ahead, "seed {seed}: {summary}");
    for file in &files {
        fs::remove_file(bench.path(&file.name)).expect("it was written");
    }
    let own = removals.since_last_look();
    assert!(own.iter().any(|removal| removal.is_by(std::process::id())), "the trace is blind");
    Some(figure("reads"))
}

/// All readers at once, up to their next pause.
fn read_part(
    bench: &Bench,
    readers: &[Reader],
    part: usize,
    hands: &mut [Hand],
    files: &mut [Written],
    seed: u64,
) {
    let at_work: Vec<usize> =
        (0..readers.len()).filter(|at| part < readers[*at].parts.len()).collect();
    for &at in &at_work {
        let reader = &readers[at];
        let path = bench.path(&files[reader.file].name);
        hands[at].tell(&Job::Read { path, reads: reader.parts[part].clone() });
    }
    for &at in &at_work {
        let (reader, reads) = (&readers[at], &readers[at].parts[part]);
        let done = hands[at].answer();
        assert_eq!(done.failure, None, "seed {seed}, reader {at}");
        let file = &mut files[reader.file];
        let sum = expected(&file.content, reads);
        assert_eq!(done.checksum, sum, "seed {seed}: reader {at} read other bytes");
        for &(offset, bytes) in reads {
            let pages = offset / PAGE_BYTES..(offset + bytes).div_ceil(PAGE_BYTES);
            pages.for_each(|page| file.touched[page as usize] = true);
        }
    }
}

/// While all readers pause: the bytes that are cached and that none of them has come to. Nothing that was
/// cached before them may have been removed by the process; what the kernel reclaims, as machines do with
/// cold pages (DAMON), is no longer what was cached before.
fn look_at_cache(
    bench: &Bench,
    files: &mut [Written],
    removals: &mut Removals,
    process: u32,
) -> Result<u64, String> {
    let now: Vec<Vec<bool>> =
        files.iter().map(|file| machine::cached_pages(&bench.path(&file.name))).collect();
    let ahead = files.iter().zip(&now).map(|(file, now)| file.pages_ahead(now)).sum::<u64>();
    for removal in removals.since_last_look() {
        let Some(file) = files.iter_mut().find(|file| file.ino == removal.ino) else { continue };
        let pages = file.cached.iter_mut().enumerate();
        for (page, was_cached) in pages.filter(|(page, _)| removal.pages.contains(&(*page as u64)))
        {
            if *was_cached && removal.is_by(process) {
                return Err(format!("{} dropped page {page} of {}", removal.who(), file.name));
            }
            *was_cached = false;
        }
    }
    for (file, now) in files.iter().zip(&now) {
        if let Some(page) = (0..now.len()).find(|page| file.cached[*page] && !now[*page]) {
            return Err(format!("page {page} of {} went without a trace", file.name));
        }
    }
    Ok(ahead * PAGE_BYTES)
}

fn write(bench: &Bench, random: &mut Random, number: u64) -> Written {
    // Small, odd and large ones.
    let bytes = match random.below(4) {
        0 => 1 + random.below(64 << 10),
        _ => 1 + random.below(LARGEST_FILE),
    };
    let words = (0..bytes.div_ceil(4)).flat_map(|_| (random.below(1 << 32) as u32).to_le_bytes());
    let content: Vec<u8> = words.take(bytes as usize).collect();
    let name = format!("file{number}");
    let path = bench.path(&name);
    fs::write(&path, &content).expect("room on the lab");
    let ino = fs::metadata(path).expect("it was written").ino();
    let pages = bytes.div_ceil(PAGE_BYTES) as usize;
    Written { name, ino, content, cached: vec![false; pages], touched: vec![false; pages] }
}

/// Pages that another program, which has all the memory it wants, has read.
fn warm_some(bench: &Bench, file: &mut Written, random: &mut Random) {
    let opened = File::open(bench.path(&file.name)).expect("it was written");
    fadvise(&opened, 0, None, Advice::Random).expect("advised");
    let bytes = file.content.len() as u64;
    for _ in 0..random.below(4) {
        let start = random.below(bytes);
        let mut part = vec![0; random.below((bytes - start).min(1 << 20)) as usize + 1];
        std::os::unix::fs::FileExt::read_exact_at(&opened, &mut part, start).expect("read");
    }
    file.cached = machine::cached_pages(&bench.path(&file.name));
}

fn reader(files: &[Written], random: &mut Random) -> Reader {
    let file = random.below(files.len() as u64) as usize;
    let bytes = files[file].content.len() as u64;
    let each = (1 << (9 + random.below(9))).min(bytes);
    let count = (bytes / each).min(1000);
    let step = each * (1 + random.below(6));
    let reads: Vec<(u64, u64)> = match random.below(4) {
        0 => (0..count).map(|i| (i * each, each)).collect(),
        1 => (1..=count).map(|i| (bytes - i * each, each)).collect(),
        2 => (0..bytes.div_ceil(step)).map(|i| (i * step, each.min(bytes - i * step))).collect(),
        _ => (0..count.min(100)).map(|_| (random.below(bytes - each + 1), each)).collect(),
    };
    let pause = 1 + random.below(reads.len() as u64) as usize;
    Reader { file, parts: reads.chunks(pause).take(3).map(<[_]>::to_vec).collect() }
}

#[test]
fn a_window_left_small_by_a_killed_daemon_is_given_back_at_the_next_start() {
    let Some(bench) = Bench::new("net") else { return };
    let content = vec![7; 4 << 20];
    fs::write(bench.path("one"), &content).expect("room on the lab");
    bench.lab.evict().expect("evicted");
    let file = File::open(bench.path("one")).expect("it was written");
    bench.lab.set_read_ahead_kb(16).expect("set");
    fadvise(&file, 0, None, Advice::Normal).expect("it has the small window now");
    bench.lab.set_read_ahead_kb(128).expect("set");
    let requests = || {
        fadvise(&file, 0, None, Advice::DontNeed).expect("advised");
        let before = bench.lab.status().expect("counters");
        let mut page = vec![0; PAGE_BYTES as usize];
        for offset in (0..content.len() as u64).step_by(page.len()) {
            std::os::unix::fs::FileExt::read_exact_at(&file, &mut page, offset).expect("read");
        }
        bench.lab.status().expect("counters").since(&before).reads
    };
    let small = requests();
    // What a daemon that was killed while there was thrashing leaves behind.
    let about = file.metadata().expect("metadata");
    let (major, minor) = (libc::major(about.dev()), libc::minor(about.dev()));
    let line = serde_json::json!({
        "tgid": std::process::id(),
        "started": machine::start_time(),
        "major": major,
        "minor": minor,
        "ino": about.ino(),
        "knob": format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"),
        "kb_before": 128,
        "at": 0,
        "is_bound": true,
    });
    let ledger = bench.state.path().join("given-windows.jsonl");
    fs::write(&ledger, format!("{line}\nnonsense\n")).expect("a ledger");
    bench.daemon(&[], None).end();
    assert!(!ledger.exists());
    let whole = requests();
    assert!(whole * 4 <= small, "{whole} requests after {small} with a small window");
}

#[test]
fn thrashing_bounds_the_kernels_windows_until_bowwave_ends() {
    let Some(bench) = Bench::new("net") else { return };
    let Some(small) = Cgroup::with_memory(Some(8 << 20)) else { return };
    let names: Vec<String> = (0..200).map(|number| format!("stream{number}")).collect();
    for name in &names {
        fs::write(bench.path(name), vec![1; 512 << 10]).expect("room on the lab");
    }
    bench.lab.evict().expect("evicted");
    bench.measure_disk();
    let daemon = bench.daemon(&[], None);
    let mut hand = Hand::new(&small);
    let knob = bench.window_kb();
    // All at once, a page at a time: 200 windows of 128 KiB do not fit into 8 MiB.
    let paths = names.iter().map(|name| bench.path(name)).collect();
    let streams = Streams { paths, bytes_per_second: 128e3, start_every_s: 0.01 };
    assert_eq!(hand.perform(&Job::Slowly(streams)).failure, None);
    let ledgers = || {
        let entries = fs::read_dir(bench.state.path()).expect("it is there").flatten();
        entries.filter(|e| e.file_name().to_string_lossy().starts_with("given-windows")).count()
    };
    let written = ledgers();
    let summary = daemon.end();
    assert_eq!(written, 1, "windows are bounded, and that is written down: {summary}");
    assert!(summary["bounded_windows"].as_u64() > Some(0), "{summary}");
    assert_eq!(ledgers(), 0, "they are given back");
    assert_eq!(bench.window_kb(), knob);
}

#[test]
fn two_fifths_of_memory_that_are_read_again_come_from_the_disk_no_more_than_without_bowwave() {
    const MEMORY: u64 = 256 << 20;
    const FILE_BYTES: u64 = MEMORY / 5 * 2;
    let Some(bench) = Bench::new("net") else { return };
    bench.measure_disk();
    let path = bench.path("hot");
    fs::write(&path, vec![1; FILE_BYTES as usize]).expect("room on the lab");
    // Bytes that the second pass has read from the disk, of a machine with so much memory.
    let second_pass = |bowwave: Option<Where>| {
        let machine = Cgroup::with_memory(Some(MEMORY))?;
        bench.lab.evict().expect("evicted");
        let own = |bowwave| (bowwave == Where::WithReader).then_some(&machine);
        let daemon = bowwave.map(|bowwave| bench.daemon(&[], own(bowwave)));
        let mut hand = Hand::new(&machine);
        let mut pass = || {
            let before = bench.lab.status().expect("counters");
            let job = Job::Pass { paths: vec![path.clone()], each: 128 << 10 };
            assert_eq!(hand.perform(&job).failure, None);
            bench.lab.status().expect("counters").since(&before).bytes_read
        };
        assert!(pass() >= FILE_BYTES, "it was cold");
        let read = pass();
        drop(hand);
        if let Some(summary) = daemon.map(managed::Daemon::end) {
            assert!(summary["reads"].as_u64() > Some(0), "nothing was read ahead: {summary}");
        }
        Some(read)
    };
    let Some(stock) = second_pass(None) else { return };
    for bowwave in [Where::WithReader, Where::Outside] {
        let Some(managed) = second_pass(Some(bowwave)) else { return };
        println!("second pass: {managed} bytes, {stock} without bowwave, which is {bowwave:?}");
        // The machine reclaims cold pages of its own accord.
        assert!(managed <= stock + FILE_BYTES / 20, "{managed} bytes, {stock} without bowwave");
    }
}

/// Where bowwave is, if its reader is in a memory cgroup with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    /// As with `bowwave run`.
    WithReader,
    /// As the installed service is, in a cgroup without a limit.
    Outside,
}

/// Maps a file, keeps its descriptor and a duplicate of it, as Python does, and looks at the pages whose
/// numbers come line by line.
const TOUCH: &str = "import mmap,sys
f=open(sys.argv[1],'rb')
m=mmap.mmap(f.fileno(),0,prot=mmap.PROT_READ)
for line in sys.stdin:
    print(m[int(line)*4096],flush=True)
";

#[test]
fn a_mapped_file_read_at_random_is_read_page_by_page_until_it_is_read_in_a_row() {
    let Some(bench) = Bench::new("sd") else { return };
    fs::write(bench.path("mapped"), vec![3; 64 << 20]).expect("room on the lab");
    bench.lab.evict().expect("evicted");
    bench.lab.set_fast(false).expect("slow");
    let daemon = bench.daemon(&[], None);
    let mut command = Command::new("python3");
    command.args(["-c", TOUCH]).arg(bench.path("mapped"));
    let mut program =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python runs");
    let mut numbers = program.stdin.take().expect("piped");
    let mut answers = BufReader::new(program.stdout.take().expect("piped")).lines();
    let mut pages_read_for = |page: u64| {
        let before = bench.lab.status().expect("counters");
        writeln!(numbers, "{page}").expect("it listens");
        assert_eq!(answers.next().expect("an answer").expect("a line"), "3");
        bench.lab.status().expect("counters").since(&before).bytes_read / PAGE_BYTES
    };
    assert!(pages_read_for(0) >= 32, "the kernel reads around");
    // No two of them near each other, and none a stride from the last. On a busy machine bowwave may come
    // late; the disk, too, takes its time.
    let alone = (1..200).position(|number| pages_read_for(number * 7919 % 200 * 60) == 1);
    assert!(alone.is_some(), "no window was narrowed");
    bench.lab.set_fast(true).expect("fast");
    let ahead = (12_000..14_000).filter(|number| pages_read_for(*number) == 0).take(40).count();
    assert_eq!(ahead, 40, "of 2000 pages in a row the others had to be waited for");
    // Managed early, a run does not prove its window too small: at the end it is given back all the same.
    let summary = daemon.end();
    assert!(summary["bounded_windows"].as_u64() > Some(0), "{summary}");
    assert!(pages_read_for(15_000) >= 32, "the kernel reads around again");
    drop(numbers);
    assert!(program.wait().expect("it ends").success());
}
