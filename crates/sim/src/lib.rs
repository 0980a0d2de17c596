//! A machine in virtual time: processes read and write files through a page cache, under any policy
//! and elevator, on any device model.
//!
//! ```text
//!   processes (scripts of reads, writes, faults)            process
//!        | page by page
//!        v                 asks    +---------------------+
//!   page cache ------------------->| policy: a kernel's, |  crates/historical
//!   two lists, reclaim <-----------| and bowwave on top  |  crates/controller
//!        | transfers               +---------------------+
//!        v
//!   elevator                                                crates/iosched
//!        | commands
//!        v
//!   device                                                  crates/device
//! ```
//!
//! There is no wall clock, no thread and no randomness: the same input gives the same run, to the byte. CPU time is a
//! parameter ([`CpuCosts`]); every process has its own processor.

mod account;
mod ask;
mod begin;
mod block;
mod cache;
mod costs;
mod directories;
mod machine;
mod machine_spec;
mod maps;
mod on_top;
mod oracle;
mod plot;
mod process;
mod read;
pub mod replay;
pub mod scripts;
mod server;
pub mod size;
mod view;
mod wait;
mod worst;
mod write;
mod writeback;

pub use account::{Decision, Matrix, Row};
pub use cache::{CacheCounters, Reclaim};
pub use costs::CpuCosts;
pub use directories::{DirectoryIndex, Named};
pub use machine::{Machine, Parts};
pub use machine_spec::{CpuSpec, MachineError, MachineSpec, ReclaimName};
pub use on_top::{Bowwave, OnTop};
pub use oracle::{Oracle, Variant, variants};
pub use plot::{Axis, Plot, Series, Style};
pub use process::{FileIndex, Listed, Op, OpenFile, Outcome, Script};
pub use readahead::Cause;
pub use server::{Export, Server, Service};
pub use worst::Worst;
