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
//! What a big file or many readers do to a small machine is shown by [`small`].
//!
//! What a pattern reads is in the crate [`patterns`]; who carries it out, in a process of its own, in
//! [`worker`]; how one run is set up and measured in `bench`; all of them in [`show`]. A run counts
//! only if it was cold. What a busy machine adds to its time is measured (`lab`, `waits`) and shown as the
//! error of the row. Devices, cgroups, files and children are owned by values that remove them
//! when they are dropped, so they go on every way out: at the end, after an error or a panic, and
//! after a signal, which ends whatever is waited for.

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
mod report;
mod row;
mod show;
pub mod small;
mod stop;
mod target;
mod trade_off;
pub mod worker;

pub use bench::WORD;
pub use error::DemoError;
pub use mapping::resident;
pub use next::next_steps;
pub use report::{LEGEND, Report};
pub use row::{ErrorPercent, Figures, Row, Verdict};
pub use show::{Options, SHORT, show};
pub use trade_off::{Balance, Point, TradeOff};
