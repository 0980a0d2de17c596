//! Measuring a disk in a process of its own.
//!
//! A read past the page cache cannot be interrupted, and a process ends only when all its threads have. So a disk that
//! takes ten seconds a read would hold up the end of whoever measures it.

use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use linux::mounts::Disk;
use readahead::{DeviceCost, DeviceNumber};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use super::probe;

/// Who measures disks.
#[derive(Clone, Debug)]
pub enum Prober {
    /// A thread of this process.
    Thread,
    /// A process that is begun with these words; it has to call [`main`].
    Process {
        /// The program.
        program: PathBuf,
        /// Its first arguments; the disk's number and this process's follow.
        arguments: Vec<String>,
    },
}

impl Prober {
    /// Measures the disk; what cannot be told apart is taken from a guess.
    ///
    /// # Errors
    /// If the disk cannot be opened or read, or is too small, or no process can be started.
    pub(crate) fn measure(&self, disk: &Disk) -> io::Result<DeviceCost> {
        let Prober::Process { program, arguments } = self else { return measure(disk) };
        let mut command = Command::new(program);
        command.args(arguments).arg(disk.dev.to_string()).arg(std::process::id().to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let mut told = String::new();
        let read =
            child.stdout.take().map_or(Ok(0), |mut told_by| told_by.read_to_string(&mut told));
        // `bowwave run` waits for all its children, and so may have come first.
        let _ = child.wait();
        read?;
        serde_json::from_str(&told).map_err(io::Error::other)
    }
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
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Pid::from_raw(parent as i32) {
        return Err(io::Error::other("whoever wanted to know has ended"));
    }
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
        let words = |script: String| Prober::Process {
            program: "sh".into(),
            arguments: vec!["-c".into(), script, "sh".into()],
        };
        let told = words(format!("test $1 = 7:1 && test $2 = $PPID && echo '{text}'"));
        assert_eq!(told.measure(&disk()).ok(), Some(cost));
        for script in ["echo nonsense", "exit 1", "kill -9 $$"] {
            assert!(words(script.into()).measure(&disk()).is_err(), "{script}");
        }
    }
}
