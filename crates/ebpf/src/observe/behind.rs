//! What drop-behind needs from a source: which process brought a page into the cache, and whether it was used.

use std::sync::Arc;

use controller::ids::{FileKey, StreamKey};
use readahead::behind::{Block, Span};

use crate::error::ObserveError;

/// Which files to watch for drop-behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Smaller files are ignored.
    pub least_file_pages: u64,
}

/// What the eBPF programs know of pages. The threads that drop pages ask right before each call.
pub trait PageTables: Send + Sync {
    /// The bits of a block of a file; `None` if there are none, and then none of its pages may be dropped.
    fn block(&self, file: FileKey, block: u64) -> Option<Block>;

    /// Removes what is known of a block. Its pages may not be dropped any more.
    fn forget(&self, file: FileKey, block: u64);

    /// Whether writing to this file, or to one with the same hash, has failed since the start. Ask this after seeing
    /// that pages are clean: pages that could not be written look clean, too.
    fn write_failed(&self, file: FileKey) -> bool;
}

/// The part of an [`Observer`](super::Observer) that drop-behind needs.
pub trait BehindSource {
    /// Starts or stops watching accesses, with empty tables. Pages cached before are nobody's, and so stay.
    ///
    /// # Errors
    /// [`ObserveError::Refused`] if the programs cannot be attached.
    fn look_behind(&mut self, on: bool) -> Result<(), ObserveError>;

    /// The smallest span with all pages that a stream touched; `None` if the stream is not known any more.
    fn touched(&self, stream: StreamKey) -> Option<Span>;

    /// Removes what is known of a stream.
    fn forget_stream(&mut self, stream: StreamKey);

    /// Updates the list of other running bowwave daemons: a page that they read ahead belongs to its first user. Looks
    /// at all processes if a program of bowwave's name has begun since. The eBPF programs remove a daemon as soon as it
    /// ends.
    fn update_daemons(&mut self);

    /// The tables, for use by any thread.
    ///
    /// # Errors
    /// [`ObserveError::Refused`] if they cannot be reached.
    fn page_tables(&self) -> Result<Arc<dyn PageTables>, ObserveError>;
}
