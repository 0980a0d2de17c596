//! How long threads waited for a processor: on a busy machine, a part of every time measured.

use std::fs;
use std::ops::{Add, Sub};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Waking takes up to this long on an idle virtual machine, too.
const WAKING: Duration = Duration::from_micros(30);

/// Waiting of one thread or of several, as the kernel counts it (`schedstat`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    ns: u64,
    /// Number of waits.
    times: u64,
}

impl Waits {
    /// A total of `time` in `times` waits.
    pub fn of(time: Duration, times: u64) -> Self {
        Waits { ns: time.as_nanos() as u64, times }
    }

    /// Total, in seconds.
    pub fn seconds(self) -> f64 {
        self.ns as f64 * 1e-9
    }

    /// What other programs caused, in seconds: without the time that waking takes on an idle machine.
    pub fn beyond_waking_s(self) -> f64 {
        let waking = WAKING.as_nanos() as u64 * self.times;
        self.ns.saturating_sub(waking) as f64 * 1e-9
    }
}

impl Add for Waits {
    type Output = Waits;

    fn add(self, other: Waits) -> Waits {
        Waits { ns: self.ns + other.ns, times: self.times + other.times }
    }
}

/// Since an earlier reading. A thread that has ended meanwhile makes it less, but never negative.
impl Sub for Waits {
    type Output = Waits;

    fn sub(self, earlier: Waits) -> Waits {
        Waits {
            ns: self.ns.saturating_sub(earlier.ns),
            times: self.times.saturating_sub(earlier.times),
        }
    }
}

/// The calling thread since its start; nothing if the kernel does not tell.
pub fn own_thread() -> Waits {
    thread(Path::new("/proc/thread-self"))
}

/// The thread of a process that waited longest. Works until the process is waited for.
pub fn process(pid: u32) -> Waits {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let waits = threads.map(|entry| thread(&entry.path()));
    waits.max_by_key(|waits| waits.ns).unwrap_or_default()
}

/// All of the kernel's workers. They carry requests to a lab's server, to other machines, and to volumes that are
/// encrypted.
pub fn kernel_workers() -> Waits {
    let is_worker = |folder: &PathBuf| {
        fs::read_to_string(folder.join("comm")).is_ok_and(|name| name.starts_with("kworker/"))
    };
    let folders = crate::process::all().map(|pid| Path::new("/proc").join(pid.to_string()));
    folders.filter(is_worker).map(|folder| thread(&folder)).fold(Waits::default(), Waits::add)
}

fn thread(folder: &Path) -> Waits {
    let text = fs::read_to_string(folder.join("schedstat")).unwrap_or_default();
    parse(&text).unwrap_or_default()
}

/// `nanoseconds-running nanoseconds-waiting times-run`
fn parse(schedstat: &str) -> Option<Waits> {
    let mut fields = schedstat.split_whitespace().skip(1).map(str::parse);
    Some(Waits { ns: fields.next()?.ok()?, times: fields.next()?.ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_the_second_field_and_how_often_the_third() {
        let waits = parse("498844 1500000000 10").expect("three numbers");
        assert_eq!(waits.seconds(), 1.5);
        assert!((waits.beyond_waking_s() - 1.4997).abs() < 1e-9);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn waking_on_an_idle_machine_is_no_waiting_for_others() {
        let idle = parse("0 20000 1").expect("three numbers");
        assert_eq!(idle.beyond_waking_s(), 0.0);
        assert_eq!((idle - (idle + idle)).seconds(), 0.0, "a worker has ended");
    }

    #[test]
    fn a_process_that_has_ended_can_be_asked_until_it_is_waited_for() {
        let mut child = std::process::Command::new("true").spawn().expect("it is everywhere");
        assert!(process(child.id()).seconds() >= 0.0);
        child.wait().expect("it ends");
        assert_eq!(process(child.id()), Waits::default());
    }
}
