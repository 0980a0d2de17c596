//! `bowwave tune` on a lab disk: what it sets and puts back, remembers and forgets.
//!
//! How exact its figures are is measured by a bench, not here. Needs root and FUSE; elsewhere a test
//! says why it is skipped, unless BOWWAVE_REQUIRE_LIVE=1 makes that a failure.

mod own;
mod removals;
mod stage;
mod trial;
mod windows;

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lab::LabGuard;
use own::Own;
use removals::Watched;
use rustix::process::setpriority_process;
use serde_json::Value;
use stage::{Alone, BOWWAVE};
use trial::Over;

/// A window that nobody would choose.
const ODD_KB: u64 = 184;

struct Bench {
    lab: LabGuard,
    root: tempfile::TempDir,
    _alone: Alone,
}

/// `None` where labs do not work.
fn lab(device: &str, size_bytes: u64, fs_type: &str) -> Option<(Alone, LabGuard)> {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root || !fs::exists("/dev/fuse").unwrap_or(false) {
        return stage::skipped("a lab needs root and /dev/fuse");
    }
    Some(stage::lab("tune", device, size_bytes, fs_type))
}

/// A lab with a file of 64 MiB on it, cold; `None` where labs do not work.
fn bench(device: &str) -> Option<Bench> {
    let (alone, lab) = lab(device, 512 << 20, "ext4")?;
    lab.set_fast(true).expect("fast");
    stage::write_lines(&lab.mount_point().join("f64"), 64 << 20);
    lab.evict().expect("evicted");
    lab.set_fast(false).expect("as slow as it is");
    lab.set_read_ahead_kb(ODD_KB).expect("set");
    Some(Bench { lab, root: stage::state(), _alone: alone })
}

impl Bench {
    fn tune(&self, target: &Path, arguments: &[&str]) -> Command {
        let mut command = self.tune_for("3", target);
        command.args(arguments);
        command
    }

    fn tune_for(&self, seconds: &str, target: &Path) -> Command {
        let mut command = Command::new(BOWWAVE);
        command.arg("tune").arg(target).args(["--seconds", seconds]);
        command.arg("--root").arg(self.root.path());
        command
    }

    /// Remembers the device. If other programs disturb that, tries again.
    fn remember(&self, arguments: &[&str]) -> Option<Output> {
        const TRIES: usize = 5;
        for _ in 0..TRIES {
            let mut tune = self.tune(&self.device(), &["--persist"]);
            let output = tune.args(arguments).output().expect("it runs");
            if output.status.success() {
                return Some(output);
            }
            let errors = String::from_utf8_lossy(&output.stderr);
            let is_disturbed = errors.contains(": other programs used")
                || errors.contains("too little was measured");
            assert!(is_disturbed, "{errors}");
        }
        stage::skipped("other programs keep the device or the processors busy")
    }

    fn device(&self) -> PathBuf {
        self.lab.block_device().to_owned()
    }

    fn file(&self) -> PathBuf {
        self.lab.mount_point().join("f64")
    }

    fn window_kb(&self) -> u64 {
        self.lab.read_ahead_kb().expect("a window")
    }

    fn journals(&self) -> usize {
        windows::journals(self.lab.block_device())
    }

    /// Starts tuning and returns once it has set another window.
    /// A run that has begun to set windows, and goes on for so long that there is time for what comes meanwhile.
    fn tune_until_set(&self) -> Own {
        let mut tune = self.tune_for("15", &self.device());
        let child = Own::start(tune.stdout(Stdio::null()).stderr(Stdio::null()));
        let until = Instant::now() + Duration::from_secs(30);
        while self.window_kb() == ODD_KB {
            assert!(Instant::now() < until, "it sets no window");
            thread::yield_now();
        }
        child
    }
}

fn answer(mut command: Command) -> (Value, Output) {
    let output = command.output().expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    (serde_json::from_slice(&output.stdout).expect("JSON"), output)
}

fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_else(|| panic!("{name} is {}", value[name]))
}

#[test]
fn a_device_is_measured_and_its_window_is_as_before() {
    let Some(bench) = bench("sd") else { return };
    let Some(mut watched) = Watched::new(&bench.file()) else { return };
    let bytes = fs::read(bench.file()).expect("read into the page cache").len() as u64;
    let (found, _) = answer(bench.tune(&bench.device(), &["--json"]));
    assert_eq!(bench.window_kb(), ODD_KB);
    assert_eq!(bench.journals(), 0);
    assert_eq!(number(&found, "current_kb") as u64, ODD_KB);
    assert_eq!(number(&found, "formula_kb") as u64, 128, "of 512 MiB");
    if found["disturbed"] != true {
        assert_eq!(number(&found, "concurrency") as u64, 1);
    }
    let chosen = number(&found, "chosen_kb") as u64;
    assert!(chosen.is_power_of_two() && chosen >= 32, "{found}");
    let curve = found["curve"].as_array().expect("a list");
    let rates: Vec<f64> = curve.iter().map(|point| number(point, "mb_s")).collect();
    assert!(rates.len() >= 4 && rates[rates.len() - 1] > rates[0], "the curve rises: {rates:?}");
    assert!(found["explanation"].as_str().is_some_and(|text| text.contains("KiB")));
    // What others had in the page cache is still there. A page that the machine reclaimed meanwhile was tune's
    // own when tune read it, and may have gone.
    let kept = watched.kept();
    assert!(kept >= bytes * 99 / 100, "{kept} of {bytes} bytes: {}", watched.story());
}

#[test]
fn a_file_is_measured_through_the_window_of_its_file_system() {
    let Some(bench) = bench("sd") else { return };
    let (found, _) = answer(bench.tune(&bench.file(), &["--json"]));
    let knob = found["knob"].as_str().expect("there is one");
    assert!(knob.starts_with("/sys/class/bdi/") && knob.ends_with("/read_ahead_kb"), "{knob}");
    assert_eq!(found["estimated"], false);
    assert_eq!(bench.window_kb(), ODD_KB);
}

#[test]
fn a_killed_run_is_put_right_by_the_next() {
    let Some(bench) = bench("sd") else { return };
    let mut child = bench.tune_until_set();
    child.kill().expect("killed");
    child.wait().expect("it ends");
    assert_eq!(bench.journals(), 1);
    assert!(bench.window_kb() != ODD_KB, "nobody could put it back");
    let doctor = Command::new(BOWWAVE).arg("doctor").output();
    let doctor = doctor.expect("it runs").stdout;
    assert!(String::from_utf8_lossy(&doctor).contains("should be 184"), "it is named");
    let (found, output) = answer(bench.tune(&bench.device(), &["--json"]));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("back to 184"), "{errors}");
    assert_eq!(number(&found, "current_kb") as u64, ODD_KB);
    assert_eq!(bench.window_kb(), ODD_KB);
    assert_eq!(bench.journals(), 0);
}

#[test]
fn a_run_that_is_stopped_puts_the_window_back() {
    let Some(bench) = bench("sd") else { return };
    // A shell starts background jobs with SIGINT ignored, and bowwave keeps that.
    for signal in linux::signals::not_ignored([libc::SIGTERM, libc::SIGINT]) {
        let mut child = bench.tune_until_set();
        let pid = rustix::process::Pid::from_child(&child);
        let signal = rustix::process::Signal::from_named_raw(signal).expect("it has a name");
        rustix::process::kill_process(pid, signal).expect("sent");
        assert_eq!(child.wait().expect("it ends").code(), Some(130));
        assert_eq!(bench.window_kb(), ODD_KB);
        assert_eq!(bench.journals(), 0);
    }
}

#[test]
fn two_runs_do_not_spoil_each_other() {
    let Some(bench) = bench("sd") else { return };
    let mut first = bench.tune_until_set();
    let second = bench.tune(&bench.device(), &[]).output().expect("it runs");
    let errors = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success() && errors.contains("is measuring"), "{errors}");
    // A file on it has the same window.
    let third = bench.tune(&bench.file(), &[]).output().expect("it runs");
    let errors = String::from_utf8_lossy(&third.stderr).into_owned();
    assert!(!third.status.success() && errors.contains("is measuring"), "{errors}");
    assert!(first.wait().expect("it ends").success());
    assert_eq!(bench.window_kb(), ODD_KB);
}

#[test]
fn a_foreign_reader_is_noticed() {
    let Some(bench) = bench("hdd") else { return };
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(bench.file())
        .expect("it is there");
    let is_over = AtomicBool::new(false);
    let found = thread::scope(|scope| {
        let _over = Over(&is_over);
        scope.spawn(|| {
            let mut buffer = vec![0u8; 8192];
            let skew = buffer.as_ptr().align_offset(4096);
            for n in (0..).take_while(|_| !is_over.load(Ordering::Relaxed)) {
                let page: u64 = n * 7919 % (16 << 10);
                file.read_exact_at(&mut buffer[skew..skew + 4096], page * 4096).expect("read");
            }
        });
        answer(bench.tune(&bench.device(), &["--json"])).0
    });
    assert_eq!(found["disturbed"], true, "{found}");
}

#[test]
fn figures_taken_while_the_processors_were_busy_are_marked_and_not_remembered() {
    let Some(bench) = bench("sd") else { return };
    let is_over = AtomicBool::new(false);
    let hogs = 2 * thread::available_parallelism().map_or(1, usize::from);
    let output = thread::scope(|scope| {
        let _over = Over(&is_over);
        for _ in 0..hogs {
            scope.spawn(|| {
                // At equal priority, who sleeps now and then hardly waits.
                setpriority_process(None, -10).expect("root may");
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        bench.tune(&bench.device(), &["--persist"]).output().expect("it runs")
    });
    let (said, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("DISTURBED: ") && said.contains("for a processor"), "{said}");
    assert!(!said.contains("multiplies"), "{said}");
    // On a machine that is busy itself, perhaps nothing was measured at all.
    let is_refused = ["not remembered", "nothing to remember"].iter().any(|it| errors.contains(it));
    assert!(!output.status.success() && is_refused, "{errors}");
}

#[test]
fn without_root_it_estimates_and_names_the_command() {
    let Some(bench) = bench("sd") else { return };
    // A copy that others may execute, and a file on the machine's own disk that they may read.
    let place = tempfile::tempdir_in("/var/tmp").expect("a folder");
    let (program, file) = (place.path().join("bowwave"), place.path().join("file"));
    fs::copy(BOWWAVE, &program).expect("copied");
    fs::write(&file, vec![1; 8 << 20]).expect("written");
    for path in [place.path(), &program] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("set");
    }
    let run = |target: &Path, arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.arg("tune").arg(target).args(["--seconds", "3"]).args(arguments);
        command.uid(65534).gid(65534).output().expect("it runs")
    };
    let output = run(&file, &[]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("estimated from direct requests"), "{text}");
    let names_command = text.contains(" tune ") && text.contains("--apply");
    assert!(!names_command || !text.contains("DISTURBED"), "{text}");
    let output = run(&bench.device(), &[]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains("(permission denied); 128 KiB is what the device's size suggests"),
        "{text}"
    );
    assert!(text.contains("can measure it: sudo "), "{text}");
    assert!(!text.contains("echo"), "nothing was measured that would be worth setting: {text}");
    let output = run(&file, &["--apply"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("needs root"));
    assert_eq!(bench.window_kb(), ODD_KB);
}

#[test]
fn what_is_remembered_is_listed_found_by_the_hook_and_forgotten() {
    let Some(bench) = bench("sd") else { return };
    let Some(printed) = bench.remember(&["--dry-run"]) else { return };
    let text = String::from_utf8_lossy(&printed.stdout).into_owned();
    assert!(
        text.contains("/var/lib/bowwave/devices/") && text.contains("ATTR{queue/read_ahead_kb}")
    );
    assert!(!bench.root.path().join("var").exists(), "a dry run writes nothing");
    let Some(found) = bench.remember(&["--apply", "--json"]) else { return };
    let found: Value = serde_json::from_slice(&found.stdout).expect("JSON");
    let chosen = number(&found, "chosen_kb") as u64;
    assert_eq!(bench.window_kb(), chosen, "applied");
    let bowwave = |arguments: &[&str]| {
        let mut command = Command::new(BOWWAVE);
        command.args(["tune", "--root"]).arg(bench.root.path()).args(arguments);
        command.output().expect("it runs")
    };
    let listed: Value =
        serde_json::from_slice(&bowwave(&["--list", "--json"]).stdout).expect("JSON");
    let name = listed[0]["name"].as_str().expect("it has one").to_owned();
    let listed = String::from_utf8(bowwave(&["--list"]).stdout).expect("text");
    assert_eq!(listed.split_whitespace().next(), Some(&*name), "as --forget takes it");
    let disk = bench.device().file_name().expect("it has one").to_string_lossy().into_owned();
    let hook = || String::from_utf8_lossy(&bowwave(&["--hook", &disk]).stdout).into_owned();
    assert_eq!(hook().trim(), chosen.to_string());
    // The profile is a device: a lab can serve it.
    let profile = bench.root.path().join(format!("var/lib/bowwave/devices/{name}.toml"));
    let mut text = String::new();
    File::open(&profile).and_then(|mut file| file.read_to_string(&mut text)).expect("it is there");
    assert!(device::load(profile.to_str().expect("UTF-8")).is_ok(), "{text}");
    assert!(bowwave(&["--forget", &name]).status.success());
    for kb in [ODD_KB, 128, 8192] {
        bench.lab.set_read_ahead_kb(kb).expect("set");
        assert_eq!(hook(), "", "{kb} KiB of a device that nobody tuned");
    }
    assert!(!bowwave(&["--forget", &name]).status.success());
    assert!(!profile.exists());
}

/// The case that the formula was proposed for.
#[test]
fn what_blkid_reads_of_a_tiny_device_stays_small() {
    let Some((_alone, lab)) = lab("slow-505k", 505_000, "none") else { return };
    let name = lab.block_device().file_name().expect("it has one").to_string_lossy().into_owned();
    let fetched = || {
        lab.evict().expect("evicted");
        let before = lab.status().expect("it is up").bytes_read;
        let device = File::open(lab.block_device()).expect("it is there");
        device.read_exact_at(&mut [0; 1024], 0).expect("its start");
        device.read_exact_at(&mut [0; 16 << 10], 1536).expect("where labels are");
        // What is read ahead of them comes seconds later.
        let until = Instant::now() + Duration::from_secs(30);
        let in_flight = Path::new("/sys/block").join(&name).join("inflight");
        while fs::read_to_string(&in_flight).expect("it is there").split_whitespace().next()
            != Some("0")
        {
            assert!(Instant::now() < until, "it never ends");
            thread::yield_now();
        }
        lab.status().expect("it is up").bytes_read - before
    };
    lab.set_read_ahead_kb(128).expect("set");
    // 48 KiB in 2011; kernels with large folios round that up.
    assert!(fetched() >= 48 << 10, "under the stock window");
    let hook = Command::new(BOWWAVE).args(["tune", "--hook", &name]).output().expect("it runs");
    let kb = String::from_utf8_lossy(&hook.stdout).trim().parse().expect("a window");
    assert_eq!(kb, 0, "its size suggests a page, which is no read-ahead");
    lab.set_read_ahead_kb(kb).expect("set");
    let bytes = fetched();
    assert!(bytes < 24_000, "{bytes}");
}
