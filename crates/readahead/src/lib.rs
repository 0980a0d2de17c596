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
//! [`Adaptive`] is bowwave's own policy. The others are models of the kernel's, to be compared with:
//! what it did and does ([`Stock`], [`OnDemand`], [`Linux6`]), and what was proposed to it
//! ([`Adaptive2005`], [`AdaptiveV16`]). [`by_name`] makes any of them.

mod access;
pub mod adaptive;
mod adaptive2005;
pub mod behind;
mod cache;
mod cost;
mod faults;
mod ids;
mod kernel;
mod linux2_5;
mod linux6;
mod names;
mod none;
mod ondemand;
mod plan;
mod stock;
mod table;
mod tally;
mod v16;

pub use access::{
    Access, FileId, Hint, Nanos, OpenFileId, PAGE_BYTES, Page, Trigger, Via, VolumeId,
};
pub use adaptive::Adaptive;
pub use adaptive2005::Adaptive2005;
pub use cache::{Ageing, CacheView, PageState};
pub use cost::DeviceCost;
pub use ids::{DeviceNumber, FileKey, FileRef, NotADevice};
pub use linux2_5::Linux25;
pub use linux6::Linux6;
pub use names::{NAMES, by_name, parameters_of};
pub use none::NoReadAhead;
pub use ondemand::{OnDemand, OnDemandRelease};
pub use plan::{Action, Asked, Cause, Mark, Plan};
pub use stock::{Stock, StockRelease};
pub use tally::Tally;
pub use v16::{AdaptiveV16, V16Parameters};

/// Decides what to read ahead, and when to be asked again.
pub trait Policy: Send {
    /// The policy's name as users type it, for example `linux-6`.
    fn name(&self) -> &'static str;

    /// Answers one access by appending to `plan` (which the caller has cleared).
    ///
    /// An empty plan means "nothing beyond what the program itself asked for".
    fn on_access(&mut self, access: &Access, cache: &dyn CacheView, plan: &mut Plan);

    /// A page of the access's file of which the policy wants to know, before it is told of the access, whether it
    /// is cached. A body that has to ask somebody for that asks for this page only, and takes others for cached.
    fn wants_to_know(&self, _access: &Access) -> Option<Page> {
        None
    }

    /// Whether it is to be told of every read, not only of absent and marked pages. A live body
    /// cannot afford that, and drives such policies on misses and marks alone.
    fn wants_calls(&self) -> bool {
        false
    }

    /// Most pages of the kernel's own windows at the moment, where the policy
    /// [bounds](Action::KernelWindow) them; a body that has bounded some gives them back otherwise.
    fn window_bound(&self) -> Option<u32> {
        None
    }

    /// What became of the pages asked for, where the policy keeps count.
    fn tally(&self) -> Tally {
        Tally::default()
    }

    /// Gives an open file what is known of another one of its file, as an NFS server does that keeps
    /// read-ahead state from request to request. A policy that keeps none by open file has none to give.
    fn copy_state(&mut self, _from: OpenFileId, _to: OpenFileId, _now: Nanos) {}

    /// Forgets every file and stream idle since before `now - idle`.
    fn forget_idle(&mut self, now: Nanos, idle: Nanos);
}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/adding-a-policy.md")]
struct AddingAPolicy;
