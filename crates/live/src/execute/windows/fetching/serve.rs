//! The helper process of a [`Fetcher`](super::Fetcher). Every call here may hang because of a program or its server.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use linux::descriptors::Descriptors;
use linux::handles::leads_to;
use linux::process::{Process, started};
use linux::sys;
use readahead::FileRef;

use super::wire::{self, Found, Wanted};
use crate::helper;

/// The subcommand that runs [`main`].
pub(super) const FETCH: &str = "fetch";

/// Finds and duplicates descriptors of other processes.
#[derive(Default)]
pub(super) struct Finder {
    descriptors: Descriptors,
}

pub(super) struct Answer {
    pub(super) found: Found,
    /// The duplicate. Send the answer before closing it, as closing may hang.
    pub(super) file: Option<OwnedFd>,
}

impl From<Found> for Answer {
    fn from(found: Found) -> Self {
        Answer { found, file: None }
    }
}

impl Finder {
    pub(super) fn find(&mut self, wanted: &Wanted, along: Option<&OwnedFd>) -> Answer {
        let answer = match *wanted {
            Wanted::Sole(of) => self.sole(of),
            Wanted::Again { of, number, started } => self.again(of, number, started),
            Wanted::IsOpen { tgid, number } => {
                let is_open = along.is_some_and(|file| sys::has_open_file(tgid, number, file));
                Ok(Found::IsOpen(is_open).into())
            }
        };
        answer.unwrap_or_else(|error| {
            let found =
                if is_gone(&error) { Found::Gone } else { Found::Failed(error.to_string()) };
            found.into()
        })
    }

    fn sole(&mut self, of: FileRef) -> io::Result<Answer> {
        // Open the process before looking anything up by its number, which may go to another process.
        let process = Process::open(of.tgid)?;
        let started = started(of.tgid)?;
        let number = self.descriptors.sole(of.tgid, of.file, sys::monotonic_ns())?;
        duplicate(&process, of, number, started)
    }

    fn again(&mut self, of: FileRef, number: i32, before: u64) -> io::Result<Answer> {
        // Open the process before checking that it is still the same one.
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

/// Whether an error means that a process, its descriptor, or a device is not there any more.
pub(in super::super) fn is_gone(error: &io::Error) -> bool {
    let is_absent = matches!(error.raw_os_error(), Some(libc::ESRCH | libc::EBADF));
    is_absent || error.kind() == io::ErrorKind::NotFound
}

/// Answers questions on standard input, a socket, until the other end closes. Also ends after meeting another file than
/// the wanted one, as closing that may hang, and with `parent`.
///
/// # Errors
/// If standard input is not such a socket, or the parent has ended.
pub fn main(parent: u32) -> io::Result<()> {
    helper::die_with_parent(parent)?;
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
