//! No read-ahead: reads exactly the requests. Shows what read-ahead is worth.

use readahead::Cause;
use readahead::{Nanos, Via};

use crate::access::{Access, Trigger};
use crate::plan::Plan;
use crate::policy::KernelPolicy;
use crate::view::KernelView;

/// Reads what is requested, when it is requested.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoReadAhead;

impl KernelPolicy for NoReadAhead {
    fn name(&self) -> &'static str {
        "none"
    }

    fn on_access(&mut self, access: &Access, _cache: &dyn KernelView, plan: &mut Plan) {
        if access.trigger != Trigger::Absent {
            return;
        }
        let request = match access.via {
            Via::Read => u64::from(access.request.max(1)),
            Via::Mmap => 1,
        };
        plan.read(access.page, request, access.file_pages, Cause::Random);
    }

    fn forget_idle(&mut self, _now: Nanos, _idle: Nanos) {}
}
