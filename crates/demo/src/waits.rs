//! How long threads waited for a processor: on a busy machine a part of every time measured.

use std::fs;
use std::path::Path;

/// The calling thread since its start, in seconds; 0 where the kernel does not say.
pub(crate) fn own_thread() -> f64 {
    thread(Path::new("/proc/thread-self"))
}

/// The thread of a process that waited longest, in seconds. A process that has ended and was not waited for
/// yet counts.
pub(crate) fn process(pid: u32) -> f64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads.map(|entry| thread(&entry.path())).fold(0.0, f64::max)
}

/// The kernel's workers, which carry requests to a lab's server, in seconds.
pub(crate) fn kernel_workers() -> f64 {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_worker = |folder: &Path| {
        fs::read_to_string(folder.join("comm")).is_ok_and(|name| name.starts_with("kworker/"))
    };
    processes.map(|entry| entry.path()).filter(|path| is_worker(path)).map(|p| thread(&p)).sum()
}

fn thread(folder: &Path) -> f64 {
    let text = fs::read_to_string(folder.join("schedstat")).unwrap_or_default();
    waited(&text).unwrap_or(0.0)
}

/// The second field: nanoseconds in a run queue.
fn waited(schedstat: &str) -> Option<f64> {
    Some(schedstat.split_whitespace().nth(1)?.parse::<u64>().ok()? as f64 * 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_the_second_field() {
        assert_eq!(waited("498844 1500000000 1"), Some(1.5));
        assert_eq!(waited(""), None);
    }

    #[test]
    fn a_process_that_has_ended_can_be_asked_until_it_is_waited_for() {
        let mut child = std::process::Command::new("true").spawn().expect("it is everywhere");
        assert!(process(child.id()) >= 0.0);
        child.wait().expect("it ends");
        assert_eq!(process(child.id()), 0.0);
    }
}
