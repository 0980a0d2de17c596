//! Reads something by a thread, which may never be done: a path may lie on a server that does not answer.

use std::io::{self, PipeReader};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use rustix::event::epoll;

/// It is waited for for so long at most.
const MOST_READING: Duration = Duration::from_secs(10);

/// A thread that reads something.
pub(super) struct Reading<T> {
    told: Receiver<anyhow::Result<T>>,
    until: Instant,
    /// Readable when it is done, or something else has happened.
    news: OwnedFd,
    /// Closed at the other end when it is done.
    _ended: PipeReader,
}

impl<T: Send + 'static> Reading<T> {
    /// Starts the thread. `other` becomes readable if something else happens that has to be seen to.
    ///
    /// # Errors
    /// If there are no descriptors or threads left.
    pub(super) fn begin(
        other: BorrowedFd<'_>,
        read: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
    ) -> io::Result<Self> {
        let (ended, until_then) = io::pipe()?;
        let news = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for one in [ended.as_fd(), other] {
            epoll::add(&news, one, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        }
        let (tell, told) = mpsc::channel();
        let read = move || {
            let _ = tell.send(read());
            drop(until_then);
        };
        thread::Builder::new().name("bowwave-settings".into()).spawn(read)?;
        Ok(Reading { told, until: Instant::now() + MOST_READING, news, _ended: ended })
    }

    /// Readable when it is done, or something else has happened.
    pub(super) fn readiness(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }

    /// How long it may still take.
    pub(super) fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// What was read; `None` if that still takes time, and may.
    ///
    /// # Errors
    /// If it cannot be read, or not in time.
    pub(super) fn result(&self) -> Option<anyhow::Result<T>> {
        match self.told.try_recv() {
            Ok(read) => Some(read),
            Err(TryRecvError::Disconnected) => Some(Err(anyhow!("the settings cannot be read"))),
            Err(TryRecvError::Empty) if self.left().is_zero() => Some(Err(anyhow!(
                "the settings have not been read for {} s; does the configuration lie on a server \
                 that does not answer?",
                MOST_READING.as_secs()
            ))),
            Err(TryRecvError::Empty) => None,
        }
    }
}
