//! Waiting for a program's end, but not for ever.

use std::process::{Child, ExitStatus};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Detaching from the kernel takes a tenth of a second; on a loaded machine some.
const MOST: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

/// The status of a program that is to end; one that does not is killed, and the test fails.
pub(crate) fn wait(child: &mut Child) -> ExitStatus {
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).expect("it is ours");
    let has_ended = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&MOST));
    if has_ended != Ok(1) {
        let _ = child.kill();
        let _ = child.wait();
        panic!("process {} did not end in {} s", child.id(), MOST.tv_sec);
    }
    child.wait().expect("it ended")
}
