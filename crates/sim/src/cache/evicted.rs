//! What a file's page table keeps of a page that is not cached.
//!
//! ```text
//!   0 ..        the frame of a cached page
//!   u32::MAX    not cached, and not evicted so far
//!   below it    evicted after it was used
//!   below that  evicted unused: one entry a cause, as the class that read the page answers for it
//! ```

use readahead::{Cause, Page};

use super::{FrameId, PageCache};

/// The page is not cached.
pub(super) const ABSENT: u32 = u32::MAX;

/// The page was evicted after it was used.
const USED: u32 = ABSENT - 1;

/// The page was evicted before it was used, having been read for the first cause.
const FIRST_UNUSED: u32 = USED - Cause::ALL.len() as u32;

/// How a page went that was cached before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evicted {
    /// Read ahead and never used; the index of its cause.
    Unused { cause: u8 },
    /// Read and used, or written.
    Used,
}

impl Evicted {
    /// The table's entry.
    pub(super) fn entry(self) -> u32 {
        match self {
            Evicted::Unused { cause } => FIRST_UNUSED + u32::from(cause),
            Evicted::Used => USED,
        }
    }

    /// What an entry says, if it is that of a page that was evicted.
    pub(super) fn from_entry(entry: u32) -> Option<Self> {
        match entry {
            FIRST_UNUSED..USED => Some(Evicted::Unused { cause: (entry - FIRST_UNUSED) as u8 }),
            USED => Some(Evicted::Used),
            _ => None,
        }
    }
}

/// Whether an entry is a frame's number.
#[inline]
pub(super) fn is_frame(entry: u32) -> bool {
    entry < FIRST_UNUSED
}

impl PageCache {
    /// Whether a page was evicted before anything used it, and has not been read since.
    pub(crate) fn was_evicted_unused(&self, file: u32, page: Page) -> bool {
        matches!(self.evicted(file, page), Some(Evicted::Unused { .. }))
    }

    /// How an absent page went, if it was cached before.
    fn evicted(&self, file: u32, page: Page) -> Option<Evicted> {
        Evicted::from_entry(*self.files[file as usize].table.get(page as usize)?)
    }

    /// Takes a frame for an absent page that is to be read, and counts it if it was cached before: tells
    /// how it went then. `None` if every frame is locked or dirty.
    pub(crate) fn insert_read(
        &mut self,
        file: u32,
        page: Page,
        cause: Cause,
    ) -> Option<(FrameId, Option<Evicted>)> {
        let evicted = self.evicted(file, page);
        let id = self.insert(file, page, cause)?;
        match evicted {
            Some(Evicted::Unused { .. }) => self.counters.read_again += 1,
            Some(Evicted::Used) => self.counters.refaulted += 1,
            None => {}
        }
        Some((id, evicted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_tells_frames_from_evicted_pages_and_their_cause() {
        for cause in Cause::ALL {
            let evicted = Evicted::Unused { cause: cause as u8 };
            assert_eq!(Evicted::from_entry(evicted.entry()), Some(evicted));
            assert!(!is_frame(evicted.entry()));
        }
        assert_eq!(Evicted::from_entry(Evicted::Used.entry()), Some(Evicted::Used));
        assert!(!is_frame(Evicted::Used.entry()));
        assert_eq!((Evicted::from_entry(ABSENT), Evicted::from_entry(0)), (None, None));
        assert!(is_frame(0) && !is_frame(ABSENT));
    }
}
