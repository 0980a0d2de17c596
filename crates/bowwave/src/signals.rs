//! Signals as something to wait for: each caught one writes a byte to a pipe.

use std::io::{self, PipeReader};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The signals caught since the start.
pub(crate) struct Signals {
    pipe: PipeReader,
}

impl Signals {
    /// Catches `signals` from now on.
    pub(crate) fn catch(signals: &[i32]) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        for &signal in signals {
            let writer: OwnedFd = writer.try_clone()?.into();
            signal_hook::low_level::pipe::register(signal, writer)?;
        }
        Ok(Signals { pipe: reader })
    }

    /// Readable once a signal has come.
    pub(crate) fn readiness(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}
