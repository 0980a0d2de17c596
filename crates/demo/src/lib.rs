//! The demonstration: reading patterns, cold, on the stock kernel and under bowwave.
//!
//! ```text
//!   for each device:   make it
//!     for each pattern:   write the files that it needs
//!       for each round:
//!         stock 128 KiB -> stock 4 MiB -> bowwave        each: evict, start a fresh reader, time it
//!       medians --> one row
//! ```
//!
//! [`small`] shows what a large file or many readers do to a machine with little memory.
//!
//! The crate [`patterns`] says what each pattern reads. [`worker`] reads it, in a separate process. `bench` sets up and
//! measures one run, [`show`] all of them. A run counts only if it was cold. The time that a busy machine adds is
//! measured (`lab`, `waits`) and shown as the error of the row. Devices, cgroups, files and children belong to values
//! that remove them when dropped. So they are removed in every case: at the end, after an error or a panic, and after a
//! signal, which interrupts every wait.

mod bench;
mod cgroup;
mod child;
mod daemon;
mod error;
mod files;
mod leftovers;
mod machine;
mod mapping;
mod next;
mod process_clock;
mod recordings;
mod report;
mod row;
mod show;
pub mod small;
mod stop;
mod target;
mod trade_off;
pub mod worker;

pub use bench::WORD;
pub use cgroup::MemoryCgroup;
pub use error::DemoError;
pub use mapping::resident;
pub use next::next_steps;
pub use report::{LEGEND, Report};
pub use row::{ErrorPercent, Figures, Row, Verdict};
pub use show::{Options, SHORT, show};
pub use trade_off::{Balance, Point, TradeOff};
