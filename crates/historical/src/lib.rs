//! Read-ahead policies of past and present kernels, to compare bowwave's with. Pure: no I/O, no
//! clock, no threads.
//!
//! ```text
//!   2002   linux-2.5, stock-2.6.13, stock-2.6.17     windows that grow while reading is sequential
//!   2005   adaptive-2005                             proposed: what is cached is the history
//!   2006   adaptive-v16                              proposed: the sixteenth version of that
//!   2007   ondemand-2.6.23, drop-behind-2007         misses and marks; a proposal on top of it
//!   2009   context-2.6.31, context-3.12              also: pages cached before a miss
//!   today  linux-6                                   the same, in folios
//! ```
//!
//! The policies implement [`KernelPolicy`], which adds to [`readahead::Policy`] what only a kernel
//! can see (state and age of pages) and do (move pages on the reclaim lists, make a reader wait).
//! [`by_name`] creates any of them.

mod access;
mod adaptive2005;
mod drop_behind_2007;
mod faults;
mod kernel;
mod linux2_5;
mod linux6;
mod names;
mod none;
mod ondemand;
mod plan;
mod policy;
mod stock;
mod v16;
mod view;

pub use access::{Access, Trigger};
pub use adaptive2005::Adaptive2005;
pub use drop_behind_2007::DropBehind2007;
pub use linux2_5::Linux25;
pub use linux6::{Linux6, folio_order};
pub use names::{NAMES, by_name, parameters_of};
pub use none::NoReadAhead;
pub use ondemand::{OnDemand, OnDemandRelease};
pub use plan::{Asked, Plan, Range};
pub use policy::KernelPolicy;
pub use stock::{Stock, StockRelease};
pub use v16::{AdaptiveV16, V16Parameters};
pub use view::{Ageing, KernelView, PageState};
