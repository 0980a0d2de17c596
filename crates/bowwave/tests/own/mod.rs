//! A process of a test's own, which ends with the test, also when that fails.

use std::io;
use std::ops::{Deref, DerefMut};
use std::process::{Child, Command, ExitStatus};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// The longest wait for a process to end. Detaching from the kernel takes a tenth of a second, some on a loaded
/// machine; a schedule of many readers takes minutes.
const MOST_WAITING: Timespec = Timespec { tv_sec: 300, tv_nsec: 0 };

/// Killed, by its number, when this is dropped.
pub(crate) struct Own(Child);

impl Own {
    pub(crate) fn start(command: &mut Command) -> Own {
        Own(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    /// Its status, once it has ended; if it does not, the test fails.
    pub(crate) fn wait(&mut self) -> io::Result<ExitStatus> {
        // After it has been waited for, its number may be another's.
        if let Some(status) = self.0.try_wait()? {
            return Ok(status);
        }
        let process = pidfd_open(Pid::from_child(&self.0), PidfdFlags::empty())?;
        let ended = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&MOST_WAITING))?;
        assert!(ended > 0, "process {} does not end", self.0.id());
        self.0.wait()
    }
}

impl Deref for Own {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Own {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // It may have ended, and been waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
