//! Sizes of the kernel's own window, in pages.

/// The kernel's own default window, 128 KiB.
pub(super) const KERNEL_WINDOW_PAGES: u32 = 32;

/// The narrowest window: the page itself. With none at all (`ra_pages` 0), the kernel reads page by
/// page even what a program asks for at once.
pub(super) const NARROW_PAGES: u32 = 1;
