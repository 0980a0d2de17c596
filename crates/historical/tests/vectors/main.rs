//! Traces that the modelled kernels must reproduce. They come from published traces, from models
//! checked against those, and from the tracepoints of a running kernel.
//!
//! A line `sequential@14 16+49-39` means: when called about page 14, the policy read 49 pages from
//! page 16 on, with the mark 39 pages before their end. In the format of 2005, `3317+256=251` is a
//! chunk of 256 pages from page 3317 on, of which 251 were new because the file ended there.

#[path = "../support/mod.rs"]
mod support;

mod adaptive_2005;
mod adaptive_v16;
mod linux_6;
mod on_demand;
mod published;
mod stock;

/// Large enough that no trace reaches its end.
const FILE_PAGES: u64 = 100_000;
