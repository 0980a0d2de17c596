//! A policy that knows the length of each run, but not where the next one begins.

use historical::{Access, KernelPolicy, KernelView, Plan, Trigger};
use patterns::order::Read;
use readahead::{Cause, Nanos};

/// Requests the whole run at its first miss.
#[derive(Debug)]
pub(super) struct Clairvoyant {
    /// The runs of each file as `[first, end)`, in pages and ascending order.
    files: Vec<Vec<(u64, u64)>>,
}

impl Clairvoyant {
    /// A policy that knows the runs of each file, given as offset and bytes in any order.
    pub(super) fn new(files: &[Vec<Read>]) -> Self {
        let pages = |runs: &Vec<Read>| {
            let pages = |(at, bytes): &Read| (at / 4096, (at + bytes).div_ceil(4096));
            let mut runs: Vec<_> = runs.iter().map(pages).collect();
            runs.sort_unstable();
            runs
        };
        Clairvoyant { files: files.iter().map(pages).collect() }
    }
}

impl KernelPolicy for Clairvoyant {
    fn name(&self) -> &'static str {
        "clairvoyant"
    }

    fn on_access(&mut self, access: &Access, _cache: &dyn KernelView, plan: &mut Plan) {
        let Some(runs) = self.files.get(access.file.0 as usize) else { return };
        let after = runs.partition_point(|(first, _)| *first <= access.page);
        let run = after.checked_sub(1).and_then(|index| runs.get(index));
        if let Some((first, end)) = run
            && access.page < *end
            && access.trigger == Trigger::Absent
        {
            plan.read(*first, end - first, access.file_pages, Cause::Sequential);
        }
    }

    fn forget_idle(&mut self, _now: Nanos, _idle: Nanos) {}
}
