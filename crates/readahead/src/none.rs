//! No read-ahead: every request is read as it is, for what read-ahead is worth to be seen.

use crate::Policy;
use crate::access::{Access, Nanos, Trigger, Via};
use crate::cache::CacheView;
use crate::plan::{Cause, Plan};

/// Reads what is asked for, when it is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoReadAhead;

impl Policy for NoReadAhead {
    fn name(&self) -> &'static str {
        "none"
    }

    fn on_access(&mut self, access: &Access, _cache: &dyn CacheView, plan: &mut Plan) {
        if access.trigger != Trigger::Absent {
            return;
        }
        let request = match access.via {
            Via::Read => u64::from(access.request.max(1)),
            Via::Mmap => 1,
        };
        plan.read_within(access.page, request, access.file_pages, Cause::Random);
    }

    fn forget_idle(&mut self, _now: Nanos, _idle: Nanos) {}
}
