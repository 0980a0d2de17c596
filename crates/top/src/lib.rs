//! What `bowwave top` shows. Pure: no I/O, no clock.
//!
//! ```text
//!   ebpf::count --Sample--> History --Vec<Use>--> table --Vec<Row>--> screen --> text of 80 columns
//!        ^                                          ^                     \----> JSON
//!        +---- on, off ---- Rhythm                  +---- Names, View
//! ```
//!
//! The eBPF programs count for each process and file ([`Sample`]). [`History`] subtracts what was counted before the
//! interval, [`table`] adds up what belongs together, and [`screen`] formats it. [`Rhythm`] decides when accesses to
//! cached pages are seen, so that programs that make very many of them are not slowed down.

mod activity;
mod history;
mod latency;
mod names;
mod rhythm;
mod sample;
pub mod screen;
mod steps;
pub mod table;
mod view;

pub use activity::Activity;
pub use history::{History, Use};
pub use latency::{BINS, Latencies};
pub use names::{FileSystem, Managers, Names, Process};
pub use rhythm::{Rhythm, Step};
pub use sample::{Counts, Key, Sample};
pub use steps::Steps;
pub use table::Row;
pub use view::{By, Sort, View};
