//! What is left of a lab whose making was cut short, or whose note is damaged: nothing, once it is removed.
//!
//! Needs root and FUSE; elsewhere a test says why it is skipped, unless BOWWAVE_REQUIRE_LIVE=1 makes that
//! a failure.

mod own;

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use own::Own;

const BOWWAVE: &str = env!("CARGO_BIN_EXE_bowwave");

/// Tells whether a lab has come to some stage of its making.
type Sight = fn(&Lab) -> bool;

/// The stages of making a lab that can be seen from outside, in order.
const STAGES: [(&str, Sight); 5] = [
    ("folder", |lab| lab.folder().exists()),
    ("server's folder", |lab| lab.folder().join("mnt").exists()),
    ("server", |lab| mounts().contains(&format!("{}/fuse ", lab.folder().display()))),
    ("loop device", |lab| lab.is_attached()),
    ("file system", |lab| mounts().contains(&format!("{}/mnt ", lab.folder().display()))),
];

/// A lab by its name; removed when this is dropped.
struct Lab(String);

impl Lab {
    /// One that is not there yet; `None` where labs do not work.
    fn new(name: &str) -> Option<Self> {
        let works = rustix::process::geteuid().is_root() && Path::new("/dev/fuse").exists();
        if !works {
            let reason = "a lab needs root and /dev/fuse";
            assert!(
                std::env::var_os("BOWWAVE_REQUIRE_LIVE").is_none(),
                "cannot test live: {reason}"
            );
            eprintln!("skipped: {reason}");
            return None;
        }
        Some(Lab(format!("{name}-{}", std::process::id())))
    }

    fn command(&self, action: &str) -> Command {
        let mut command = Command::new(BOWWAVE);
        command.args(["lab", action]);
        match action {
            "up" => command.args(["--name", &self.0, "--size", "2G", "--device", "ssd"]),
            _ => command.arg(&self.0),
        };
        command
    }

    fn run(&self, action: &str) -> Output {
        self.command(action).output().expect("it runs")
    }

    fn folder(&self) -> PathBuf {
        Path::new("/run/bowwave/lab").join(&self.0)
    }

    fn image(&self) -> PathBuf {
        self.folder().join("fuse/disk")
    }

    /// Its block device.
    fn device(&self) -> String {
        let mounts = mounts();
        let is_its = |line: &&str| line.contains(&self.0) && line.contains("/mnt ");
        let line = mounts.lines().find(is_its).expect("it is mounted");
        line.split(' ').next().expect("a device").to_owned()
    }

    fn is_attached(&self) -> bool {
        let devices = fs::read_dir("/sys/block").expect("it is there").flatten();
        let backing = devices.map(|device| device.path().join("loop/backing_file"));
        let mut files = backing.filter_map(|path| fs::read_to_string(path).ok());
        files.any(|file| Path::new(file.trim_end()).starts_with(self.folder()))
    }

    /// Begins to make it, and comes back once `is_there`, or it is made.
    fn begin(&self, is_there: Sight) -> Own {
        let mut up = self.command("up");
        let mut up = Own::start(up.stdout(Stdio::null()).stderr(Stdio::null()));
        while !is_there(self) && up.try_wait().expect("ours").is_none() {
            std::thread::yield_now();
        }
        up
    }

    fn assert_gone(&self, when: &str) {
        assert!(!self.is_attached(), "a loop device, {when}");
        assert!(!mounts().contains(&format!("{}/", self.folder().display())), "a mount, {when}");
        assert!(!self.folder().exists(), "a folder, {when}");
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.folder().exists() {
            let _ = self.run("down");
        }
    }
}

fn mounts() -> String {
    fs::read_to_string("/proc/self/mounts").expect("the table")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn signal(child: &Child, signal: Signal) {
    // It may be made already.
    let _ = kill_process(Pid::from_child(child), signal);
}

#[test]
fn a_lab_whose_making_is_stopped_leaves_nothing() {
    let Some(lab) = Lab::new("stopped") else { return };
    for (stage, is_there) in STAGES {
        for which in [Signal::INT, Signal::TERM] {
            let mut up = lab.begin(is_there);
            signal(&up, which);
            let when = format!("{which:?} after the {stage}");
            match up.wait().expect("it ends").code() {
                // The signal came when all was done.
                Some(0) => assert!(lab.run("down").status.success(), "{when}"),
                code => assert_eq!(code, Some(130), "{when}"),
            }
            lab.assert_gone(&when);
        }
    }
}

#[test]
fn what_a_killed_making_left_is_cleared_by_down_and_by_the_next_up() {
    let Some(lab) = Lab::new("killed") else { return };
    for (stage, is_there) in STAGES {
        for next in ["down", "up"] {
            let mut up = lab.begin(is_there);
            signal(&up, Signal::KILL);
            let when = format!("killed after the {stage}, then {next}");
            if up.wait().expect("it ends").success() {
                assert!(lab.run("down").status.success(), "{when}");
                continue;
            }
            let status = lab.run("status");
            if status.status.success() && said(&status).is_empty() {
                // All was made, and only the end of the command was not reached.
                assert!(lab.run("down").status.success(), "{when}");
                continue;
            }
            assert!(said(&status).contains("lab down"), "{when}: {}", said(&status));
            let output = lab.run(next);
            assert!(output.status.success(), "{when}: {}", said(&output));
            if next == "up" {
                assert!(lab.run("status").status.success(), "{when}");
                let down = lab.run("down");
                assert!(down.status.success(), "{when}: {}", said(&down));
            }
            lab.assert_gone(&when);
        }
    }
}

/// Begins to remove the lab while `image` is open, attaches a loop device to it once `down` waits for that, and closes
/// it. `None` if `down` had ended by then.
fn down_while_a_device_is_attached(lab: &Lab, image: &Path) -> Option<Output> {
    let held = fs::File::open(image).expect("it is served");
    let mut down = lab.command("down").stderr(Stdio::piped()).spawn().expect("it runs");
    let place = format!("/proc/{}/wchan", down.id());
    let waits = || fs::read_to_string(&place).is_ok_and(|place| place.contains("nanosleep"));
    let mut has_ended = false;
    while !has_ended && !waits() {
        has_ended = down.try_wait().expect("ours").is_some();
    }
    let attached = Command::new("losetup").args(["--find", "--direct-io=on"]).arg(image).output();
    let has_attached = attached.expect("losetup is there").status.success();
    let is_in_time = has_attached && down.try_wait().expect("ours").is_none();
    drop(held);
    let output = down.wait_with_output().expect("it ends");
    is_in_time.then_some(output)
}

#[test]
fn a_device_that_a_killed_making_still_attaches_is_removed_too() {
    let Some(lab) = Lab::new("late") else { return };
    loop {
        let (_, is_served) = STAGES[2];
        let mut up = lab.begin(is_served);
        signal(&up, Signal::KILL);
        up.wait().expect("it ends");
        if lab.is_attached() || !lab.image().exists() {
            let _ = lab.run("down");
            continue;
        }
        match down_while_a_device_is_attached(&lab, &lab.image()) {
            Some(down) => {
                assert!(down.status.success(), "{}", said(&down));
                return lab.assert_gone("after a late device");
            }
            // The machine was too busy.
            None => drop(lab.run("down")),
        }
    }
}

#[test]
fn a_lab_whose_server_was_killed_is_in_nobodys_way() {
    let (Some(dead), Some(next)) = (Lab::new("dead"), Lab::new("next")) else { return };
    assert!(dead.run("up").status.success());
    let note = fs::read_to_string(dead.folder().join("state.json")).expect("a note");
    let note: serde_json::Value = serde_json::from_str(&note).expect("JSON");
    let server = note["server_pid"].as_i64().and_then(|pid| Pid::from_raw(pid as i32));
    kill_process(server.expect("its process"), Signal::KILL).expect("ours");
    let is_dead = || fs::metadata(dead.folder().join("fuse")).is_err();
    while !is_dead() {
        std::thread::yield_now();
    }
    // `mkfs.btrfs` looks at the images of all loop devices.
    let up = next.command("up").args(["--fs", "btrfs"]).output().expect("it runs");
    assert!(up.status.success(), "{}", said(&up));
    dead.assert_gone("after the next lab");
}

#[test]
fn a_lab_with_a_damaged_note_is_removed_all_the_same() {
    let Some(lab) = Lab::new("damaged") else { return };
    for text in ["", "nonsense", "{\"name\": 1}"] {
        assert!(lab.run("up").status.success());
        fs::write(lab.folder().join("state.json"), text).expect("written");
        let status = said(&lab.run("status"));
        assert!(status.contains("damaged") && status.contains("lab down"), "{status}");
        let down = lab.run("down");
        assert!(down.status.success(), "{}", said(&down));
        lab.assert_gone("with a damaged note");
    }
}

#[test]
fn two_commands_do_not_make_one_lab() {
    let Some(lab) = Lab::new("twice") else { return };
    let mut first = lab.begin(|lab| lab.folder().exists());
    let second = lab.run("up");
    assert!(!second.status.success());
    assert!(first.wait().expect("it ends").success(), "{}", said(&second));
    assert!(lab.run("status").status.success(), "{}", said(&second));
}

#[test]
fn a_lab_keeps_nobodys_folder_from_being_unmounted() {
    let Some(lab) = Lab::new("elsewhere") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let up = lab.command("up").current_dir(folder.path()).output().expect("it runs");
    assert!(up.status.success(), "{}", said(&up));
    let note = fs::read_to_string(lab.folder().join("state.json")).expect("a note");
    let note: serde_json::Value = serde_json::from_str(&note).expect("JSON");
    let place = fs::read_link(format!("/proc/{}/cwd", note["server_pid"])).expect("it serves");
    assert_eq!(place, Path::new("/"));
    assert!(lab.run("down").status.success());
}

/// The I/O scheduler of a loop device, such as `[none] mq-deadline kyber`.
fn schedulers(device: &str) -> String {
    let name = Path::new(device).file_name().expect("a name");
    let queue = Path::new("/sys/block").join(name).join("queue/scheduler");
    fs::read_to_string(queue).expect("it is there")
}

#[test]
fn a_scheduler_is_that_of_one_lab_and_not_of_the_next_one_on_its_device() {
    let Some(lab) = Lab::new("scheduler") else { return };
    let up = lab.command("up").args(["--scheduler", "mq-deadline"]).output().expect("it runs");
    assert!(up.status.success(), "{}", said(&up));
    let device = lab.device();
    assert!(schedulers(&device).contains("[mq-deadline]"), "{}", schedulers(&device));
    assert!(lab.run("down").status.success());
    assert!(schedulers(&device).contains("[none]"), "{}", schedulers(&device));
    // Whoever had the device before.
    let queue = Path::new("/sys/block").join(device.trim_start_matches("/dev/"));
    fs::write(queue.join("queue/scheduler"), "mq-deadline").expect("it takes that");
    assert!(lab.run("up").status.success());
    let next = lab.device();
    assert!(schedulers(&next).contains("[none]"), "{next}: {}", schedulers(&next));
    fs::write(queue.join("queue/scheduler"), "none").expect("it takes that");
}

#[test]
fn a_lab_the_device_of_which_somebody_has_open_stays_whole() {
    let Some(lab) = Lab::new("open") else { return };
    assert!(lab.run("up").status.success());
    let device = lab.device();
    let reader = fs::File::open(&device).expect("root may");
    let down = lab.run("down");
    let own = format!("({})", std::process::id());
    assert!(!down.status.success() && said(&down).contains(&own), "{}", said(&down));
    assert_eq!(lab.device(), device);
    assert!(lab.run("status").status.success());
    drop(reader);
    let down = lab.run("down");
    assert!(down.status.success(), "{}", said(&down));
    lab.assert_gone("once it was closed");
}

#[test]
fn a_lab_whose_replies_are_late_says_so_and_is_never_faster_than_its_device() {
    const READS: u64 = 40;
    const LATENCY: Duration = Duration::from_millis(5);
    let Some(lab) = Lab::new("injected") else { return };
    let mut up = Command::new(BOWWAVE);
    up.args(["lab", "up", "--name", &lab.0, "--device", "net", "--size", "64M", "--fs", "none"]);
    let up = up.args(["--inject-late", "400", "--json"]).output().expect("it runs");
    assert!(up.status.success(), "{}", said(&up));
    let made: serde_json::Value = serde_json::from_slice(&up.stdout).expect("JSON");
    let disk = fs::File::open(made["block_device"].as_str().expect("a node")).expect("root may");
    let began = Instant::now();
    for read in 0..READS {
        // Apart, so that none is read ahead of.
        disk.read_exact_at(&mut [0; 512], read << 20).expect("it reads");
    }
    let elapsed = began.elapsed();
    drop(disk);
    let status = lab.command("status").arg("--json").output().expect("it runs");
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).expect("JSON");
    let late_us = status[0]["late_mean_us"].as_f64().expect("a number");
    let error_us = status[0]["error_us"].as_f64().expect("a number");
    assert!(elapsed >= LATENCY * READS as u32, "{elapsed:?}");
    assert!(late_us > 100.0, "{late_us}");
    assert!(error_us > 0.0 && error_us < late_us * READS as f64 * 4.0, "{error_us}");
    assert!(made["mount_point"].is_null() && status[0]["mount_point"].is_null(), "a bare device");
    assert!(!said(&lab.run("status")).contains("mnt"));
    assert!(lab.run("down").status.success());
}
