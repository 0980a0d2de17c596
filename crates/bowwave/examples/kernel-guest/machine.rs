//! The virtual machine: its file systems, its disks, its programs.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use rustix::mount::{MountFlags, mount};

use crate::Result;

/// The serial of the disk with the files of the patterns.
pub(crate) const PLAIN: &str = "plain";
/// Where that disk is mounted.
pub(crate) const FOLDER: &str = "/mnt";

/// Mounts what programs expect.
pub(crate) fn prepare() -> Result<()> {
    for (kind, target) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/run"),
        ("tmpfs", "/tmp"),
    ] {
        mount(kind, target, kind, MountFlags::empty(), None)?;
    }
    mount("securityfs", "/sys/kernel/security", "securityfs", MountFlags::empty(), None)?;
    mount("cgroup2", "/sys/fs/cgroup", "cgroup2", MountFlags::empty(), None)?;
    fs::create_dir("/dev/shm")?;
    symlink("/proc/self/fd", "/dev/fd")?;
    Ok(())
}

/// The name of the disk with this serial number. Names depend on which disk answers first.
pub(crate) fn disk_named(serial: &str) -> Result<String> {
    for entry in fs::read_dir("/sys/block")? {
        let entry = entry?;
        let found = fs::read_to_string(entry.path().join("device/serial")).unwrap_or_default();
        if found.trim() == serial {
            return Ok(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Err(format!("there is no disk {serial}").into())
}

pub(crate) fn mount_disk(name: &str) -> Result<()> {
    Ok(mount(format!("/dev/{name}"), FOLDER, "ext4", MountFlags::empty(), None)?)
}

pub(crate) fn forget_everything() -> Result<()> {
    rustix::fs::sync();
    Ok(fs::write("/proc/sys/vm/drop_caches", "3")?)
}

/// Where patterns read, and who serves them.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) folder: &'static str,
    /// Read requests so far, and bytes read.
    pub(crate) served: fn() -> Result<(u64, u64)>,
}

/// The disk with the files of the patterns.
pub(crate) const DISK: Place = Place { folder: FOLDER, served: disk_counters };

fn disk_counters() -> Result<(u64, u64)> {
    let stat = PathBuf::from("/sys/block").join(disk_named(PLAIN)?).join("stat");
    let counters = fs::read_to_string(stat)?;
    let fields: Vec<&str> = counters.split_whitespace().collect();
    Ok((fields[0].parse()?, fields[2].parse::<u64>()? * 512))
}

pub(crate) fn bowwave(hooks: &str, words: &[&str]) -> io::Result<Output> {
    let mut command = Command::new("/bin/bowwave");
    command.args(words).env("BOWWAVE_HOOKS", hooks).env("PATH", "/bin").stdin(Stdio::null());
    let output = command.output()?;
    if !output.status.success() {
        println!("bowwave {}: {}", words.join(" "), output.status);
    }
    print!("{}", String::from_utf8_lossy(&output.stderr));
    Ok(output)
}
