//! Stopping early: a signal is noted, the run under way ends, and everything is cleaned up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::DemoError;

/// Set once SIGINT or SIGTERM has come.
#[derive(Clone)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn on_signals() -> Self {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [libc::SIGINT, libc::SIGTERM] {
            // Without the handler the signal ends the process, and `lab down --all` cleans up.
            let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
        }
        Stop(flag)
    }

    pub(crate) fn check(&self) -> Result<(), DemoError> {
        if self.0.load(Ordering::Relaxed) { Err(DemoError::Stopped) } else { Ok(()) }
    }
}
