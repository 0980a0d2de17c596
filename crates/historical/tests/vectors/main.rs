//! Traces that the modelled kernels must reproduce, from published traces, models checked against
//! them, and the tracepoints of a running kernel.
//!
//! A line `sequential@14 16+49-39` reads: asked about page 14, 49 pages from page 16 on were read,
//! with the mark 39 pages before their end. As it was printed in 2005, `3317+256=251` is a chunk of
//! 256 pages from page 3317 on, of which 251 were new: the file ended there.

#[path = "../support/mod.rs"]
mod support;

mod adaptive_2005;
mod adaptive_v16;
mod linux_6;
mod on_demand;
mod published;
mod stock;

/// Large enough for any of the traces not to notice its end.
const FILE_PAGES: u64 = 100_000;
