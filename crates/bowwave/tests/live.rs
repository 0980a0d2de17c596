//! End to end, on the running kernel: a lab disk, real readers, and bowwave beside them.
//!
//! What is asserted is counted (requests, bytes, settings), never timed. Needs root, FUSE and eBPF;
//! elsewhere a test says why it is skipped, unless BOWWAVE_REQUIRE_LIVE=1 makes that a failure.

mod backward;
mod managed;
mod own;
mod run;
mod stage;
mod windows;

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use lab::{LabGuard, Status};
use managed::Daemon;
use own::Own;
use rustix::fs::{Advice, fadvise};
use stage::{Alone, BOWWAVE};

struct Bench {
    lab: LabGuard,
    state: tempfile::TempDir,
    _alone: Alone,
}

/// A lab with the file of most patterns on it, cold; `None` where labs or eBPF do not work.
fn bench(device: &str) -> Option<Bench> {
    managed::possible()?;
    let (alone, lab) = stage::lab("test", device, 512 << 20, "ext4");
    lab.set_fast(true).expect("fast");
    stage::write_lines(&lab.mount_point().join("f100"), 100 << 20);
    lab.evict().expect("evicted");
    let state = stage::state();
    Some(Bench { lab, state, _alone: alone })
}

impl Bench {
    fn daemon(&self, arguments: &[&str]) -> Own {
        managed::begin(&mut managed::daemon(&self.lab, self.state.path(), arguments)).0
    }

    fn reader(&self, pattern: &str) -> Command {
        let mut command = Command::new(BOWWAVE);
        command.args(["demo", "--worker", pattern, "--folder"]).arg(self.lab.mount_point());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command
    }

    /// Reads the pattern to its end; gives what was read, and what the device served meanwhile.
    fn read(&self, command: Command) -> (u64, Status) {
        let before = self.lab.status().expect("counters");
        let sum = finish(start(command));
        (sum, self.lab.status().expect("counters").since(&before))
    }

    fn window_kb(&self) -> u64 {
        self.lab.read_ahead_kb().expect("a window")
    }
}

fn start(mut command: Command) -> Own {
    let mut child = Own::start(&mut command);
    child.stdin.take().expect("piped").write_all(b"go\n").expect("it listens");
    child
}

/// The checksum that a reader reports.
fn finish(mut child: Own) -> u64 {
    let mut report = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut report).expect("text");
    assert!(child.wait().expect("the reader ends").success(), "the reader failed");
    let outcome: serde_json::Value = serde_json::from_str(&report).expect("its report");
    outcome["checksum"].as_u64().expect("a sum")
}

#[test]
fn a_managed_backward_reader_needs_a_fraction_of_the_requests_and_reads_the_same_bytes() {
    let Some(bench) = bench("net") else { return };
    let (stock_sum, stock) = bench.read(bench.reader("backward-64k"));
    assert!(stock.reads >= backward::READS, "{} requests", stock.reads);
    let fewest = backward::fewest(|| {
        bench.lab.evict().expect("evicted");
        let _daemon = bench.daemon(&[]);
        let (sum, managed) = bench.read(bench.reader("backward-64k"));
        assert_eq!(sum, stock_sum);
        managed.reads
    });
    assert!(fewest < backward::MOST_MANAGED_READS, "{fewest} requests");
}

#[test]
fn a_disk_that_is_busy_when_bowwave_first_comes_to_it_is_measured_once_it_is_idle() {
    let Some(bench) = bench("hdd") else { return };
    let [one, two] = ["f100", "copy"].map(|name| bench.lab.mount_point().join(name));
    bench.lab.set_fast(true).expect("fast");
    fs::copy(&one, &two).expect("copied");
    bench.lab.evict().expect("evicted");
    let mut compare = Own::start(Command::new("cmp").args([one, two]).stdin(Stdio::null()));
    let daemon = bench.daemon(&[]);
    let profiles = || -> Vec<_> {
        let files = fs::read_dir(bench.state.path().join("disks")).into_iter().flatten().flatten();
        let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
        texts.filter(|text| text.contains("\"Measured\"")).collect()
    };
    assert!(compare.wait().expect("it ends").success(), "the files are the same");
    let deadline = Instant::now() + Duration::from_secs(60);
    while profiles().is_empty() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(50));
    }
    drop(daemon);
    let [text] = &profiles()[..] else { panic!("one profile of the one disk") };
    let profile: serde_json::Value = serde_json::from_str(text).expect("JSON");
    // It reads 100 MB a second, but a tenth of that if others are served in between.
    assert!(profile["bandwidth_mb_s"].as_f64().is_some_and(|rate| rate > 40.0), "{text}");
}

#[test]
fn what_files_of_a_volume_have_shown_is_known_at_the_next_start() {
    let Some(bench) = bench("net") else { return };
    bench.lab.set_fast(true).expect("fast");
    let files: Vec<_> =
        (0..8).map(|n| bench.lab.mount_point().join(format!("whole-{n}"))).collect();
    files.iter().for_each(|file| stage::write_lines(file, 4 << 20));
    bench.lab.set_fast(false).expect("slow again");
    // How many windows a daemon reads ahead for a reader of these files.
    let windows = |files: &[PathBuf]| {
        bench.lab.evict().expect("evicted");
        let mut daemon = managed::daemon(&bench.lab, bench.state.path(), &[]);
        let daemon = Daemon::begin(&mut daemon);
        managed::wait_measured(&bench.lab, bench.state.path());
        for file in files {
            let mut file = fs::File::open(file).expect("opened");
            io::copy(&mut file, &mut io::sink()).expect("read");
        }
        daemon.end()["reads"].as_u64().expect("a count")
    };
    let unknown = windows(&files[..1]);
    windows(&files[1..]);
    let known = windows(&files[..1]);
    assert!(known < unknown, "{known} windows, {unknown} before");
    let kept = || fs::read_dir(bench.state.path().join("volumes")).expect("kept").flatten();
    assert_eq!(kept().count(), 1);
    kept().for_each(|file| fs::write(file.path(), "damaged").expect("written"));
    assert!(windows(&files[..1]) > known, "a damaged note counts as none");
}

#[test]
fn a_long_forward_reader_of_a_fast_disk_gets_a_wider_window_until_the_daemon_ends() {
    let Some(bench) = bench("ssd") else { return };
    let path = bench.lab.mount_point().join("f100");
    let file = fs::File::open(&path).expect("opened");
    let own = windows::requests(&bench.lab, &file);
    // The disk is as fast as they come, whatever this machine makes of it.
    let daemon = bench.daemon(&[]);
    managed::wait_measured(&bench.lab, bench.state.path());
    drop(daemon);
    let note = managed::disk_note(&bench.lab, bench.state.path());
    let text = fs::read_to_string(&note).expect("a note");
    let mut about: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    about["latency_us"] = 100.into();
    about["bandwidth_mb_s"] = 2000.into();
    fs::write(&note, about.to_string()).expect("written");
    let daemon = Daemon::begin(&mut managed::daemon(&bench.lab, bench.state.path(), &[]));
    let mut part = vec![0; 64 << 10];
    stage::wait_until("a window is wider", Duration::from_secs(60), || {
        fadvise(&file, 0, None, Advice::DontNeed).expect("advised");
        for offset in (0..100 << 20).step_by(part.len()) {
            file.read_exact_at(&mut part, offset).expect("read");
        }
        !windows::noted(bench.state.path()).is_empty()
    });
    let wider = windows::requests(&bench.lab, &file);
    assert!(wider * 2 <= own, "{wider} requests for a part of the file, {own} before");
    daemon.end();
    windows::are_as_before(&bench.lab, bench.state.path(), &file, own, "after its end");
}

/// Freezes maps of a process, given by the sizes of their keys and values: from then on it cannot change them.
const FREEZE: &str = r#"
import ctypes, os, platform, struct, sys
MAP_GET_FD_BY_ID, MAP_FREEZE = 14, 22
NUMBER = {'x86_64': 321, 'aarch64': 280}[platform.machine()]
libc = ctypes.CDLL(None, use_errno=True)
def bpf(command, number):
    attributes = ctypes.create_string_buffer(struct.pack('I', number), 128)
    result = libc.syscall(NUMBER, command, attributes, 128)
    assert result >= 0, os.strerror(ctypes.get_errno())
    return result
maps = {}
for descriptor in os.listdir(f'/proc/{sys.argv[1]}/fdinfo'):
    try:
        text = open(f'/proc/{sys.argv[1]}/fdinfo/{descriptor}').read()
    except FileNotFoundError:
        continue # closed meanwhile
    about = dict(line.split(':\t') for line in text.splitlines() if ':\t' in line)
    if 'map_id' in about:
        maps[about['map_id']] = (about['key_size'], about['value_size'])
for number, sizes in maps.items():
    if sizes in [tuple(words.split(',')) for words in sys.argv[2:]]:
        bpf(MAP_FREEZE, bpf(MAP_GET_FD_BY_ID, int(number)))
        print(number)
"#;

#[test]
fn a_daemon_whose_tables_refuse_every_change_goes_on_and_counts_that() {
    let Some(bench) = bench("net") else { return };
    let expected = finish(start(bench.reader("backward-64k")));
    bench.lab.evict().expect("evicted");
    let daemon = Daemon::begin(&mut managed::daemon(&bench.lab, bench.state.path(), &[]));
    let mut freeze = Command::new("python3");
    freeze.args(["-c", FREEZE]).arg(daemon.child.id().to_string());
    // The tables of marks and of files.
    let frozen = freeze.args(["24,16", "16,24"]).output().expect("python3 is installed");
    let said = String::from_utf8_lossy(&frozen.stderr);
    assert_eq!(frozen.stdout.iter().filter(|byte| **byte == b'\n').count(), 2, "{said}");
    assert_eq!(finish(start(bench.reader("backward-64k"))), expected);
    let summary = daemon.end();
    assert!(summary["table_errors"].as_u64() > Some(0), "{summary}");
    assert!(summary["read_ahead_bytes"].as_u64() > Some(0), "it still reads ahead: {summary}");
}

#[test]
fn the_daemon_killed_in_mid_load_harms_nobody_and_leaves_every_window_as_it_was() {
    let Some(bench) = bench("hdd") else { return };
    let expected = finish(start(bench.reader("streams-16-64k")));
    for charge in ["bowwave", "reader"] {
        bench.lab.evict().expect("evicted");
        let mut daemon = bench.daemon(&["--charge", charge]);
        let before = bench.lab.status().expect("counters");
        let reader = start(bench.reader("streams-16-64k"));
        stage::wait_until("a fifth of the file is served", Duration::from_secs(120), || {
            bench.lab.status().expect("counters").since(&before).bytes_read >= 20 << 20
        });
        daemon.kill().expect("it was running");
        daemon.wait().expect("it ended");
        assert_eq!(finish(reader), expected, "the reader got other bytes");
        drop(bench.daemon(&[]));
        assert_eq!(bench.window_kb(), 128, "after the next start");
    }
}

#[test]
fn a_window_left_changed_by_a_killed_daemon_is_put_back_at_the_next_start() {
    let Some(bench) = bench("net") else { return };
    let device = std::os::unix::fs::MetadataExt::dev(
        &fs::metadata(bench.lab.mount_point()).expect("mounted"),
    );
    let knob =
        format!("/sys/class/bdi/{}:{}/read_ahead_kb", libc::major(device), libc::minor(device));
    // What a daemon killed between its two writes leaves behind.
    let ino = std::os::unix::fs::MetadataExt::ino(&fs::metadata(&knob).expect("it is there"));
    let entry = serde_json::json!({ "knob": knob, "ino": ino, "kb": 128, "pid": 1 });
    let journal = Path::new(linux::knob::JOURNALS).join("one.json");
    for (now, after) in [("4096", 128), ("512", 512)] {
        fs::create_dir_all(linux::knob::JOURNALS).expect("a folder");
        fs::write(&journal, format!("{entry}\n{{\"set\":4096}}\n")).expect("a journal");
        fs::write(&knob, now).expect("changed");
        drop(bench.daemon(&[]));
        assert_eq!(bench.window_kb(), after, "what somebody else has set since stays");
        assert!(!journal.exists());
    }
}

#[test]
fn a_lab_in_use_stays_and_names_its_users_and_a_dead_one_hides_no_other() {
    let Some(bench) = bench("net") else { return };
    let lab = |words: &[&str]| {
        let output = Command::new(BOWWAVE).arg("lab").args(words).output().expect("it ran");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (String::from_utf8_lossy(&output.stdout).into_owned(), said, output.status.success())
    };
    let name = bench.lab.name();
    let works_in =
        |folder: &Path| Own::start(Command::new("sleep").arg("1000").current_dir(folder));
    let mut of_server = works_in(&bench.lab.mount_point().with_file_name("fuse"));
    let (_, said, is_down) = lab(&["down", name]);
    of_server.kill().expect("it sleeps");
    of_server.wait().expect("it ends");
    let user = format!("sleep ({}, its current folder)", of_server.id());
    assert!(!is_down && said.contains(&user), "{said}");
    fs::metadata(bench.lab.mount_point().join("f100")).expect("it is mounted as before");

    let mut user = works_in(&bench.lab.mount_point());
    let (_, said, is_down) = lab(&["down", name]);
    assert!(bench.lab.evict().is_err(), "it is in use");
    let before = bench.lab.status().expect("counters");
    fs::read(bench.lab.mount_point().join("f100")).expect("it is there");
    let served = bench.lab.status().expect("counters").since(&before);
    assert!(served.timed > 0, "the delays are on again");
    user.kill().expect("it sleeps");
    user.wait().expect("it ends");
    assert!(
        !is_down && said.contains(&format!("sleep ({}, its current folder)", user.id())),
        "{said}"
    );
    assert!(lab(&["status", name]).2, "it works as before");

    let dead = format!("dead-{}", std::process::id());
    let (made, said, _) = lab(&["up", "--name", &dead, "--size", "64M", "--device", "ssd"]);
    assert!(made.contains(&dead), "{said}");
    let note = fs::read_to_string(format!("/run/bowwave/lab/{dead}/state.json")).expect("a note");
    let note: serde_json::Value = serde_json::from_str(&note).expect("JSON");
    let server = note["server_pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
    let server = server.and_then(rustix::process::Pid::from_raw).expect("its server");
    rustix::process::kill_process(server, rustix::process::Signal::KILL).expect("it serves");
    // Its file system is gone some time after the signal.
    let fuse = format!("/run/bowwave/lab/{dead}/fuse");
    stage::wait_until("it is dead", Duration::from_secs(60), || fs::metadata(&fuse).is_err());
    let (listed, said, is_well) = lab(&["status"]);
    assert!(listed.contains(name) && !is_well, "{listed}");
    assert!(said.contains(&format!("bowwave lab down {dead}")), "{said}");
    let (_, said, is_down) = lab(&["down", &dead]);
    assert!(is_down, "{said}");
}

#[test]
fn a_lab_that_cannot_be_made_leaves_nothing() {
    let Some(bench) = bench("net") else { return };
    let name = format!("wrong-{}", std::process::id());
    for (option, value, word) in [("--scheduler", "foo", "none"), ("--fs", "foo", "ext4")] {
        let mut up = Command::new(BOWWAVE);
        up.args(["lab", "up", "--size", "64M", "--name", &name, option, value]);
        let output = up.output().expect("it ran");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(word), "{said}");
        assert!(!fs::exists(format!("/run/bowwave/lab/{name}")).unwrap_or(true));
    }
    let folder = format!("/run/bowwave/lab/{name}");
    fs::create_dir_all(format!("{folder}/thesis")).expect("a folder in the way");
    let up = Command::new(BOWWAVE).args(["lab", "up", "--size", "64M", "--name", &name]).output();
    let said = String::from_utf8_lossy(&up.expect("it ran").stderr).into_owned();
    fs::remove_dir(format!("{folder}/thesis")).expect("it is as it was");
    fs::remove_dir(&folder).expect("nothing else is in it");
    assert!(said.contains("is no lab"), "{said}");
    drop(bench);
}

#[test]
fn a_lab_keeps_data_counts_requests_and_leaves_no_trace() {
    let Some(bench) = bench("sd") else { return };
    let (node, folder) = (bench.lab.block_device().to_owned(), bench.lab.mount_point());
    let name = bench.lab.name().to_owned();
    let taken =
        Command::new(BOWWAVE).args(["lab", "up", "--size", "64M", "--name", &name]).output();
    let said = String::from_utf8_lossy(&taken.expect("it ran").stderr).into_owned();
    assert!(said.contains("is up already"), "{said}");
    let text = b"kept across an eviction".repeat(1000);
    fs::write(folder.join("note"), &text).expect("written");
    bench.lab.evict().expect("evicted");
    let before = bench.lab.status().expect("counters");
    assert_eq!(fs::read(folder.join("note")).expect("read"), text);
    let doctor = Command::new(BOWWAVE).arg("doctor").output().expect("it ran");
    let listed = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(listed.contains(&format!("{name}/mnt")), "{listed}");
    assert!(!listed.contains(&format!("{name}/fuse")), "{listed}");
    assert!(bench.lab.status().expect("counters").since(&before).bytes_read >= text.len() as u64);
    drop(bench);
    let mounts = fs::read_to_string("/proc/self/mounts").expect("the table");
    assert!(!mounts.contains(&*folder.to_string_lossy()));
    let backing = fs::read_to_string(format!(
        "/sys/block/{}/loop/backing_file",
        node.file_name().expect("a name").to_string_lossy()
    ));
    assert!(backing.is_err() || !backing.expect("read").contains(&name));
    assert!(!folder.exists());
}
