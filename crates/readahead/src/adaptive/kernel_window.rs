//! Sizes of the kernel's own window, in pages.

/// The kernel's own default window, 128 KiB.
pub(super) const KERNEL_WINDOW_PAGES: u32 = 32;

/// The narrowest window: the page itself. With `ra_pages` 0 the kernel would read even a long request page by page.
pub(super) const NARROW_PAGES: u32 = 1;
