//! Measuring a disk in a process of its own.
//!
//! A disk that takes ten seconds a read would hold up the end of whoever measures it.

use std::io::{self, Read};
use std::process::Stdio;

use linux::mounts::Disk;
use readahead::{DeviceCost, DeviceNumber};

use super::probe;
use crate::helper::{self, Helper};

/// The name of the job.
const PROBE: &str = "probe";

/// Has `helper` measure the disk; what cannot be told apart is taken from a guess.
///
/// # Errors
/// If the disk cannot be opened or read, or is too small, or no process can be started.
pub(crate) fn measure_by(helper: &Helper, disk: &Disk) -> io::Result<DeviceCost> {
    let Some(mut command) = helper.command(PROBE) else { return measure(disk) };
    command.arg(disk.dev.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let mut told = String::new();
    let read = child.stdout.take().map_or(Ok(0), |mut told_by| told_by.read_to_string(&mut told));
    // `bowwave run` waits for all its children, and so may have come first.
    let _ = child.wait();
    read?;
    serde_json::from_str(&told).map_err(io::Error::other)
}

fn measure(disk: &Disk) -> io::Result<DeviceCost> {
    probe::measure(disk, &super::guess(disk))
}

/// What the process does: measures the disk of that number, and gives what is to be written to standard output. It ends
/// with `parent`, which has started it.
///
/// # Errors
/// As measuring; or if the parent has ended.
pub fn main(dev: DeviceNumber, parent: u32) -> io::Result<String> {
    helper::die_with_parent(parent)?;
    let disk = Disk::of(dev).ok_or(io::ErrorKind::NotFound)?;
    Ok(serde_json::to_string(&measure(&disk)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> Disk {
        let (dev, sequence) = (DeviceNumber { major: 7, minor: 1 }, String::new());
        Disk { dev, sysfs: "/sys/block/none".into(), name: "none".into(), sequence }
    }

    #[test]
    fn what_another_process_tells_is_what_is_measured() {
        let cost = DeviceCost { latency_s: 0.5, bandwidth: 1e6, concurrency: 2.0 };
        let text = serde_json::to_string(&cost).expect("JSON");
        let words = |script: String| Helper::Process {
            program: "sh".into(),
            arguments: vec!["-c".into(), script, "sh".into()],
        };
        let told =
            words(format!("test $1 = probe && test $2 = $PPID && test $3 = 7:1 && echo '{text}'"));
        assert_eq!(measure_by(&told, &disk()).ok(), Some(cost));
        for script in ["echo nonsense", "exit 1", "kill -9 $$"] {
            assert!(measure_by(&words(script.into()), &disk()).is_err(), "{script}");
        }
    }
}
