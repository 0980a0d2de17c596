//! Acting on the page cache: files opened by handle, reads asked for by workers, windows given to
//! single open files.

mod descriptors;
mod given;
mod narrow;
mod open;
mod setting;
mod window;
mod workers;

pub(crate) use open::open_file;
pub(crate) use window::Windows;
pub(crate) use workers::{Job, Workers};

#[cfg(any(test, fuzzing))]
pub(crate) fn read_any(process: &str) {
    given::start_time(process);
    open::inode_in(process);
}

#[cfg(any(test, fuzzing))]
pub(crate) fn read_any_ledger(bytes: &[u8]) {
    for given in given::entries(bytes) {
        let _ = (given.file(), given.pages_before());
    }
}
