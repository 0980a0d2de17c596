//! Sizes of the kernel's own window, in pages.

use crate::{PAGE_BYTES, STOCK_WINDOW_KB};

/// The kernel's own default window.
pub(super) const KERNEL_WINDOW_PAGES: u32 = (STOCK_WINDOW_KB * 1024 / PAGE_BYTES) as u32;

/// The narrowest window: the page itself. With `ra_pages` 0 the kernel would read even a long request page by page.
pub(super) const NARROW_PAGES: u32 = 1;
