//! Steps at which tests have a process kill or stop itself. In a release there are none.

/// A step is reached. A process that was started with `BOWWAVE_DIE_AT=STEP` is killed there, as by `kill -9`. One with
/// `BOWWAVE_STOP_AT=STEP` is stopped, the first time, until it is sent SIGCONT.
#[cfg(debug_assertions)]
pub fn reach(step: &str) {
    use rustix::process::{Signal, getpid, kill_process};
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicBool, Ordering};
    static DIES_AT: LazyLock<Option<String>> =
        LazyLock::new(|| std::env::var("BOWWAVE_DIE_AT").ok());
    static STOPS_AT: LazyLock<Option<String>> =
        LazyLock::new(|| std::env::var("BOWWAVE_STOP_AT").ok());
    static HAS_STOPPED: AtomicBool = AtomicBool::new(false);
    if DIES_AT.as_deref() == Some(step) {
        let _ = kill_process(getpid(), Signal::KILL);
        // It takes effect before the call returns, or a moment later on another processor.
        std::thread::park();
    }
    if STOPS_AT.as_deref() == Some(step) && !HAS_STOPPED.swap(true, Ordering::Relaxed) {
        let _ = kill_process(getpid(), Signal::STOP);
        // Another thread may take the signal; this one is stopped, too, long before this is over.
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

/// Nothing.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn reach(_step: &str) {}
