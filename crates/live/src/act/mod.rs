//! Acting on the page cache: files opened by handle, reads asked for by workers.

mod open;
mod workers;

pub(crate) use open::open_file;
pub(crate) use workers::{Job, Workers};
