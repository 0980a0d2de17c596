//! Catches signals so that `poll` can wait for them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

/// Exit status that shells use for SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// Lets these end the program again. [`Signals`] that have been dropped go on to hold them back.
pub(crate) fn end_by(signals: impl IntoIterator<Item = i32>) -> io::Result<()> {
    linux::signals::not_ignored(signals).try_for_each(|signal| {
        let always = Arc::new(AtomicBool::new(true));
        signal_hook::flag::register_conditional_default(signal, always).map(|_| ())
    })
}

/// The signals caught so far.
pub(crate) struct Signals(SignalDelivery<UnixStream, SignalOnly>);

impl Signals {
    /// Catches `signals` from now on.
    pub(crate) fn catch(signals: impl IntoIterator<Item = i32>) -> io::Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        Ok(Signals(SignalDelivery::with_pipe(reader, writer, SignalOnly, signals)?))
    }

    /// A descriptor that is readable once a signal has arrived, until it is [taken](Self::take).
    pub(crate) fn readiness(&self) -> BorrowedFd<'_> {
        self.0.get_read().as_fd()
    }

    /// Takes the signals that have arrived.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = i32> {
        self.0.pending()
    }
}

/// Whether this process has a controlling terminal. Then SIGHUP means that it was closed.
pub(crate) fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}

#[cfg(test)]
mod tests {
    use linux::signals::ENDING;

    use super::*;

    /// Raises a signal in a process of its own: itself, with this variable set.
    #[test]
    fn a_signal_ends_a_program_that_has_ceased_to_catch_it() {
        use std::os::unix::process::ExitStatusExt;
        const IS_OWN: &str = "BOWWAVE_TEST_ENDS";
        const NAME: &str = "signals::tests::a_signal_ends_a_program_that_has_ceased_to_catch_it";
        if std::env::var_os(IS_OWN).is_some() {
            drop(Signals::catch(ENDING).expect("caught"));
            end_by(ENDING).expect("given back");
            signal_hook::low_level::raise(libc::SIGTERM).expect("raised");
            panic!("it goes on");
        }
        let mut own = std::process::Command::new(std::env::current_exe().expect("this test"));
        own.args(["--exact", NAME]).env(IS_OWN, "1");
        assert_eq!(own.output().expect("it runs").status.signal(), Some(libc::SIGTERM));
    }
}
