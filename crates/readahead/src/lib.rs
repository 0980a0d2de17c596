//! readahead
