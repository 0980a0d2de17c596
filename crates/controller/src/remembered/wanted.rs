//! What an access says of the pages that a command needs.

use readahead::PAGE_BYTES;
use readahead::behind::Span;

use super::range::RANGE_PAGES;
use crate::input::{Access, Kind};
use crate::kernel_window::first_window;

/// The pages that the kernel itself reads for an access, so that a start without any list reads no less.
pub(super) fn wanted(access: &Access) -> Span {
    let file_pages = access.file_bytes.div_ceil(PAGE_BYTES);
    let window = u64::from(access.kernel_window);
    let request = u64::from(access.request_pages);
    let is_forward = access.page == 0
        || access.previous.is_some_and(|before| access.page.wrapping_sub(before) <= 1);
    let (start, pages) = match access.kind {
        _ if access.advice.random => (access.page, request),
        Kind::Fault => (access.page.saturating_sub(window / 2), window),
        Kind::Miss | Kind::Mark if is_forward => {
            (access.page, request.max(first_window(request, window)))
        }
        Kind::KernelMark => (access.page, request.max(window)),
        Kind::Miss | Kind::Mark => (access.page, request),
    };
    let start = start.min(file_pages);
    Span { start, end: (start + pages.clamp(1, RANGE_PAGES)).min(file_pages) }
}
