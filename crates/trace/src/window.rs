//! What the kernel brought into its cache.

use std::ops::Range;

use readahead::{Nanos, PAGE_BYTES};

use crate::{MAX_FILE_BYTES, MAX_TIME};

/// Why the kernel brought pages in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A read lacked a page, or came to the kernel's look-ahead mark.
    Read,
    /// A page fault did.
    Fault,
    /// The process had asked for them to be read ahead: `readahead`, `posix_fadvise` or `madvise`.
    Request,
}

impl Reason {
    /// All kinds.
    pub const ALL: [Reason; 3] = [Reason::Read, Reason::Fault, Reason::Request];

    /// The reason in lower case, as the Python package names it.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Read => "read",
            Reason::Fault => "fault",
            Reason::Request => "request",
        }
    }
}

/// Adjoining pages of a file that the kernel brought into its cache at once, before they came from the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// When the first of them entered the cache.
    pub at: Nanos,
    /// For whom: index into [`Trace::processes`](crate::Trace::processes). `None`: a process that does nothing else in
    /// the trace, such as one that only reads ahead for others.
    pub process: Option<u32>,
    /// Index into [`Trace::files`](crate::Trace::files).
    pub file: u32,
    /// The pages, one at least.
    pub pages: Range<u64>,
    /// Those of them for which the read or fault itself had asked. The others were read ahead.
    pub asked: Range<u64>,
    /// Why.
    pub reason: Reason,
}

impl Window {
    /// How many pages it has.
    pub fn len(&self) -> u64 {
        self.pages.end.saturating_sub(self.pages.start)
    }

    /// Whether it has none, which no window of a trace does.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Whether it can be in a trace.
    pub(crate) fn is_within_limits(&self) -> bool {
        let Window { at, ref pages, ref asked, .. } = *self;
        let is_part = asked.is_empty() || (pages.start <= asked.start && asked.end <= pages.end);
        let is_in_place = pages.end <= MAX_FILE_BYTES / PAGE_BYTES;
        !self.is_empty() && is_in_place && is_part && at <= MAX_TIME
    }

    /// Adds a part that came later, if it is one: a thread may be stopped while the kernel brings pages in for it.
    pub(crate) fn extend(&mut self, part: &Window) -> bool {
        let is_part = (self.at, self.process, self.file, self.reason)
            == (part.at, part.process, part.file, part.reason)
            && self.pages.end == part.pages.start;
        if is_part {
            self.pages.end = part.pages.end;
            let is_first = self.asked.is_empty();
            self.asked = match part.asked.is_empty() {
                true => self.asked.clone(),
                false if is_first => part.asked.clone(),
                false => self.asked.start..part.asked.end,
            };
        }
        is_part
    }
}
