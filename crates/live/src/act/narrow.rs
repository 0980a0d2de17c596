//! Narrow windows for files that are mapped and read at random.
//!
//! The kernel reads a whole window around each page fault that finds no page. A policy that sees this
//! in vain has the window narrowed for the open file: as all that is known of a fault is its process and
//! its inode, for the one descriptor of the process that leads there. Where the program has closed it,
//! as programs may after `mmap(2)`, or has several that are no duplicates, nothing is done, and the read-around stays.

use std::collections::HashMap;

use crate::observe::Event;

/// A file as a process has mapped it; the upper bits tell it from an open file's identity, which is a
/// kernel address.
pub(super) fn identity(event: &Event) -> u64 {
    let mixed = event.file.id().0 ^ u64::from(event.tgid);
    mixed & (u64::MAX >> 1) | 1 << 62
}

#[derive(Clone, Copy)]
struct Entry {
    /// Pages of the window it was given; `None` where that could not be done.
    pages: Option<u32>,
    tried_at: u64,
    heard_at: u64,
}

/// Which files were narrowed.
#[derive(Default)]
pub(super) struct Narrowed {
    files: HashMap<u64, Entry>,
}

impl Narrowed {
    /// The window of what the event came through: faults do not tell, but what was set here is known.
    pub(super) fn window_of(&self, event: &Event) -> u32 {
        if self.files.is_empty() || !event.mapped {
            return event.kernel_window;
        }
        let entry = self.files.get(&identity(event));
        entry.and_then(|entry| entry.pages).unwrap_or(event.kernel_window)
    }

    /// It is still being read.
    pub(super) fn hear(&mut self, event: &Event) {
        if self.files.is_empty() {
            return;
        }
        if let Some(entry) = self.files.get_mut(&identity(event)) {
            entry.heard_at = event.now;
        }
    }

    /// Whether it was tried since `moment`.
    pub(super) fn is_tried(&self, event: &Event, moment: u64) -> bool {
        self.files.get(&identity(event)).is_some_and(|entry| entry.tried_at >= moment)
    }

    pub(super) fn note(&mut self, event: &Event, pages: Option<u32>) {
        let entry = Entry { pages, tried_at: event.now, heard_at: event.now };
        self.files.insert(identity(event), entry);
    }

    /// Forgets it; tells whether it was narrowed.
    pub(super) fn remove(&mut self, event: &Event) -> bool {
        self.files.remove(&identity(event)).is_some_and(|entry| entry.pages.is_some())
    }

    /// Forgets those not heard of since `moment`, giving each that was narrowed to `widen`.
    pub(super) fn forget_before(&mut self, moment: u64, mut widen: impl FnMut(u64)) {
        self.files.retain(|identity, entry| {
            let is_read = entry.heard_at >= moment;
            if !is_read && entry.pages.is_some() {
                widen(*identity);
            }
            is_read
        });
    }
}
