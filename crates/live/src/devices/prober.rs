//! Measures a disk in a helper process: nobody can interrupt a direct read, which may take 10 s, so it would keep this
//! process from ending.

use std::io::{self, PipeReader, Read};
use std::process::Stdio;
use std::time::Duration;

use linux::mounts::Disk;
use readahead::{DeviceCost, DeviceNumber};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::probe;
use crate::helper::{self, Helper};

/// The subcommand that runs [`main`].
const PROBE: &str = "probe";

/// Has `helper` measure the disk, until the other end of `until` is closed.
///
/// # Errors
/// If the disk cannot be measured, or the helper cannot be started.
pub(crate) fn measure_by(
    helper: &Helper,
    disk: &Disk,
    until: PipeReader,
) -> io::Result<DeviceCost> {
    let mut command = helper.command(PROBE);
    command.arg(disk.dev.to_string());
    command.stdin(until).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let mut output = String::new();
    let read = child.stdout.take().map_or(Ok(0), |mut stdout| stdout.read_to_string(&mut output));
    // An error is no news: `bowwave run` waits for all its children and may have reaped this one.
    let _ = child.wait();
    read?;
    serde_json::from_str(&output).map_err(io::Error::other)
}

/// The helper process: measures the disk with this number, and returns what to write to standard output. Ends with
/// `parent`, and when the other end of standard input is closed while the disk is not idle.
///
/// # Errors
/// If the disk cannot be measured, or the parent has ended, or nobody waits for the measurement.
pub fn main(dev: DeviceNumber, parent: u32) -> io::Result<String> {
    helper::die_with_parent(parent)?;
    let disk = Disk::of(dev).ok_or(io::ErrorKind::NotFound)?;
    Ok(serde_json::to_string(&probe::measure(&disk, &super::guess(&disk), pause)?)?)
}

/// Waits for `time`.
///
/// # Errors
/// If the other end of standard input is closed.
fn pause(time: Duration) -> io::Result<()> {
    let (until, time) = (io::stdin(), Timespec::try_from(time).map_err(io::Error::other)?);
    match poll(&mut [PollFd::new(&until, PollFlags::empty())], Some(&time)) {
        Ok(0) => Ok(()),
        _ => Err(io::Error::other("nobody waits for the measurement any more")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> Disk {
        let (dev, sequence) = (DeviceNumber { major: 7, minor: 1 }, String::new());
        Disk { dev, sysfs: "/sys/block/none".into(), name: "none".into(), sequence }
    }

    fn measure(helper: &Helper) -> io::Result<DeviceCost> {
        let (until, _open) = io::pipe()?;
        measure_by(helper, &disk(), until)
    }

    #[test]
    fn the_helper_ends_when_nobody_waits_for_it() {
        let (until, open) = io::pipe().expect("a pipe");
        // It ends at the end of its standard input.
        let helper = Helper {
            program: "sh".into(),
            arguments: vec!["-c".into(), "cat".into(), "sh".into()],
        };
        drop(open);
        assert!(measure_by(&helper, &disk(), until).is_err());
    }

    #[test]
    fn the_helpers_output_is_the_measurement() {
        let cost = DeviceCost { latency_s: 0.5, bandwidth: 1e6, concurrency: 2.0 };
        let text = serde_json::to_string(&cost).expect("JSON");
        let words = |script: String| Helper {
            program: "sh".into(),
            arguments: vec!["-c".into(), script, "sh".into()],
        };
        let helper =
            words(format!("test $1 = probe && test $2 = $PPID && test $3 = 7:1 && echo '{text}'"));
        assert_eq!(measure(&helper).ok(), Some(cost));
        for script in ["echo nonsense", "exit 1", "kill -9 $$"] {
            assert!(measure(&words(script.into())).is_err(), "{script}");
        }
    }
}
