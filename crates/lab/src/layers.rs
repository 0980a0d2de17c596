//! The layers above the server: loop device, file system and mount, made with the system's own tools.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::mount::UnmountFlags;

use crate::error::LabError;
use crate::tool;
use crate::users::users_of;

/// The default window of stock kernels, in KiB. Loop devices begin with a larger one, which returns whenever the limits
/// of the queue change.
pub(crate) const STOCK_READ_AHEAD_KB: u64 = 128;

/// The largest request that FUSE carries, so that none is split into unequal halves.
const LARGEST_REQUEST_KB: u64 = 1024;

/// A file system for labs, without background work that would disturb a measurement.
struct FileSystem {
    name: &'static str,
    mkfs_arguments: &'static [&'static str],
    /// Its package in Debian.
    package: &'static str,
}

const FILE_SYSTEMS: [FileSystem; 3] = [
    FileSystem {
        name: "ext4",
        mkfs_arguments: &["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"],
        package: "e2fsprogs",
    },
    FileSystem { name: "xfs", mkfs_arguments: &["-f", "-q"], package: "xfsprogs" },
    FileSystem { name: "btrfs", mkfs_arguments: &["-f", "-q"], package: "btrfs-progs" },
];

/// The bare device, for tools that work on devices.
pub(crate) const NO_FILE_SYSTEM: &str = "none";

/// A program that only examines a device (as another `losetup --find` does) soon closes it. How often to try to find it
/// unused, and the pause in between: two seconds in all.
const UNUSED_TRIES: u32 = 40;
const PAUSE: Duration = Duration::from_millis(50);

/// Runs a tool. Returns its standard output.
pub(crate) fn run<S: AsRef<OsStr>>(tool: &str, arguments: &[S]) -> Result<String, LabError> {
    let command = || {
        let words = arguments.iter().map(|argument| argument.as_ref().to_string_lossy());
        std::iter::once(tool.into()).chain(words).collect::<Vec<_>>().join(" ")
    };
    let output = tool::command(tool).args(arguments).output().map_err(|error| LabError::Tool {
        command: command(),
        reason: format!("{error}; is the package that has {tool} installed?"),
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(LabError::Tool { command: command(), reason: complaint(&said) })
}

/// The error in one line, without the usage that some tools print after it.
fn complaint(said: &str) -> String {
    let is_usage = |line: &&str| line.to_lowercase().starts_with("usage");
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.take_while(|line| !is_usage(line)).collect::<Vec<_>>().join("; ")
}

/// Attaches a loop device with direct I/O to `image`, and sets up its queue like a disk's.
pub(crate) fn attach_loop(image: &Path, is_rotational: bool) -> Result<PathBuf, LabError> {
    let image = image.as_os_str();
    let arguments =
        [OsStr::new("--find"), OsStr::new("--show"), OsStr::new("--direct-io=on"), image];
    let node = PathBuf::from(run("losetup", &arguments)?);
    let set = |attribute: &str, value: &str| set_queue(&node, attribute, value);
    set("max_sectors_kb", &LARGEST_REQUEST_KB.to_string())?;
    set("rotational", if is_rotational { "1" } else { "0" })?;
    Ok(node)
}

pub(crate) fn set_queue(node: &Path, attribute: &str, value: &str) -> Result<(), LabError> {
    let path = queue_attribute(node, attribute);
    fs::write(&path, value).map_err(LabError::file(path))
}

pub(crate) fn queue_number(node: &Path, attribute: &str) -> Result<u64, LabError> {
    let path = queue_attribute(node, attribute);
    let number = fs::read_to_string(&path)
        .and_then(|text| text.trim().parse().map_err(std::io::Error::other));
    number.map_err(LabError::file(path))
}

pub(crate) fn queue_attribute(node: &Path, attribute: &str) -> PathBuf {
    let name = node.file_name().unwrap_or_default();
    Path::new("/sys/block").join(name).join("queue").join(attribute)
}

fn file_system(name: &str) -> Result<&'static FileSystem, LabError> {
    FILE_SYSTEMS.iter().find(|known| known.name == name).ok_or_else(|| {
        let names = FILE_SYSTEMS.map(|known| known.name).join(", ") + ", " + NO_FILE_SYSTEM;
        LabError::FileSystem(name.into(), names)
    })
}

/// Checks that a lab can have this file system here.
pub(crate) fn check_file_system(name: &str) -> Result<(), LabError> {
    if name == NO_FILE_SYSTEM {
        return Ok(());
    }
    let package = file_system(name)?.package;
    let tool = format!("mkfs.{name}");
    match Command::new(&tool).arg("-V").output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(LabError::NoTool { tool, package })
        }
        _ => Ok(()),
    }
}

/// Makes the file system of that name.
pub(crate) fn make_file_system(node: &Path, name: &str) -> Result<(), LabError> {
    let arguments = file_system(name)?.mkfs_arguments.iter().map(OsStr::new);
    run(&format!("mkfs.{name}"), &arguments.chain([node.as_os_str()]).collect::<Vec<_>>())?;
    Ok(())
}

/// The scheduler of a new loop device.
pub(crate) const NO_SCHEDULER: &str = "none";

/// Sets the I/O scheduler.
pub(crate) fn set_scheduler(node: &Path, name: &str) -> Result<(), LabError> {
    set_queue(node, "scheduler", name).map_err(|error| {
        match fs::read_to_string(queue_attribute(node, "scheduler")) {
            Ok(list) => LabError::Scheduler(name.into(), schedulers_in(&list)),
            Err(_) => error,
        }
    })
}

/// Parses `none [mq-deadline] kyber`; the one in brackets is in use.
pub(crate) fn schedulers_in(list: &str) -> String {
    list.split_whitespace().map(|name| name.trim_matches(['[', ']'])).collect::<Vec<_>>().join(", ")
}

pub(crate) fn mount(node: &Path, folder: &Path) -> Result<(), LabError> {
    run("mount", &[OsStr::new("-o"), OsStr::new("noatime"), node.as_os_str(), folder.as_os_str()])?;
    Ok(())
}

/// Waits a moment until no other program uses anything at or below one of `places`. The caller may have inherited an
/// open file.
pub(crate) fn await_users(places: &[PathBuf]) -> Result<(), LabError> {
    let places: Vec<&Path> = places.iter().map(PathBuf::as_path).collect();
    let mut users = Vec::new();
    for _ in 0..UNUSED_TRIES {
        users = users_of(&places);
        if users.is_empty() {
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
    Err(LabError::busy(places[0], &users))
}

/// Unmounts `folder`. If that fails, names the programs that have it or one of `nodes` open.
pub(crate) fn unmount(folder: &Path, nodes: &[PathBuf]) -> Result<(), LabError> {
    for _ in 0..UNUSED_TRIES {
        match rustix::mount::unmount(folder, UnmountFlags::empty()) {
            Ok(()) => return Ok(()),
            Err(Errno::BUSY) => thread::sleep(PAUSE),
            Err(error) => return Err(LabError::file(folder)(error.into())),
        }
    }
    let places: Vec<&Path> =
        [folder].into_iter().chain(nodes.iter().map(PathBuf::as_path)).collect();
    Err(LabError::busy(folder, &users_of(&places)))
}

/// Empties the page cache of a bare device.
pub(crate) fn flush(node: &Path) -> Result<(), LabError> {
    run("blockdev", &[OsStr::new("--flushbufs"), node.as_os_str()])?;
    Ok(())
}

pub(crate) fn detach_loop(node: &Path) -> Result<(), LabError> {
    run("losetup", &[OsStr::new("--detach"), node.as_os_str()])?;
    Ok(())
}

pub(crate) fn is_mounted(folder: &Path) -> bool {
    linux::table::read("/proc/self/mounts").is_ok_and(|table| is_mounted_in(&table, folder))
}

/// Whether a mount table lists `folder`. Names of labs need no escapes.
pub(crate) fn is_mounted_in(table: &str, folder: &Path) -> bool {
    let folder = folder.to_string_lossy();
    table.lines().any(|line| line.split(' ').nth(1) == Some(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_file_system_is_answered_with_the_known_ones() {
        let error = check_file_system("foo").unwrap_err().to_string();
        assert!(error.contains("\"foo\"") && error.contains("ext4, xfs, btrfs"), "{error}");
    }

    #[test]
    fn an_error_is_shown_without_the_usage() {
        let said = "Filesystem must be larger than 300MB.\nUsage: mkfs.xfs\n\t[-b size=num]\n";
        assert_eq!(complaint(said), "Filesystem must be larger than 300MB.");
        let said = "btrfs-progs v6.2\n\nERROR: '/dev/loop1' is too small\n";
        assert_eq!(complaint(said), "btrfs-progs v6.2; ERROR: '/dev/loop1' is too small");
    }

    #[test]
    fn schedulers_are_listed_as_they_are_typed() {
        assert_eq!(schedulers_in("none [mq-deadline] kyber\n"), "none, mq-deadline, kyber");
    }
}
