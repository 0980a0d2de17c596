//! The CPU time of a process, to the nanosecond.
#![allow(unsafe_code)]

use std::time::Duration;

use rustix::process::Pid;

/// User and system time of all its threads, ended ones included; `None` once the process is gone.
pub(crate) fn cpu_time(pid: Pid) -> Option<Duration> {
    let mut clock = 0;
    // SAFETY: the pointer is to a clock id of ours.
    if unsafe { libc::clock_getcpuclockid(pid.as_raw_nonzero().get(), &mut clock) } != 0 {
        return None;
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of ours.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return None;
    }
    Some(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn working_takes_time_and_a_process_that_is_not_there_has_none() {
        let own = rustix::process::getpid();
        let before = cpu_time(own).expect("it is there");
        while cpu_time(own).is_some_and(|now| now < before + Duration::from_millis(1)) {}
        // One more than the kernel's largest process id.
        let nobody = Pid::from_raw((1 << 22) + 1).expect("a positive number");
        assert_eq!(cpu_time(nobody), None);
    }
}
