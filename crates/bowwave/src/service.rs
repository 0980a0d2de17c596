//! Tells systemd how the daemon is doing, if systemd started it (sd_notify(3)).

use std::time::Duration;

use sd_notify::NotifyState;

/// Without a watchdog nobody waits for a sign of life.
const RARELY: Duration = Duration::from_secs(3600);

/// Where systemd listens, if it does.
pub(crate) struct Service {
    pulse: Duration,
}

impl Service {
    pub(crate) fn new() -> Self {
        // A third, so that one late sign of life is no reason to end it.
        let pulse = sd_notify::watchdog_enabled().map_or(RARELY, |most| most / 3);
        Service { pulse }
    }

    /// How often [`is_alive`](Self::is_alive) is to be called.
    pub(crate) fn pulse(&self) -> Duration {
        self.pulse
    }

    pub(crate) fn is_ready(&self) {
        // READY=1 alone does not start systemd's watchdog anew.
        tell(&[NotifyState::Ready, NotifyState::Watchdog]);
    }

    pub(crate) fn is_alive(&self) {
        tell(&[NotifyState::Watchdog]);
    }

    /// Until it is ready again.
    pub(crate) fn is_reloading(&self) {
        // systemd from 253 on compares this time with that of its own request.
        match NotifyState::monotonic_usec_now() {
            Ok(now) => tell(&[NotifyState::Reloading, now, NotifyState::Watchdog]),
            Err(_) => tell(&[NotifyState::Reloading, NotifyState::Watchdog]),
        }
    }

    pub(crate) fn is_stopping(&self) {
        tell(&[NotifyState::Stopping]);
    }
}

/// If systemd does not listen, it will notice by itself; reads are managed all the same.
fn tell(states: &[NotifyState<'_>]) {
    let _ = sd_notify::notify(states);
}
