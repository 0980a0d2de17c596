//! Reads the settings in a thread, since a path may lie on a server that never answers.
//!
//! ```text
//!   main: serve_for(readiness) <---- epoll <--+-- pipe, closed by the thread when it is done
//!            result <--- channel              '-- signals
//! ```

use std::io::{self, PipeReader};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use rustix::event::epoll;

/// Longer than `PATHS_TIMEOUT`, after which the thread itself says which path does not answer.
const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Reading<T> {
    outcome: Receiver<anyhow::Result<T>>,
    until: Instant,
    epoll: OwnedFd,
    /// The thread closes the other end when it is done.
    _ended: PipeReader,
}

impl<T: Send + 'static> Reading<T> {
    /// Starts the thread. `other` also makes [`readiness`](Self::readiness) readable.
    ///
    /// # Errors
    /// If there are no descriptors or threads left.
    pub(super) fn begin(
        other: BorrowedFd<'_>,
        read: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
    ) -> io::Result<Self> {
        let (ended, until_then) = io::pipe()?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for one in [ended.as_fd(), other] {
            epoll::add(&epoll, one, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        }
        let (sender, outcome) = mpsc::channel();
        let read = move || {
            let _ = sender.send(read());
            drop(until_then);
        };
        thread::Builder::new().name("bowwave-settings".into()).spawn(read)?;
        Ok(Reading { outcome, until: Instant::now() + TIMEOUT, epoll, _ended: ended })
    }

    /// Readable when the thread is done, or when `other` is readable.
    pub(super) fn readiness(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// The time until it fails.
    pub(super) fn time_left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// What was read; `None` while the thread still reads.
    ///
    /// # Errors
    /// If reading fails or takes too long.
    pub(super) fn result(&self) -> Option<anyhow::Result<T>> {
        match self.outcome.try_recv() {
            Ok(read) => Some(read),
            Err(TryRecvError::Disconnected) => Some(Err(anyhow!("the settings cannot be read"))),
            Err(TryRecvError::Empty) if self.time_left().is_zero() => Some(Err(anyhow!(
                "the settings could not be read within {} s; does the configuration lie on a server \
                 that does not answer?",
                TIMEOUT.as_secs()
            ))),
            Err(TryRecvError::Empty) => None,
        }
    }
}
