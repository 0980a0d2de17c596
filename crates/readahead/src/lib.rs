//! Read-ahead policies: pure, no I/O, no clock, no threads.
//!
//! A *body* (the live kernel, a simulator) tells a [`Policy`] of the few accesses that matter and
//! carries out what it answers:
//!
//! ```text
//!   body                                                    policy
//!   ----                                                    ------
//!   a page was absent, or carried a mark  -- Access -->     which stream is this? what will it
//!   what is cached? what is in flight?   <-- CacheView --   want, and does asking for it pay?
//!   readahead(2), marks in the kernel    <-- Plan ------    read [start, n), mark there, because ...
//! ```
//!
//! Reads that find their page and no mark never reach the policy: that is what keeps it cheap. It
//! has no clock; the time of an access comes with it. It allocates nothing once built, whatever
//! it is told, so that it may sit in the event path of a production machine.
//!
//! [`Adaptive`] is bowwave's own policy. Those of kernels are in the crate `historical`.

mod access;
mod account;
pub mod adaptive;
pub mod behind;
mod cache;
mod cost;
mod ids;
mod plan;
mod policy;
mod table;
mod tally;

pub use access::{
    Access, FileId, GroupId, Hint, Nanos, OpenFileId, PAGE_BYTES, Page, Trigger, Via, VolumeId,
};
pub use account::{Account, Balance};
pub use adaptive::Adaptive;
pub use cache::{CacheView, Past};
pub use cost::DeviceCost;
pub use ids::{DeviceNumber, FileKey, FileRef, NotADevice};
pub use plan::{Action, Asked, CHUNK_PAGES, Cause, Mark, Plan};
pub use policy::Policy;
pub use table::Table;
pub use tally::Tally;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/adding-a-policy.md")]
struct AddingAPolicy;
