//! Acting on the page cache: files opened by handle, reads asked for by workers, windows given to
//! single open files.

mod given;
mod narrow;
mod setting;
mod window;
mod workers;

use std::io;
use std::os::fd::OwnedFd;

use linux::handles;
use linux::mounts::Mount;

use crate::observe::Event;

pub(crate) use window::Windows;
pub(crate) use workers::{Job, Workers};

/// Opens the file of `event` on `mount`.
///
/// # Errors
/// If neither its handle nor a descriptor of the reading process leads to it.
pub(crate) fn open_file(event: &Event, mount: &Mount) -> io::Result<OwnedFd> {
    let Event { file, generation, tgid, .. } = *event;
    handles::open_file(handles::Read { file, generation, tgid }, mount)
}

#[cfg(any(test, fuzzing))]
pub(crate) fn read_any_ledger(bytes: &[u8]) {
    for given in given::entries(bytes) {
        let _ = (given.file(), given.pages_before());
    }
}
