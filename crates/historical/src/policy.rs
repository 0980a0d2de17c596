//! The interface of policies that replace the kernel's read-ahead.

use readahead::{Nanos, OpenFileId};

use crate::access::Access;
use crate::plan::Plan;
use crate::view::KernelView;

/// Decides what the kernel reads ahead.
pub trait KernelPolicy: Send {
    /// The policy's name as users type it, for example `linux-6`.
    fn name(&self) -> &'static str;

    /// Answers one access by appending to `plan`, which the caller has cleared.
    ///
    /// An empty plan means that only the program's own request is read.
    fn on_access(&mut self, access: &Access, cache: &dyn KernelView, plan: &mut Plan);

    /// Whether the policy wants every read reported, not only absent and marked pages.
    fn wants_calls(&self) -> bool {
        false
    }

    /// Copies the state of one open file to another one of the same file. An NFS server does this
    /// to keep read-ahead state between requests. Policies without state per open file ignore it.
    fn copy_state(&mut self, _from: OpenFileId, _to: OpenFileId, _now: Nanos) {}

    /// Forgets every file and stream idle since before `now - idle`.
    fn forget_idle(&mut self, now: Nanos, idle: Nanos);
}
