//! Tells systemd how the daemon is doing, if systemd started it (sd_notify(3)).

use std::time::Duration;

use sd_notify::NotifyState;

/// The interval of signs of life without a watchdog, which nobody waits for.
const RARELY: Duration = Duration::from_secs(3600);

pub(crate) struct Service {
    alive_interval: Duration,
}

impl Service {
    pub(crate) fn new() -> Self {
        // A third of the watchdog's time, so that one late sign of life does not end the daemon.
        let alive_interval = sd_notify::watchdog_enabled().map_or(RARELY, |timeout| timeout / 3);
        Service { alive_interval }
    }

    /// How often to call [`notify_alive`](Self::notify_alive).
    pub(crate) fn alive_interval(&self) -> Duration {
        self.alive_interval
    }

    pub(crate) fn notify_ready(&self) {
        // READY=1 alone does not restart systemd's watchdog.
        notify(&[NotifyState::Ready, NotifyState::Watchdog]);
    }

    pub(crate) fn notify_alive(&self) {
        notify(&[NotifyState::Watchdog]);
    }

    /// Call [`notify_ready`](Self::notify_ready) when done.
    pub(crate) fn notify_reloading(&self) {
        // systemd from 253 on compares this time with that of its own request.
        match NotifyState::monotonic_usec_now() {
            Ok(now) => notify(&[NotifyState::Reloading, now, NotifyState::Watchdog]),
            Err(_) => notify(&[NotifyState::Reloading, NotifyState::Watchdog]),
        }
    }

    pub(crate) fn notify_stopping(&self) {
        notify(&[NotifyState::Stopping]);
    }
}

/// Ignores failures: if systemd does not listen, reads are managed nonetheless.
fn notify(states: &[NotifyState<'_>]) {
    let _ = sd_notify::notify(states);
}
