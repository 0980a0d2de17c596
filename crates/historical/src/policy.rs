//! The contract of policies that stand in the kernel's place.

use readahead::{Nanos, OpenFileId};

use crate::access::Access;
use crate::plan::Plan;
use crate::view::KernelView;

/// Decides what the kernel reads ahead by itself.
pub trait KernelPolicy: Send {
    /// The policy's name as users type it, for example `linux-6`.
    fn name(&self) -> &'static str;

    /// Answers one access by appending to `plan` (which the caller has cleared).
    ///
    /// An empty plan means "nothing beyond what the program itself asked for".
    fn on_access(&mut self, access: &Access, cache: &dyn KernelView, plan: &mut Plan);

    /// Whether to tell it of every read, not only of absent and marked pages.
    fn wants_calls(&self) -> bool {
        false
    }

    /// Gives an open file what is known of another one of its file, as an NFS server does that keeps
    /// read-ahead state from request to request. A policy that keeps none by open file has none to give.
    fn copy_state(&mut self, _from: OpenFileId, _to: OpenFileId, _now: Nanos) {}

    /// Forgets every file and stream idle since before `now - idle`.
    fn forget_idle(&mut self, now: Nanos, idle: Nanos);
}
