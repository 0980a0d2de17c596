//! Events as policies see them, and plans as they are carried out.

use readahead::{Access, Action, Hint, OpenFileId, PAGE_BYTES, Plan, Trigger, Via};

use crate::observe::{Event, Kind};

/// The window in KiB with which the kernel would read this by itself: the plan is one range ahead
/// of a plain reader, whose window is smaller so far.
pub(super) fn forward_window(event: &Event, ranges: &[(u64, u64)]) -> Option<u64> {
    let [(start, pages)] = ranges else { return None };
    let is_ahead = *start > event.page && !event.mapped && event.kind != Kind::Fault;
    let is_larger = *pages > u64::from(event.kernel_window);
    (is_ahead && is_larger).then_some(pages * PAGE_BYTES / 1024)
}

/// The event as a policy sees it.
pub(super) fn access_of(event: &Event) -> Access {
    let hint = if event.advised_random {
        Hint::Random
    } else if event.advised_sequential {
        Hint::Sequential
    } else {
        Hint::Normal
    };
    Access {
        file: event.file.id(),
        volume: event.file.dev.volume(),
        open_file: OpenFileId(event.open_file),
        page: event.page,
        request: event.request_pages,
        previous: event.previous,
        trigger: match event.kind {
            Kind::Miss | Kind::Fault => Trigger::Absent,
            Kind::KernelMark | Kind::Mark | Kind::Passed { .. } => Trigger::Mark,
        },
        via: if event.mapped { Via::Mmap } else { Via::Read },
        hint,
        file_pages: event.file_bytes.div_ceil(PAGE_BYTES),
        kernel_window: event.kernel_window,
        now: event.now,
    }
}

pub(super) fn ranges_of(plan: &Plan) -> Vec<(u64, u64)> {
    let reads = plan.actions().iter();
    reads
        .filter_map(|action| match action {
            Action::Read { start, pages, .. } => Some((*start, *pages)),
            Action::Mark(_) | Action::KernelWindow { .. } => None,
        })
        .collect()
}

/// Most pages that the kernel is to read at a time for this open file.
pub(super) fn kernel_window_of(plan: &Plan) -> Option<u32> {
    plan.actions().iter().find_map(|action| match action {
        Action::KernelWindow { pages } => Some(*pages),
        Action::Read { .. } | Action::Mark(_) => None,
    })
}
