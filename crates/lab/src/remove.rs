//! Removes a lab, or what is left of one. Relies on what is mounted and attached, not on `state.json`.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use linux::process::{self, Process};
use linux::program::is_bowwave_of_root;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};

use crate::claim::Claim;
use crate::control::Order;
use crate::error::LabError;
use crate::layers;
use crate::state::{self, FUSE, MOUNT_POINT, State};

/// Longest wait for the server's end. It frees gigabytes of an image in a second.
const MOST_TO_END: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// Removes the lab of that name, even if it is half made, damaged, or without its server.
///
/// # Errors
/// [`LabError::Busy`] if a program still has files open; the lab then stays as it is. [`LabError::Unknown`] if there is
/// none, [`LabError::AtWork`] if another command makes or removes it.
pub fn remove(name: &str) -> Result<(), LabError> {
    if !rustix::process::geteuid().is_root() {
        return Err(LabError::NotRoot);
    }
    clear(&Claim::of(name)?)
}

/// Clears away every lab whose server has died, unless a program still uses it. Such a lab is in the way of others:
/// while one exists, `mkfs.btrfs` fails on every loop device.
pub(crate) fn clear_dead() {
    for name in state::list() {
        let is_dead = || is_dead(&State::folder(&name).join(FUSE));
        // Once more when no other command can have renewed it.
        if is_dead()
            && let Ok(claim) = Claim::of(&name)
            && is_dead()
        {
            let _ = clear(&claim);
        }
    }
}

/// Whether the server of `fuse` has ended while its file system was mounted. The kernel then answers in its place.
fn is_dead(fuse: &Path) -> bool {
    let error = fs::metadata(fuse).err();
    error.and_then(|error| error.raw_os_error()) == Some(Errno::NOTCONN.raw_os_error())
}

/// Clears a lab's folder and everything that belongs to it. Continues after errors and returns the first. A lab in use
/// stays as it is.
pub(crate) fn clear(claim: &Claim) -> Result<(), LabError> {
    let own = claim.folder();
    let (fuse, mount_point) = (own.join(FUSE), own.join(MOUNT_POINT));
    let nodes = attached_below(&fuse);
    // Programs that wait for a device that hangs can now end. Writing dirty pages back should not take the slow
    // device's time.
    let _ = Order::Fast.give(&fuse);
    // Also whoever works in the server's folder: its file system must be unmounted, too.
    let places: Vec<PathBuf> = nodes.iter().chain([&fuse]).cloned().collect();
    let mut outcome = layers::await_users(&places);
    if outcome.is_ok() && layers::is_mounted(&mount_point) {
        outcome = layers::unmount(&mount_point, &nodes);
    }
    if matches!(outcome, Err(LabError::Busy { .. })) {
        let _ = Order::Timed.give(&fuse);
        return outcome;
    }
    for node in &nodes {
        // Where the lab was not removed in order, requests may be under way, for which this would wait.
        if outcome.is_ok() {
            let _ = layers::set_scheduler(node, layers::NO_SCHEDULER);
        }
        outcome = outcome.and(layers::detach_loop(node));
    }
    let server = server_of(&fuse);
    if layers::is_mounted(&fuse) {
        outcome = outcome.and(unmount_server(&fuse));
    } else if let Some(server) = &server {
        // A server that has not mounted yet would do so after everything is gone.
        let _ = pidfd_send_signal(server, Signal::KILL);
    }
    if let Some(server) = server.filter(|_| outcome.is_ok()) {
        wait_for_end(&server);
    }
    if layers::is_mounted(&fuse) {
        outcome = outcome.and(unmount_server(&fuse));
    }
    state::remove_folders(&own);
    outcome
}

/// Unmounts the server's folder.
fn unmount_server(fuse: &Path) -> Result<(), LabError> {
    let outcome = layers::unmount(fuse, &[]);
    if !matches!(outcome, Err(LabError::Busy { .. })) {
        return outcome;
    }
    // The `losetup` of a killed `lab up` ends only after the system call that attaches its device.
    let late = attached_below(fuse);
    late.iter().try_for_each(|node| layers::detach_loop(node))?;
    layers::unmount(fuse, &late)
}

/// Loop devices with an image below `fuse`.
fn attached_below(fuse: &Path) -> Vec<PathBuf> {
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let is_ours = |device: &fs::DirEntry| {
        let backing = fs::read_to_string(device.path().join("loop/backing_file"));
        backing.is_ok_and(|file| Path::new(file.trim_end()).starts_with(fuse))
    };
    devices.filter(is_ours).map(|device| Path::new("/dev").join(device.file_name())).collect()
}

/// The process that serves `fuse`, found by its program and arguments: a killed `lab up` has not recorded it.
fn server_of(fuse: &Path) -> Option<Process> {
    let serves = |pid: u32| {
        let process = Path::new("/proc").join(pid.to_string());
        is_bowwave_of_root(&process)
            && fs::read(process.join("cmdline")).is_ok_and(|line| is_serving(&line, fuse))
    };
    let pid = process::all().find(|pid| serves(*pid))?;
    let process = Process::open(pid).ok()?;
    // It may have ended, and its number may have been reused, before it was opened.
    serves(pid).then_some(process)
}

/// Whether a command line, in the format of `/proc/PID/cmdline`, is that of the server of `fuse`.
pub(crate) fn is_serving(command_line: &[u8], fuse: &Path) -> bool {
    let words: Vec<&[u8]> = command_line.split(|byte| *byte == 0).collect();
    let folder: [&[u8]; 2] = [b"--folder", fuse.as_os_str().as_bytes()];
    let is_serve = words.get(1..3).is_some_and(|verb| verb == [&b"lab"[..], b"serve"]);
    is_serve && words.windows(2).any(|pair| pair == folder)
}

/// Waits for the server's end. It ends when its folder is unmounted, but unmounts the folder once more itself (fuser
/// 0.18). By then no new lab may be in its place.
fn wait_for_end(server: &Process) {
    let mut ends = [PollFd::new(server, PollFlags::IN)];
    // After a timeout, a new lab of this name may fail once.
    let _ = poll(&mut ends, Some(&MOST_TO_END));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_by_its_arguments_in_their_places() {
        let fuse = Path::new("/run/bowwave/lab/one/fuse");
        let is_server = |words: &str| is_serving(words.replace(' ', "\0").as_bytes(), fuse);
        let serve = "lab serve --device hdd --size 1024";
        assert!(is_server(&format!("bowwave {serve} --folder /run/bowwave/lab/one/fuse ")));
        assert!(!is_server(&format!("bowwave {serve} --folder /run/bowwave/lab/two/fuse ")));
        assert!(!is_server(&format!("sh -c {serve} --folder /run/bowwave/lab/one/fuse ")));
        assert!(!is_server(&format!("bowwave {serve} /run/bowwave/lab/one/fuse ")));
        assert!(!is_server(""));
    }
}
