//! Does work that may never end, such as asking a server, in a thread that is left behind if it takes too long.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Does `work` in a thread, and waits up to `limit` for its result.
///
/// # Errors
/// `TimedOut` if it takes longer, or another error if no thread can be started.
pub fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (tell, told) = mpsc::channel();
    // Nobody may be waiting any more.
    let work = move || drop(tell.send(work()));
    thread::Builder::new().name("bowwave-limited".into()).spawn(work)?;
    told.recv_timeout(limit).map_err(|error| match error {
        RecvTimeoutError::Timeout => io::ErrorKind::TimedOut.into(),
        RecvTimeoutError::Disconnected => io::Error::other("the thread has failed"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_too_long_is_left_behind() {
        assert_eq!(within(Duration::from_secs(60), || 7).ok(), Some(7));
        let (_keep, never) = mpsc::channel::<()>();
        let late = within(Duration::from_millis(10), move || never.recv().is_ok());
        assert_eq!(late.map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
    }
}
