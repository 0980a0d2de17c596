//! The I/O priority of processes (`ionice`). The kernel gives each request the priority of the thread that submits it.
#![allow(unsafe_code)]

use rustix::process::{Pid, getpriority_process};

/// `IOPRIO_WHO_PROCESS` of the kernel's ioprio.h; it names a thread, and 0 the calling one.
const OF_THREAD: libc::c_int = 1;
const CLASS_SHIFT: u32 = 13;

/// How urgent a process's requests are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoPriority {
    class: Class,
    /// Within the class, from 0, the most urgent, to 7.
    level: libc::c_long,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Class {
    RealTime = 1,
    BestEffort = 2,
    Idle = 3,
}

impl IoPriority {
    /// That of a process. Without a class of its own, it is the one that goes with its place on the processor, as in the
    /// kernel. `None` if the process has ended.
    pub fn of(process: u32) -> Option<Self> {
        let process = process as libc::pid_t;
        // SAFETY: both calls take numbers only.
        let (own, policy) = unsafe {
            (
                libc::syscall(libc::SYS_ioprio_get, OF_THREAD, process),
                libc::sched_getscheduler(process),
            )
        };
        if own < 0 || policy < 0 {
            return None;
        }
        let class = match (own >> CLASS_SHIFT, policy & !libc::SCHED_RESET_ON_FORK) {
            (1, _) => Class::RealTime,
            (2, _) => Class::BestEffort,
            (3, _) | (_, libc::SCHED_IDLE) => Class::Idle,
            (_, libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE) => Class::RealTime,
            _ => Class::BestEffort,
        };
        let has_class = own >> CLASS_SHIFT != 0;
        let level = if has_class { own & 7 } else { level_of(nice(process)?) };
        Some(IoPriority { class, level })
    }

    /// Whether the device is to serve it only when nobody else asks.
    pub fn is_idle(self) -> bool {
        self.class == Class::Idle
    }

    fn number(self) -> libc::c_long {
        (self.class as libc::c_long) << CLASS_SHIFT | self.level
    }
}

fn nice(process: libc::pid_t) -> Option<i32> {
    getpriority_process(Pid::from_raw(process)).ok()
}

/// The level of a process with this `nice` value, from -20 to 19.
fn level_of(nice: i32) -> libc::c_long {
    libc::c_long::from((nice + 20) / 5)
}

/// Makes this thread read with the I/O priority of a process. If the process has ended, or that priority is not
/// allowed, the thread reads with the usual one.
pub fn take_priority_of(process: u32) {
    let usual = 0;
    let set = |number: libc::c_long| {
        // SAFETY: the call takes numbers only.
        unsafe { libc::syscall(libc::SYS_ioprio_set, OF_THREAD, 0 as libc::pid_t, number) }
    };
    let wanted = IoPriority::of(process).map_or(usual, IoPriority::number);
    if set(wanted) < 0 {
        set(usual);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `number` is for this thread, in a thread that has taken the priority of `process`.
    fn taken_from(process: u32) -> IoPriority {
        let take = move || {
            take_priority_of(process);
            IoPriority::of(0).expect("this thread runs")
        };
        std::thread::spawn(take).join().expect("it ends")
    }

    fn begun_by(starter: &[&str]) -> std::process::Child {
        let mut command = std::process::Command::new(starter[0]);
        let child =
            command.args(&starter[1..]).arg("cat").stdin(std::process::Stdio::piped()).spawn();
        child.expect("a tool of every Linux system")
    }

    /// The priority once the starter has become `cat`.
    fn priority_of(starter: &[&str]) -> IoPriority {
        let mut child = begun_by(starter);
        let comm = format!("/proc/{}/comm", child.id());
        while std::fs::read_to_string(&comm).is_ok_and(|name| name.trim() != "cat") {
            std::thread::yield_now();
        }
        let found = (IoPriority::of(child.id()).expect("it runs"), taken_from(child.id()));
        drop(child.stdin.take());
        child.wait().expect("it ends");
        assert_eq!(found.0, found.1, "the thread takes it");
        found.0
    }

    #[test]
    fn a_process_has_the_priority_that_ionice_gave_it_or_that_goes_with_nice() {
        let best_effort = |level| IoPriority { class: Class::BestEffort, level };
        assert_eq!(priority_of(&["ionice", "-c", "2", "-n", "6"]), best_effort(6));
        assert_eq!(priority_of(&["nice", "-n", "19"]), best_effort(7));
        assert!(priority_of(&["ionice", "-c", "3"]).is_idle());
        assert!(priority_of(&["chrt", "--idle", "0"]).is_idle());
        assert!(priority_of(&["chrt", "--reset-on-fork", "--idle", "0"]).is_idle());
    }

    #[test]
    fn who_has_ended_leaves_a_thread_the_usual_priority() {
        let mut ended = begun_by(&["nice", "-n", "19"]);
        drop(ended.stdin.take());
        ended.wait().expect("it ends");
        assert_eq!(IoPriority::of(ended.id()), None);
        let then = || {
            let mut nicest = begun_by(&["ionice", "-c", "3"]);
            take_priority_of(nicest.id());
            drop(nicest.stdin.take());
            nicest.wait().expect("it ends");
            take_priority_of(ended.id());
            IoPriority::of(0)
        };
        let usual = IoPriority::of(0);
        assert_eq!(std::thread::scope(|scope| scope.spawn(then).join().expect("it ends")), usual);
    }
}
