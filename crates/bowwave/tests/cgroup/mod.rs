//! Cgroups of a test's own, of version 1 or 2. They are removed with the test, also when it fails.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::stage::skipped;

/// Where a controller may be, and its file that takes a limit.
struct Controller {
    v1: &'static str,
    v1_limit: &'static str,
    /// `None` where version 2 takes it in another form.
    v2_limit: Option<&'static str>,
}

const MEMORY: Controller = Controller {
    v1: "/sys/fs/cgroup/memory",
    v1_limit: "memory.limit_in_bytes",
    v2_limit: Some("memory.max"),
};
const PROCESSES: Controller =
    Controller { v1: "/sys/fs/cgroup/pids", v1_limit: "pids.max", v2_limit: Some("pids.max") };
const BANDWIDTH: Controller = Controller {
    v1: "/sys/fs/cgroup/blkio",
    v1_limit: "blkio.throttle.read_bps_device",
    v2_limit: None,
};
const V2: &str = "/sys/fs/cgroup";

/// The longest wait for the last process to be gone. One that was reaped just now holds its cgroup for a moment.
const MOST_WAITING: Duration = Duration::from_secs(60);

/// Ends with all its processes.
pub(crate) struct Cgroup {
    folder: PathBuf,
    is_v2: bool,
}

impl Cgroup {
    /// One that may hold so much memory; `None` where none can be had, as of the others.
    pub(crate) fn with_memory(bytes: Option<u64>) -> Option<Self> {
        Self::of(&MEMORY, bytes.map(|bytes| bytes.to_string()))
    }

    /// One that may have so many processes.
    pub(crate) fn with_processes(most: usize) -> Option<Self> {
        Self::of(&PROCESSES, Some(most.to_string()))
    }

    /// One that may read so much of a device in a second, of version 1.
    pub(crate) fn with_bandwidth(device: u64, bytes: u64) -> Option<Self> {
        let (major, minor) = (libc::major(device), libc::minor(device));
        Self::of(&BANDWIDTH, Some(format!("{major}:{minor} {bytes}")))
    }

    fn of(controller: &Controller, limit: Option<String>) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("bowwave-test-{}-{number}", std::process::id());
        let v1 = Some((controller.v1, controller.v1_limit, false));
        let v2 = controller.v2_limit.map(|file| (V2, file, true));
        let made = [v1, v2].into_iter().flatten().find_map(|(root, file, is_v2)| {
            let folder = Path::new(root).join(&name);
            fs::create_dir(&folder).ok()?;
            let cgroup = Cgroup { folder, is_v2 };
            cgroup.members().exists().then_some(())?;
            if let Some(limit) = &limit {
                // Where the controller is not there, there is no such file, and none is made.
                let mut file = File::options().write(true).open(cgroup.folder.join(file)).ok()?;
                file.write_all(limit.as_bytes()).ok()?;
            }
            Some(cgroup)
        });
        made.or_else(|| skipped(&format!("no cgroup with {} can be made", controller.v1_limit)))
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// This command, in the cgroup, without its output.
    pub(crate) fn hold(&self, command: &Command) -> Command {
        let mut held = Command::new("sh");
        held.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.members());
        held.arg(command.get_program()).args(command.get_args()).stdout(Stdio::null());
        held
    }

    /// Has the command begin its life here.
    #[allow(unsafe_code)]
    pub(crate) fn begin_in(&self, command: &mut Command) {
        let members = File::options().write(true).open(self.members());
        let members = members.expect("a cgroup takes processes");
        // SAFETY: one system call on a descriptor that the closure owns; nothing is allocated.
        unsafe {
            command.pre_exec(move || Ok(rustix::io::write(&members, b"0").map(drop)?));
        }
    }

    /// Bytes of files charged to it.
    pub(crate) fn charged(&self) -> u64 {
        let stat = fs::read_to_string(self.folder.join("memory.stat")).expect("it counts");
        let name = if self.is_v2 { "file " } else { "cache " };
        let line = stat.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|number| number.parse().ok()).expect("a number")
    }

    fn members(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    fn processes(&self) -> Vec<Pid> {
        let text = fs::read_to_string(self.members()).unwrap_or_default();
        text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Where their number is limited, nobody is added from now on.
        if let Ok(mut most) = File::options().write(true).open(self.folder.join("pids.max")) {
            let _ = most.write_all(b"0");
        }
        let begun = Instant::now();
        while fs::remove_dir(&self.folder).is_err() {
            if begun.elapsed() > MOST_WAITING {
                return eprintln!("{} could not be removed", self.folder.display());
            }
            for process in self.processes() {
                let _ = kill_process(process, Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
