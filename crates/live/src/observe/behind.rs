//! What drop-behind asks of a source: who brought a page into the cache, how often it was used.

use readahead::behind::Block;

use super::{FileKey, ObserveError};

/// What is watched for drop-behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Files of fewer pages are left alone.
    pub least_file_pages: u64,
}

/// One process's way through a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamKey {
    /// The file.
    pub file: FileKey,
    /// The process.
    pub tgid: u32,
    /// It writes.
    pub written: bool,
}

/// Whether writing to a file has failed; asked by the thread that drops pages, after it has seen that
/// they are clean: pages that could not be written look clean, too.
pub type WriteErrors = Box<dyn Fn(FileKey) -> bool + Send>;

/// The part of an [`Observer`](super::Observer) that drop-behind needs.
pub trait BehindSource {
    /// Sees accesses from now on, or no more; nothing is watched yet. What entered the cache before
    /// counts as having been there.
    ///
    /// # Errors
    /// [`ObserveError::Refused`] if the programs cannot be attached.
    fn look_behind(&mut self, on: bool) -> Result<(), ObserveError>;

    /// What is known of block `block` of a file; `None` if nothing: nothing of it may go.
    fn block(&self, file: FileKey, block: u64) -> Option<Block>;

    /// Forgets a block.
    fn forget_block(&mut self, file: FileKey, block: u64);

    /// The pages `[low, high)` in which all lies that a stream touched.
    fn touched(&self, stream: StreamKey) -> Option<(u64, u64)>;

    /// Forgets a stream.
    fn forget_stream(&mut self, stream: StreamKey);

    /// Tells whether writing to a file, or to one with the same hash, has failed since the start.
    ///
    /// # Errors
    /// [`ObserveError::Refused`] if the table cannot be reached.
    fn write_errors(&self) -> Result<WriteErrors, ObserveError>;
}
