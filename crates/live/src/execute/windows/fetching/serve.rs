//! What the process of a [`Fetcher`](super::Fetcher) does. All of it may wait for a program, or a server of its own.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use linux::descriptors::Descriptors;
use linux::handles::leads_to;
use linux::process::{Process, started};
use linux::sys;
use readahead::FileRef;

use super::wire::{self, Found, Wanted};
use crate::helper;

/// The name of the job.
pub(super) const FETCH: &str = "fetch";

/// Looks through the descriptors of other processes.
#[derive(Default)]
pub(super) struct Finder {
    descriptors: Descriptors,
}

/// An answer.
pub(super) struct Answer {
    pub(super) found: Found,
    /// What was found, or the other file. It must not be closed before the answer is given.
    pub(super) file: Option<OwnedFd>,
}

impl From<Found> for Answer {
    fn from(found: Found) -> Self {
        Answer { found, file: None }
    }
}

impl Finder {
    /// Finds what is wanted.
    pub(super) fn find(&mut self, wanted: &Wanted, along: Option<&OwnedFd>) -> Answer {
        let answer = match *wanted {
            Wanted::Sole(of) => self.sole(of),
            Wanted::Again { of, number, started } => self.again(of, number, started),
            Wanted::IsOpen { tgid, number } => {
                let is_open = along.is_some_and(|file| sys::has_open_file(tgid, number, file));
                Ok(Found::IsOpen(is_open).into())
            }
        };
        answer.unwrap_or_else(|error| match error {
            error if is_gone(&error) => Found::Gone.into(),
            error => Found::Failed(error.to_string()).into(),
        })
    }

    fn sole(&mut self, of: FileRef) -> io::Result<Answer> {
        // Before anything is looked up by its number, which may be another's when it has ended.
        let process = Process::open(of.tgid)?;
        let started = started(of.tgid)?;
        let number = self.descriptors.sole(of.tgid, of.file, sys::monotonic_ns())?;
        duplicate(&process, of, number, started)
    }

    fn again(&mut self, of: FileRef, number: i32, before: u64) -> io::Result<Answer> {
        // Before it is asked whether it is still the same one.
        let process = Process::open(of.tgid)?;
        if started(of.tgid)? != before {
            return Ok(Found::Gone.into());
        }
        let now = sys::monotonic_ns();
        let number = self.descriptors.again(of.tgid, of.file, number, now)?;
        duplicate(&process, of, number, before)
    }
}

fn duplicate(process: &Process, of: FileRef, number: i32, started: u64) -> io::Result<Answer> {
    let file = process.duplicate(number)?;
    let is_it = leads_to(&file, of);
    let found = if is_it { Found::Descriptor { number, started } } else { Found::Another };
    Ok(Answer { found, file: Some(file) })
}

/// Whether an error says that a process, its descriptor, or a device is not there any more.
pub(in super::super) fn is_gone(error: &io::Error) -> bool {
    let is_absent = matches!(error.raw_os_error(), Some(libc::ESRCH | libc::EBADF));
    is_absent || error.kind() == io::ErrorKind::NotFound
}

/// Answers what comes from standard input, a socket, until nobody is at its other end or a process has shown another
/// file than the wanted one. Ends with `parent`.
///
/// # Errors
/// If standard input is no such socket, or the parent has ended.
pub fn main(parent: u32) -> io::Result<()> {
    helper::end_with(parent)?;
    let socket = io::stdin();
    wire::send(&socket, &Found::Ready, None)?;
    let mut finder = Finder::default();
    while let Some((wanted, along)) = wire::receive(&socket)? {
        let Answer { found, file } = finder.find(&wanted, along.as_ref());
        let is_it = matches!(found, Found::Descriptor { .. });
        let goes_along = file.as_ref().filter(|_| is_it).map(AsFd::as_fd);
        wire::send(&socket, &found, goes_along)?;
        if found == Found::Another {
            break;
        }
    }
    Ok(())
}
