//! The layers above the server: loop device, file system, mount; with the system's own tools.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::LabError;

/// The window that stock kernels start with, in KiB; loop devices come with a larger one, which is
/// put back whenever the queue's limits change.
pub(crate) const STOCK_READ_AHEAD_KB: u64 = 128;

/// Requests of at most what FUSE carries, so that none is cut into unequal halves.
const LARGEST_REQUEST_KB: u64 = 1024;

/// Runs a tool; gives its standard output.
pub(crate) fn run<S: AsRef<OsStr>>(tool: &str, arguments: &[S]) -> Result<String, LabError> {
    let command = || {
        let words = arguments.iter().map(|argument| argument.as_ref().to_string_lossy());
        std::iter::once(tool.into()).chain(words).collect::<Vec<_>>().join(" ")
    };
    let output = Command::new(tool).args(arguments).output().map_err(|error| LabError::Tool {
        command: command(),
        reason: format!("{error}; is the package that has {tool} installed?"),
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(LabError::Tool { command: command(), reason })
}

/// Attaches a loop device with direct I/O to `image` and sets its queue as a disk's would be.
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

pub(crate) fn queue_attribute(node: &Path, attribute: &str) -> PathBuf {
    let name = node.file_name().unwrap_or_default();
    Path::new("/sys/block").join(name).join("queue").join(attribute)
}

/// Makes a file system without background work that would disturb a measurement.
pub(crate) fn make_file_system(node: &Path, fs_type: &str) -> Result<(), LabError> {
    let node = node.as_os_str();
    match fs_type {
        "ext4" => {
            let arguments = ["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"];
            let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).chain([node]).collect();
            run("mkfs.ext4", &arguments)?;
        }
        other => {
            run(&format!("mkfs.{other}"), &[OsStr::new("-f"), OsStr::new("-q"), node])?;
        }
    }
    Ok(())
}

pub(crate) fn mount(node: &Path, folder: &Path) -> Result<(), LabError> {
    run("mount", &[OsStr::new("-o"), OsStr::new("noatime"), node.as_os_str(), folder.as_os_str()])?;
    Ok(())
}

pub(crate) fn unmount(folder: &Path) -> Result<(), LabError> {
    run("umount", &[folder.as_os_str()])?;
    Ok(())
}

pub(crate) fn detach_loop(node: &Path) -> Result<(), LabError> {
    run("losetup", &[OsStr::new("--detach"), node.as_os_str()])?;
    Ok(())
}

pub(crate) fn is_mounted(folder: &Path) -> bool {
    let Ok(table) = fs::read_to_string("/proc/self/mounts") else {
        return false;
    };
    let folder = folder.to_string_lossy();
    table.lines().any(|line| line.split(' ').nth(1) == Some(&folder))
}
