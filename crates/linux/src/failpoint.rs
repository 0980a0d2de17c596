//! Steps at which tests have a process kill itself. In a release there are none.

/// A step is reached. A process that was started with `BOWWAVE_DIE_AT=STEP` is killed there, as by `kill -9`.
#[cfg(debug_assertions)]
pub fn reach(step: &str) {
    use std::sync::OnceLock;
    static DIES_AT: OnceLock<Option<String>> = OnceLock::new();
    let dies_at = DIES_AT.get_or_init(|| std::env::var("BOWWAVE_DIE_AT").ok());
    if dies_at.as_deref() == Some(step) {
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        // It takes effect before the call returns, or a moment later on another processor.
        std::thread::park();
    }
}

/// Nothing.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn reach(_step: &str) {}
