//! Runs a kernel's policy in user space, for comparison with policies made for that.

use readahead::{CacheView, DeviceCost, Nanos, Page, Policy};

use crate::access::Access;
use crate::plan::Plan;
use crate::policy::KernelPolicy;
use crate::view::KernelView;

/// Gives a kernel's policy only misses and marks. Drops what only a kernel can do, such as moving
/// pages on the reclaim lists.
#[derive(Debug)]
pub struct InUserSpace<P> {
    policy: P,
    plan: Plan,
}

impl<P: KernelPolicy> InUserSpace<P> {
    /// Wraps a policy.
    pub fn new(policy: P) -> Self {
        InUserSpace { policy, plan: Plan::new() }
    }
}

impl<P: KernelPolicy> Policy for InUserSpace<P> {
    fn name(&self) -> &'static str {
        self.policy.name()
    }

    fn on_access(
        &mut self,
        access: &readahead::Access,
        cache: &dyn CacheView,
        plan: &mut readahead::Plan,
    ) {
        self.plan.clear();
        // Swapping the two lists avoids copies and allocations.
        std::mem::swap(plan, &mut self.plan.ahead);
        self.policy.on_access(&access_of(access), &FromOutside(cache), &mut self.plan);
        std::mem::swap(plan, &mut self.plan.ahead);
    }

    fn forget_idle(&mut self, now: Nanos, idle: Nanos) {
        self.policy.forget_idle(now, idle);
    }
}

fn access_of(access: &readahead::Access) -> Access {
    Access {
        file: access.file,
        volume: access.volume,
        open_file: access.open_file,
        page: access.page,
        request: access.request,
        previous: access.previous,
        trigger: access.trigger.into(),
        via: access.via,
        hint: access.hint,
        file_pages: access.file_pages,
        kernel_window: access.kernel_window,
        now: access.now,
    }
}

/// The page cache as seen from outside the kernel.
struct FromOutside<'a>(&'a dyn CacheView);

impl CacheView for FromOutside<'_> {
    fn cached_in(&self, start: Page, pages: u64) -> u64 {
        self.0.cached_in(start, pages)
    }

    fn is_cached(&self, page: Page) -> bool {
        self.0.is_cached(page)
    }

    fn run_before(&self, page: Page, limit: u64) -> u64 {
        self.0.run_before(page, limit)
    }

    fn run_after(&self, page: Page, limit: u64) -> u64 {
        self.0.run_after(page, limit)
    }

    fn was_evicted_unused(&self) -> bool {
        self.0.was_evicted_unused()
    }

    fn cost(&self) -> DeviceCost {
        self.0.cost()
    }

    fn room_pages(&self) -> u64 {
        self.0.room_pages()
    }

    fn ahead_pages(&self) -> u64 {
        self.0.ahead_pages()
    }
}

impl KernelView for FromOutside<'_> {}
