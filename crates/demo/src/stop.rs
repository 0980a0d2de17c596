//! Stops early: a signal makes a pipe readable, and every wait sees that. Everything is removed on the way out.

use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::error::DemoError;

/// Becomes readable once a signal to end the program has come.
pub(crate) struct Stop {
    signals: PipeReader,
}

impl Stop {
    /// Catches SIGINT, SIGTERM and SIGHUP from now on, but those that are ignored, as SIGHUP under `nohup`.
    pub(crate) fn on_signals() -> io::Result<Self> {
        let (signals, writer) = io::pipe()?;
        for signal in linux::signals::not_ignored(linux::signals::ENDING) {
            let writer: OwnedFd = writer.try_clone()?.into();
            signal_hook::low_level::pipe::register(signal, writer)?;
        }
        Ok(Stop { signals })
    }

    pub(crate) fn is_asked_for(&self) -> bool {
        let mut waits = [PollFd::new(&self.signals, PollFlags::IN)];
        matches!(poll(&mut waits, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(1..))
    }

    pub(crate) fn check(&self) -> Result<(), DemoError> {
        if self.is_asked_for() { Err(DemoError::Stopped) } else { Ok(()) }
    }

    /// Reads an answer from `stream`, up to the end of a line or of the stream, unless stopped first.
    pub(crate) fn read_line(&self, stream: &mut (impl Read + AsFd)) -> Result<Vec<u8>, DemoError> {
        self.read_until(stream, |line| line.ends_with(b"\n"))
    }

    /// Reads `stream` to its end, unless stopped first.
    pub(crate) fn read_to_end(
        &self,
        stream: &mut (impl Read + AsFd),
    ) -> Result<Vec<u8>, DemoError> {
        self.read_until(stream, |_| false)
    }

    fn read_until(
        &self,
        stream: &mut (impl Read + AsFd),
        is_all: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<u8>, DemoError> {
        let mut all = Vec::new();
        let mut part = [0; 4096];
        loop {
            let mut waits =
                [PollFd::new(&*stream, PollFlags::IN), PollFd::new(&self.signals, PollFlags::IN)];
            match poll(&mut waits, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(DemoError::file("pipe")(error.into())),
            }
            let has_ended_or_more = !waits[0].revents().is_empty();
            self.check()?;
            if has_ended_or_more {
                match stream.read(&mut part).map_err(DemoError::file("pipe"))? {
                    0 => return Ok(all),
                    count => all.extend_from_slice(&part[..count]),
                }
                if is_all(&all) {
                    return Ok(all);
                }
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write;

    use super::*;

    /// Does what a signal would do.
    pub(crate) fn stop() -> (Stop, io::PipeWriter) {
        let (signals, writer) = io::pipe().expect("a pipe");
        (Stop { signals }, writer)
    }

    #[test]
    fn a_stream_is_read_to_its_end() {
        let (stop, _signal) = stop();
        let (mut stream, mut writer) = io::pipe().expect("a pipe");
        writer.write_all(b"all of it").expect("room in the pipe");
        drop(writer);
        assert_eq!(stop.read_to_end(&mut stream).ok().as_deref(), Some(&b"all of it"[..]));
    }

    #[test]
    fn an_answer_is_a_line() {
        let (stop, _signal) = stop();
        let (mut stream, mut writer) = io::pipe().expect("a pipe");
        writer.write_all(b"an answer\n").expect("room in the pipe");
        assert_eq!(stop.read_line(&mut stream).ok().as_deref(), Some(&b"an answer\n"[..]));
        drop(writer);
        assert_eq!(stop.read_line(&mut stream).ok().as_deref(), Some(&b""[..]));
    }

    #[test]
    fn a_signal_ends_the_wait_for_a_stream_that_goes_on() {
        let (stop, mut signal) = stop();
        let (mut stream, _writer) = io::pipe().expect("a pipe");
        assert!(!stop.is_asked_for());
        signal.write_all(b"x").expect("room in the pipe");
        assert!(matches!(stop.read_to_end(&mut stream), Err(DemoError::Stopped)));
        assert!(stop.is_asked_for(), "and stays asked for");
    }
}
