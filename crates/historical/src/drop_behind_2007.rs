//! Drop-behind as proposed for the kernel in July 2007.
//!
//! When a full-sized window's mark is touched, the pages of one window before the mark become first
//! in line for reclaim, up to the first page that others also use. They are not freed at once.
//! Written pages arrive without read-ahead and were never dropped, so copies still emptied the
//! cache.

use readahead::Action;
use readahead::{Nanos, OpenFileId};

use crate::access::{Access, Trigger};
use crate::plan::Plan;
use crate::policy::KernelPolicy;
use crate::view::KernelView;

/// A kernel's policy with this proposal.
#[derive(Debug)]
pub struct DropBehind2007<P>(pub P);

impl<P: KernelPolicy> KernelPolicy for DropBehind2007<P> {
    fn name(&self) -> &'static str {
        "drop-behind-2007"
    }

    fn on_access(&mut self, access: &Access, cache: &dyn KernelView, plan: &mut Plan) {
        self.0.on_access(access, cache, plan);
        let window = u64::from(access.kernel_window);
        let is_full =
            |action: &Action| matches!(action, Action::Read { pages, .. } if *pages == window);
        if access.trigger == Trigger::Mark
            && window > 0
            && plan.ahead().actions().iter().any(is_full)
        {
            let pages = window.min(access.page);
            plan.demote(access.page - pages, pages);
        }
    }

    fn copy_state(&mut self, from: OpenFileId, to: OpenFileId, now: Nanos) {
        self.0.copy_state(from, to, now);
    }

    fn forget_idle(&mut self, now: Nanos, idle: Nanos) {
        self.0.forget_idle(now, idle);
    }

    fn wants_calls(&self) -> bool {
        self.0.wants_calls()
    }
}
