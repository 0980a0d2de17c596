//! Bowwave on the running kernel: observe reads, decide, act on the page cache.
//!
//! ```text
//!   programs --read--> page cache --miss, mark, fault--> observe (eBPF)
//!                          ^                                 |
//!                          |                              engine  <--- view (cachestat)
//!      act (readahead(2), per-open-file window) <--plan---- policy     disk (cost, depth)
//! ```

mod act;
#[cfg(any(test, fuzzing))]
pub mod any_bytes;
pub mod behind;
mod book;
mod disk;
pub mod doctor;
pub mod engine;
pub mod kernel;
pub mod memory;
pub mod observe;
pub mod summary;
mod view;
