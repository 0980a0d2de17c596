//! `bowwave record` records each call, whichever way a program reads, and `bowwave replay` replays it. Needs root, FUSE
//! and eBPF; elsewhere a test says why it is skipped, unless BOWWAVE_REQUIRE_LIVE=1 makes that a failure.

mod managed;
mod own;
mod stage;
mod ways;

use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};

use analysis::Analysis;
use managed::Bench;
use own::Own;
use rustix::fs::{Advice, fadvise};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::{Pid, Signal, kill_process};
use stage::{BOWWAVE, skipped};
use trace::recorded::{self, Header, Run};
use trace::{Reason, Record, RequestOp, Trace, TraceOp, Window};
use ways::{PAGE, file, run};

/// `bowwave record` of the whole machine, which records from now on.
struct Recorder {
    child: Own,
    output: BufReader<ChildStderr>,
    path: PathBuf,
}

impl Recorder {
    fn begin(bench: &Bench) -> Recorder {
        let path = bench.state.path().join("trace");
        let mut command = Command::new(BOWWAVE);
        command.args(["record", "--output"]).arg(&path);
        let mut child = Own::start(command.stderr(Stdio::piped()));
        let mut output = BufReader::new(child.stderr.take().expect("piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        assert!(line.contains("recording what all programs read"), "{line}");
        Recorder { child, output, path }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is not reaped");
    }

    /// Ends it; gives what it recorded.
    fn end(mut self) -> Trace {
        // A shell starts background jobs with SIGINT ignored, and bowwave keeps that.
        self.signal(Signal::TERM);
        let mut said = String::new();
        self.output.read_to_string(&mut said).expect("its last words");
        assert!(self.child.wait().expect("it ends").success(), "{said}");
        assert!(said.contains(" operation") && said.ends_with("nothing was lost\n"), "{said}");
        trace::open(&self.path).expect("a trace")
    }
}

/// The operations on that file.
fn of<'a>(trace: &'a Trace, path: &Path) -> Vec<&'a Record> {
    let name = |record: &Record| &trace.files()[record.file as usize].name;
    trace.records().iter().filter(|record| Path::new(name(record)) == path).collect()
}

fn count(records: &[&Record], op: TraceOp) -> u64 {
    records.iter().filter(|record| record.op == op).count() as u64
}

/// Pages of all operations, each counted as often as it is asked for.
fn pages(records: &[&Record]) -> u64 {
    records.iter().map(|record| record.end().div_ceil(PAGE) - record.offset / PAGE).sum()
}

#[test]
fn every_way_of_reading_is_recorded_to_the_last_read_cold_and_cached() {
    let Some(bench) = Bench::of("record", 256 << 20) else { return };
    let paths = ways::ALL.map(|(_, name, ..)| file(&bench, name));
    bench.lab.evict().expect("evicted");
    for temperature in ["cold", "cached"] {
        let recorder = Recorder::begin(&bench);
        ways::ALL.iter().zip(&paths).for_each(|((way, ..), path)| way(path));
        let trace = recorder.end();
        for ((_, name, reads, faults, page_count), path) in ways::ALL.iter().zip(&paths) {
            let records = of(&trace, path);
            let told = [TraceOp::Read, TraceOp::Mmap].map(|op| count(&records, op));
            assert_eq!(
                (told, pages(&records)),
                ([*reads, *faults], *page_count),
                "{temperature} {name}"
            );
            // Not each time: a page may come before a delayed thread begins to wait for it. And a thread may wait
            // within a call for something else than the file, such as memory.
            let stalled = records.iter().filter(|record| record.took > 0).count();
            assert!(temperature == "cached" || stalled > 0, "{name}");
        }
        let mapped = of(&trace, &bench.lab.mount_point().join("mmap"));
        let places: Vec<u64> = mapped
            .iter()
            .filter(|record| record.op == TraceOp::Mmap)
            .map(|record| record.offset)
            .collect();
        assert_eq!(places, (0..101).map(|n| n * 16 * PAGE).collect::<Vec<_>>(), "{temperature}");
        if temperature == "cold" {
            let advised = of(&trace, &bench.lab.mount_point().join("pread"));
            assert_eq!(advised[0].op.name(), "advise random");
            let places: Vec<u64> = advised[1..].iter().map(|record| record.offset).collect();
            assert_eq!(places, (0..23).map(|n| n * 7 * PAGE).collect::<Vec<_>>());
        }
    }
}

/// What is written ends the run of what is read.
#[test]
fn copies_into_files_are_recorded_to_the_last_page() {
    let Some(bench) = Bench::of("record-copies", 256 << 20) else { return };
    let paths = ways::COPIES.map(|(_, name)| file(&bench, name));
    bench.lab.evict().expect("evicted");
    for temperature in ["cold", "cached"] {
        for (copying, path) in ways::COPIES.into_iter().zip(&paths) {
            let copy = path.with_extension(temperature);
            let recorder = Recorder::begin(&bench);
            ways::copy(copying, path, &copy);
            let trace = recorder.end();
            let records = of(&trace, path);
            let mut reads = records.iter().filter(|record| record.op == TraceOp::Read);
            // Each part begins where the last one has ended.
            let end = reads.try_fold(0, |end, read| (end == read.offset).then(|| read.end()));
            assert_eq!(end, Some(505 * PAGE), "{temperature} {}: {records:?}", copying.1);
            assert_eq!(pages(&of(&trace, &copy)), 505, "{temperature} {}", copying.1);
        }
    }
}

#[test]
fn splices_are_recorded_from_the_places_they_are_given() {
    let Some(bench) = Bench::of("record-splice", 128 << 20) else { return };
    let path = file(&bench, "spliced");
    bench.lab.evict().expect("evicted");
    for temperature in ["cold", "cached"] {
        let recorder = Recorder::begin(&bench);
        if !ways::splice(&path) {
            return;
        }
        let trace = recorder.end();
        let records = of(&trace, &path);
        let places: Vec<_> = records.iter().map(|read| (read.offset, read.bytes)).collect();
        let expected: Vec<_> = (0..7).map(|n| (n * 53 * PAGE, 65536)).collect();
        assert_eq!(places, expected, "{temperature}");
    }
}

#[test]
fn reads_that_overlap_are_not_taken_for_reads_that_follow_one_another() {
    let Some(bench) = Bench::of("record-overlap", 128 << 20) else { return };
    let names = ["page", "half", "part"];
    let paths = names.map(|name| file(&bench, name));
    let open = |path: &PathBuf| File::open(path).expect("opened");
    let recorder = Recorder::begin(&bench);
    let [page, half, part] = [0, 1, 2].map(|n| open(&paths[n]));
    (0..1009).for_each(|_| page.read_exact_at(&mut [0; PAGE as usize], 0).expect("read"));
    (0..503).for_each(|n| half.read_exact_at(&mut [0; 2 * PAGE as usize], n * PAGE).expect("read"));
    (0..211).for_each(|_| part.read_exact_at(&mut [0; 16], 100).expect("read"));
    let trace = recorder.end();
    for (path, (reads, pages)) in paths.iter().zip([(1009, 1009), (503, 1006), (211, 211)]) {
        let records = of(&trace, path);
        let bytes = records.iter().map(|read| read.bytes).sum::<u64>();
        assert_eq!((count(&records, TraceOp::Read), bytes), (reads, pages * PAGE), "{path:?}");
    }
}

/// The windows of that file.
fn windows<'a>(trace: &'a Trace, path: &Path) -> Vec<&'a Window> {
    let name = |window: &Window| &trace.files()[window.file as usize].name;
    trace.windows().iter().filter(|window| Path::new(name(window)) == path).collect()
}

/// The pages of windows, each as often as it was brought in.
fn brought(windows: &[&Window]) -> Vec<u64> {
    let mut pages: Vec<u64> = windows.iter().flat_map(|window| window.pages.clone()).collect();
    pages.sort_unstable();
    pages
}

#[test]
fn pages_that_the_kernel_brings_in_are_told_once_and_cached_ones_never() {
    let Some(bench) = Bench::of("record-windows", 128 << 20) else { return };
    let path = bench.lab.mount_point().join("short");
    fs::write(&path, vec![7; 101 * PAGE as usize]).expect("written");
    File::open(&path).and_then(|file| file.sync_all()).expect("on the disk");
    bench.lab.evict().expect("evicted");
    for temperature in ["cold", "cached"] {
        let recorder = Recorder::begin(&bench);
        let mut file = File::open(&path).expect("opened");
        (0..101).for_each(|_| file.read_exact(&mut [0; PAGE as usize]).expect("read"));
        let recorded = recorder.path.clone();
        let trace = recorder.end();
        let windows = windows(&trace, &path);
        if temperature == "cached" {
            assert!(windows.is_empty(), "{windows:?}");
            continue;
        }
        assert_eq!(brought(&windows), (0..101).collect::<Vec<_>>(), "{windows:?}");
        // The first page was absent. It came with others, for which nobody had asked.
        let first = windows[0];
        assert!(first.asked == (0..1) && first.pages.end > 1, "{first:?}");
        assert!(windows.len() > 1 && windows.len() < 20, "{windows:?}");
        let reader = format!(" {}", std::process::id());
        let is_ours = |window: &&Window| {
            let name = &trace.processes()[window.process.expect("it reads") as usize];
            window.reason == Reason::Read && name.contains(&reader)
        };
        assert!(windows.iter().all(is_ours), "{windows:?}");
        let (is_able, page, error) =
            run(Command::new(BOWWAVE).arg("report").arg(&recorded).args(["-o", "-"]));
        assert!(is_able, "{error}");
        let of_file = format!("in <code>{}</code>: {} windows", path.display(), windows.len());
        let told = page.lines().find(|line| line.contains(&of_file)).expect("it is told");
        // 100 of 101 pages were read ahead, and all were read.
        assert!(
            told.contains(" 99 % were there,") && told.contains(" 0 % were not read"),
            "{told}"
        );
    }
}

#[test]
fn what_the_kernel_brings_in_tells_why() {
    let Some(bench) = Bench::of("record-reasons", 128 << 20) else { return };
    let [random, mapped, advised] = ["random", "mapped", "advised"].map(|name| file(&bench, name));
    bench.lab.evict().expect("evicted");
    let recorder = Recorder::begin(&bench);
    ways::pread(&random);
    ways::map_in_order(&mapped);
    let file = File::open(&advised).expect("opened");
    fadvise(&file, 0, NonZeroU64::new(53 * PAGE), Advice::WillNeed).expect("advised");
    file.read_exact_at(&mut [0; PAGE as usize], 0).expect("read");
    let trace = recorder.end();
    let [random, mapped, advised] = [&random, &mapped, &advised].map(|path| windows(&trace, path));
    // The kernel reads nothing ahead for who reads at random.
    assert_eq!(brought(&random), (0..23).map(|n| n * 7).collect::<Vec<_>>());
    assert!(random.iter().all(|window| window.asked == window.pages), "{random:?}");
    assert!(mapped.iter().all(|window| window.reason == Reason::Fault), "{mapped:?}");
    let faults: u64 = mapped.iter().map(|window| window.asked.end - window.asked.start).sum();
    assert!(faults > 0 && faults <= mapped.len() as u64, "a fault asks for one page: {mapped:?}");
    assert_eq!(brought(&advised), (0..53).collect::<Vec<_>>());
    let is_ahead = |window: &&Window| window.reason == Reason::Request && window.asked.is_empty();
    assert!(advised.iter().all(is_ahead), "{advised:?}");
}

#[test]
fn requests_of_devices_are_recorded_and_keep_the_device_busy_for_a_part_of_the_time() {
    let Some(bench) = Bench::of("record-requests", 128 << 20) else { return };
    let path = file(&bench, "read");
    bench.lab.evict().expect("evicted");
    let recorder = Recorder::begin(&bench);
    let read = fs::read(&path).expect("read").len() as u64;
    let recorded = recorder.path.clone();
    let trace = recorder.end();
    let name = bench.lab.block_device().file_name().and_then(OsStr::to_str).expect("a name");
    let device = trace.devices().iter().position(|device| device == name);
    let device = device.expect("it has requests") as u32;
    let is_read = |op, on| op == RequestOp::Read && on == device;
    let requests = trace.requests().iter().filter(|one| is_read(one.op, one.device));
    let bytes: u64 = requests.clone().map(|request| u64::from(request.bytes)).sum();
    assert!(bytes >= read, "{bytes} of {read} bytes");
    assert!(requests.clone().all(|request| request.bytes > 0 && request.took > 0));
    let analysis = Analysis::of(&trace);
    let used = analysis.devices.iter().find(|used| used.device == device);
    let used = used.expect("it is used").all;
    assert!(used.busy > 0 && used.busy <= analysis.span.1 - analysis.span.0, "{used:?}");
    assert!(used.reads.bytes >= read && used.reads.mean > 0, "{used:?}");
    let (is_able, page, error) =
        run(Command::new(BOWWAVE).arg("report").arg(&recorded).args(["-o", "-"]));
    assert!(is_able && page.contains(&format!("<li><code>{name}</code> was busy ")), "{error}");
}

#[test]
fn faults_of_a_mapped_file_do_not_close_it() {
    let Some(bench) = Bench::of("record-mapped", 128 << 20) else { return };
    let path = file(&bench, "mapped");
    bench.lab.evict().expect("evicted");
    let recorder = Recorder::begin(&bench);
    ways::map_in_order(&path);
    let trace = recorder.end();
    let records = of(&trace, &path);
    let waits = records.iter().filter(|record| record.took > 0).count();
    assert!(waits > 1 && count(&records, TraceOp::Close) == 0, "{records:?}");
}

/// An overlay over a folder of the lab. It goes first.
struct Overlay(tempfile::TempDir);

impl Overlay {
    /// `None` where none can be mounted.
    fn over(lower: &Path) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        // A second lower layer takes the place of an upper one: nothing is written.
        let options = format!("lowerdir={}:{}", lower.display(), folder.path().display());
        let options = CString::new(options).expect("no zero");
        match mount("overlay", folder.path(), "overlay", MountFlags::RDONLY, &*options) {
            Ok(()) => Some(Overlay(folder)),
            Err(error) => skipped(&format!("no overlay can be mounted: {error}")),
        }
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        let _ = unmount(self.0.path(), UnmountFlags::DETACH);
    }
}

#[test]
fn reads_on_an_overlay_are_recorded_from_their_first_page() {
    let Some(bench) = Bench::of("record-overlay", 128 << 20) else { return };
    let path = file(&bench, "file");
    // An overlay keeps the lab mounted, and so its files cached.
    bench.lab.evict().expect("evicted");
    let Some(overlay) = Overlay::over(&bench.lab.mount_point()) else { return };
    let recorder = Recorder::begin(&bench);
    ways::into_flight(&overlay.0.path().join("file"));
    let trace = recorder.end();
    let records = of(&trace, &path);
    assert_eq!((count(&records, TraceOp::Read), pages(&records)), (26, 13 * 22), "{records:?}");
}

#[test]
fn reads_of_io_uring_are_recorded_to_the_last_one() {
    let Some(bench) = Bench::of("record-uring", 128 << 20) else { return };
    let Some(path) = ways::file_for_io_uring(&bench) else { return };
    for temperature in ["cold", "cached"] {
        let recorder = Recorder::begin(&bench);
        let (has_succeeded, error) = ways::read_by_io_uring(&path, &bench);
        assert!(has_succeeded, "{error}");
        let trace = recorder.end();
        let records = of(&trace, &path);
        assert_eq!((count(&records, TraceOp::Read), pages(&records)), (17, 17), "{temperature}");
    }
}

/// Runs `bowwave record` with these words; gives its exit status, its standard error, and the trace.
fn record(bench: &Bench, words: &[&dyn AsRef<OsStr>]) -> (Option<i32>, String, Trace) {
    let path = bench.state.path().join("trace");
    let mut command = Command::new(BOWWAVE);
    command.args(["record", "-o"]).arg(&path).args(words.iter().map(AsRef::as_ref));
    let mut child = Own::start(command.stderr(Stdio::piped()));
    let status = child.wait().expect("it ends");
    let mut said = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
    (status.code(), said, trace::open(&path).expect("a trace"))
}

#[test]
fn a_command_and_its_descendants_are_recorded_and_nothing_else() {
    let Some(bench) = Bench::of("record-command", 128 << 20) else { return };
    let [own, others] = ["own", "others"].map(|name| file(&bench, name));
    let script =
        format!("(dd if={} of=/dev/null bs=4096 count=13; exit 7) & wait $!", own.display());
    let other = format!("while :; do cat {} > /dev/null; done", others.display());
    let _other = Own::start(Command::new("sh").args(["-c", &other]));
    let (status, said, trace) = record(&bench, &[&"--", &"sh", &"-c", &script]);
    assert_eq!(status, Some(7), "{said}");
    assert_eq!(count(&of(&trace, &own), TraceOp::Read), 13);
    assert_eq!(of(&trace, &others).len(), 0);
    assert!(trace.processes().iter().any(|name| name.starts_with("dd ")), "{said}");
    let mode = fs::metadata(bench.state.path().join("trace")).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn writes_are_recorded_to_the_last_page() {
    let Some(bench) = Bench::of("record-writes", 128 << 20) else { return };
    let path = bench.lab.mount_point().join("written");
    let recorder = Recorder::begin(&bench);
    let mut written = File::create(&path).expect("made");
    (0..13).for_each(|_| written.write_all(&[1; 3 * PAGE as usize]).expect("written"));
    let trace = recorder.end();
    let records = of(&trace, &path);
    assert_eq!(records.iter().map(|record| record.bytes).sum::<u64>(), 39 * PAGE);
    assert_eq!(count(&records, TraceOp::Write), records.len() as u64);
    assert_eq!(records.last().map(|record| record.end()), Some(39 * PAGE));
}

#[test]
fn signals_reach_the_command_and_its_end_is_told() {
    let Some(bench) = Bench::of("record-signal", 128 << 20) else { return };
    let (status, said, _) = record(
        &bench,
        &[&"--", &"sh", &"-c", &"cat /etc/passwd > /dev/null; kill -TERM $PPID; exec sleep 1000"],
    );
    assert_eq!(status, Some(128 + 15), "{said}");
    assert!(said.contains(" operations of "), "{said}");
}

#[test]
fn what_was_recorded_is_replayed_and_printed_as_text() {
    let Some(bench) = Bench::of("record-replay", 128 << 20) else { return };
    let path = file(&bench, "backward");
    bench.lab.evict().expect("evicted");
    let recorder = Recorder::begin(&bench);
    ways::pread(&path);
    let recorded = recorder.path.clone();
    let trace = recorder.end();
    let (is_able, figures, error) =
        run(Command::new(BOWWAVE).args(["replay", "--json", "--device", "net"]).arg(&recorded));
    assert!(is_able, "{error}");
    let figures: serde_json::Value = serde_json::from_str(&figures).expect("JSON");
    assert_eq!(figures[0]["pages_needed"], trace.pages_needed());
    let output = Command::new(BOWWAVE).args(["record", "--text"]).arg(&recorded).output();
    let text = String::from_utf8(output.expect("it runs").stdout).expect("text");
    assert_eq!(text, trace.to_string());
    let again = Trace::parse(text.as_bytes()).expect("a trace");
    assert_eq!(again.records(), trace.records());
}

#[test]
fn advice_for_a_while_is_for_what_programs_read_within_it() {
    let Some(bench) = Bench::of("record-advise", 128 << 20) else { return };
    let path = file(&bench, "streamed");
    bench.lab.evict().expect("evicted");
    let mut command = Command::new(BOWWAVE);
    command.args(["advise", "--for", "1h", "--json", "--device", "net", "--memory", "1G"]);
    command.current_dir(bench.state.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Own::start(&mut command);
    let mut errors = BufReader::new(child.stderr.take().expect("piped"));
    let mut line = String::new();
    errors.read_line(&mut line).expect("a line");
    assert!(line.contains("recording what all programs read, into bowwave.trace"), "{line}");
    ways::pread(&path);
    // It does not wait for the end of the hour.
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it is not reaped");
    let [mut told, mut said] = [String::new(), String::new()];
    child.stdout.take().expect("piped").read_to_string(&mut told).expect("text");
    errors.read_to_string(&mut said).expect("text");
    assert!(child.wait().expect("it ends").success(), "{said}");
    let advice: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    let trace = trace::open(&bench.state.path().join("bowwave.trace")).expect("a trace");
    assert_eq!(count(&of(&trace, &path), TraceOp::Read), 23);
    assert_eq!(advice["trace"], "bowwave.trace");
    assert_eq!(advice["operations"], trace.records().len());
    assert!(advice["remedies"].as_array().is_some_and(|remedies| !remedies.is_empty()), "{advice}");
}

#[test]
fn fio_reads_what_was_recorded() {
    let Some(bench) = Bench::of("record-fio", 128 << 20) else { return };
    if ways::installed("fio").is_none() {
        return;
    }
    let paths = ["one", "two"].map(|name| file(&bench, name));
    let script = format!(
        "dd if={} of=/dev/null bs=12k count=11 & tac {} > /dev/null; wait",
        paths[0].display(),
        paths[1].display()
    );
    let (_, said, trace) = record(&bench, &[&"--", &"sh", &"-c", &script]);
    let job = bench.state.path().join("job");
    let recorded = bench.state.path().join("trace");
    let (is_able, _, error) =
        run(Command::new(BOWWAVE).arg("replay").arg(&recorded).arg("--fio").arg(&job));
    assert!(is_able, "{error}");
    let script = format!("cd {} && exec fio --readonly job.fio > fio.txt", job.display());
    let (status, said_of_fio, by_fio) = record(&bench, &[&"--", &"sh", &"-c", &script]);
    assert_eq!(status, Some(0), "{said_of_fio}: {:?}", fs::read_to_string(job.join("fio.txt")));
    for path in &paths {
        let reads = |trace| -> Vec<(u64, u64)> {
            let records = of(trace, path);
            let reads = records.iter().filter(|record| record.op == TraceOp::Read);
            reads.map(|read| (read.offset, read.bytes)).collect()
        };
        assert!(reads(&trace).len() > 1, "{said}");
        assert_eq!(reads(&trace), reads(&by_fio), "{error}");
    }
    // A folder with files in it is somebody's.
    let again = Command::new(BOWWAVE).arg("replay").arg(&recorded).arg("--fio").arg(&job).output();
    let again = again.expect("it runs");
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(!again.status.success() && said.contains("is not empty; name a new folder"), "{said}");
}

#[test]
fn paths_become_numbers_that_keep_directories_together() {
    let Some(bench) = Bench::of("record-numbers", 128 << 20) else { return };
    let paths = ["one", "two"].map(|name| file(&bench, name));
    let script = format!("cat {} {} > /dev/null", paths[0].display(), paths[1].display());
    let (_, said, trace) = record(&bench, &[&"--anonymous", &"--", &"sh", &"-c", &script]);
    let size = trace.files().iter().filter(|file| file.bytes == ways::FILE_BYTES);
    let folders: Vec<&str> = size.filter_map(|file| Some(file.name.rsplit_once('/')?.0)).collect();
    assert!(folders.len() == 2 && folders[0] == folders[1], "{said}: {folders:?}");
    let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'/');
    assert!(trace.files().iter().all(|file| is_number(&file.name)));
}

#[test]
fn a_killed_recorders_trace_is_read_up_to_its_last_block() {
    let Some(bench) = Bench::of("record-kill", 128 << 20) else { return };
    let path = file(&bench, "killed");
    let recorder = Recorder::begin(&bench);
    let recorded = || match trace::open(&recorder.path) {
        Ok(trace) => {
            (count(&of(&trace, &path), TraceOp::Read), trace.origin().map(|it| it.is_complete))
        }
        // No block is written yet.
        Err(_) => (0, None),
    };
    let before = loop {
        ways::pread(&path);
        let (reads, _) = recorded();
        if reads > 0 {
            break reads;
        }
    };
    recorder.signal(Signal::KILL);
    let (reads, is_complete) = recorded();
    assert!(reads >= before && is_complete == Some(false));
}

#[test]
fn an_older_trace_stays_if_the_command_does_not_start() {
    let Some(bench) = Bench::of("record-older", 128 << 20) else { return };
    let path = bench.state.path().join("trace");
    let first = record(&bench, &[&"--", &"grep", &"-q", &"root", &"/etc/passwd"]);
    let older = fs::read(&path).expect("there");
    let (status, said, trace) = record(&bench, &[&"--", &"no-such-program"]);
    assert_eq!((status, trace), (Some(127), first.2), "{said}");
    assert_eq!(fs::read(&path).expect("there"), older);
    let left = fs::read_dir(bench.state.path()).expect("ours").flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".new")), "{left:?}");
}

#[test]
fn a_trace_that_is_being_recorded_is_not_replaced_and_if_it_is_gone_at_the_end_that_is_told() {
    let Some(bench) = Bench::of("record-gone", 128 << 20) else { return };
    let mut recorder = Recorder::begin(&bench);
    let second =
        Command::new(BOWWAVE).args(["record", "--for", "1s", "-o"]).arg(&recorder.path).output();
    let second = second.expect("it runs");
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(!second.status.success() && said.contains("is being written by another"), "{said}");
    fs::remove_file(&recorder.path).expect("there");
    recorder.signal(Signal::TERM);
    let mut said = String::new();
    recorder.output.read_to_string(&mut said).expect("its last words");
    assert!(said.contains("was removed or replaced"), "{said}");
    assert_eq!(recorder.child.wait().expect("it ends").code(), Some(1));
}

#[test]
fn a_full_disk_ends_the_recording_and_the_programs_while_the_command_goes_on() {
    let Some(bench) = Bench::of("record-full", 128 << 20) else { return };
    let path = bench.state.path().join("trace");
    // 8 KiB of trace is all that may be written. The command ends when its recorder has no eBPF programs any more.
    let script = r#"
        attached() { ls -l /proc/$PPID/fd | grep -q bpf_link; }
        attached || exit 9
        while attached; do find /usr/lib -type f -size -64k | head -3000 | xargs cat > /dev/null; done
        exit 7"#;
    let limited = r#"trap '' XFSZ; ulimit -f 16; exec "$@""#;
    let mut command = Command::new("sh");
    command.args(["-c", limited, "sh", BOWWAVE, "record", "-o"]).arg(&path);
    let mut child = Own::start(command.args(["--", "sh", "-c", script]).stderr(Stdio::piped()));
    let status = child.wait().expect("it ends");
    let mut said = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
    assert_eq!(status.code(), Some(7), "{said}");
    assert!(said.contains("ends early") && said.contains("the command continues"), "{said}");
}

/// A trace that was recorded without a kernel, and changed.
fn changed(folder: &Path, change: impl FnOnce(&mut Vec<u8>)) -> PathBuf {
    let [bowwave, kernel, date] = Default::default();
    let mut bytes = Vec::new();
    let header = Header { bowwave, kernel, date };
    let mut recorder = recorded::Recorder::begin(&mut bytes, &header).expect("room");
    recorder.process("p").expect("room");
    recorder.file("f", 1 << 20).expect("room");
    let (op, offset, bytes_read) = (TraceOp::Read, 0, 23 * PAGE);
    let record = Record { at: 0, took: 0, process: 0, file: 0, op, offset, bytes: bytes_read };
    recorder.run(&Run { record, calls: 23, lasted: 23_000 }).expect("room");
    recorder.lose(7).expect("room");
    recorder.finish().expect("room");
    change(&mut bytes);
    let path = folder.join("changed");
    fs::write(&path, bytes).expect("ours");
    path
}

/// The commands that read a trace.
const READERS: [&[&str]; 2] = [&["replay"], &["record", "--text"]];

#[test]
fn what_was_lost_is_told_by_every_reader() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = changed(folder.path(), |_| {});
    for words in READERS {
        let output = Command::new(BOWWAVE).args(words).arg(&path).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert_eq!(said, "bowwave: 7 operations were lost when the trace was recorded\n");
    }
}

#[test]
fn a_trace_that_cannot_be_read_is_refused_in_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |path: &Path, why: &str| {
        for words in READERS {
            let output = Command::new(BOWWAVE).args(words).arg(path).output().expect("it runs");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.starts_with("bowwave: ") && said.contains(why), "{words:?}: {said}");
            assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
        }
    };
    refused(&changed(folder.path(), |bytes| bytes[40] ^= 1), "it is damaged at byte ");
    refused(&changed(folder.path(), |bytes| bytes[8] = 99), "use the version that recorded it");
    refused(&changed(folder.path(), |bytes| bytes.truncate(20)), "nothing was recorded");
    refused(&changed(folder.path(), |bytes| bytes.truncate(27)), "no read or write");
    refused(&changed(folder.path(), |bytes| bytes[0] = b'#'), "this is not UTF-8 text");
    refused(&changed(folder.path(), Vec::clear), "the trace has no records");
    refused(&folder.path().join("none"), "No such file");
}
