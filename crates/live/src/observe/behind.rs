//! What drop-behind asks of a source: who brought a page into the cache, how often it was used.

use std::sync::Arc;

use controller::ids::{FileKey, StreamKey};
use readahead::behind::{Block, Span};

use super::ObserveError;

/// What is watched for drop-behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Files of fewer pages are left alone.
    pub least_file_pages: u64,
}

/// What the eBPF programs know of pages, for the threads that let them go: they ask right before they do.
pub trait PageTables: Send + Sync {
    /// What is known of block `block` of a file; `None` if nothing: nothing of it may go.
    fn block(&self, file: FileKey, block: u64) -> Option<Block>;

    /// Forgets a block.
    fn forget(&self, file: FileKey, block: u64);

    /// Whether writing to a file, or to one with the same hash, has failed since the start. Ask after
    /// having seen that pages are clean: those that could not be written look clean, too.
    fn write_failed(&self, file: FileKey) -> bool;
}

/// The part of an [`Observer`](super::Observer) that drop-behind needs.
pub trait BehindSource {
    /// Sees accesses from now on, or no more; nothing is watched yet. What entered the cache before
    /// counts as having been there.
    ///
    /// # Errors
    /// [`ObserveError::Refused`] if the programs cannot be attached.
    fn look_behind(&mut self, on: bool) -> Result<(), ObserveError>;

    /// The pages in which all lies that a stream touched.
    fn touched(&self, stream: StreamKey) -> Option<Span>;

    /// Forgets a stream.
    fn forget_stream(&mut self, stream: StreamKey);

    /// Looks anew which other daemons of bowwave run: what they read ahead is brought for whoever uses
    /// it first. One that ends is no more among them at once.
    fn note_daemons(&mut self);

    /// The tables, to be asked from any thread.
    ///
    /// # Errors
    /// [`ObserveError::Refused`] if they cannot be reached.
    fn page_tables(&self) -> Result<Arc<dyn PageTables>, ObserveError>;
}
