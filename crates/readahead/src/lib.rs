//! Read-ahead policies: pure, no I/O, no clock, no threads.
//!
//! A *body* (the live kernel, a simulator) tells a [`Policy`] about the few accesses that matter, and carries out its
//! answers:
//!
//! ```text
//!   body                                                    policy
//!   ----                                                    ------
//!   a page was absent, or carried a mark  -- Access -->     which stream is this? what will it
//!   what is cached? what is in flight?   <-- CacheView --   want, and does asking for it pay?
//!   readahead(2), marks in the kernel    <-- Plan ------    read [start, n), mark there, because ...
//! ```
//!
//! A read that finds its page, and no mark, never reaches the policy; that keeps it cheap. The policy has no clock:
//! each access comes with its time. It allocates nothing after it is built, so that it can be in the event path of a
//! production machine.
//!
//! [`Adaptive`] is bowwave's own policy. Kernels' policies are in the crate `historical`.

mod access;
mod account;
pub mod adaptive;
pub mod behind;
mod cache;
mod cost;
pub mod figure;
mod ids;
mod plan;
mod policy;
mod table;
mod tally;

pub use access::{
    Access, FileId, GroupId, Hint, Nanos, OpenFileId, PAGE_BYTES, Page, STOCK_WINDOW_KB, Trigger,
    Via, VolumeId,
};
pub use account::{Account, Balance};
pub use adaptive::{Adaptive, Curve, History};
pub use cache::{CacheView, Past};
pub use cost::DeviceCost;
pub use figure::Figure;
pub use ids::{DeviceNumber, FileKey, FileRef, NotADevice};
pub use plan::{Action, CHUNK_PAGES, Cause, MARK_PAGES, Mark, Plan};
pub use policy::Policy;
pub use table::Table;
pub use tally::Tally;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/adding-a-policy.md")]
struct AddingAPolicy;
