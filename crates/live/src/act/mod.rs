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
