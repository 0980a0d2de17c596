//! Page frames, of which memory consists, and the lists that they are on.
//!
//! Memory is reserved for all frames with the machine. A list is a chain of indexes through them, so that moving a page
//! allocates nothing.

use std::ops::Range;

use readahead::Page;

/// Index of a frame.
pub(crate) type FrameId = u32;

/// No process.
pub(crate) const NOBODY: u32 = u32::MAX;

/// No frame.
const NO_FRAME: FrameId = u32::MAX;

/// The flags of a cached page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(u16);

impl Flags {
    /// Its contents have arrived.
    pub(crate) const UP_TO_DATE: Flags = Flags(1);
    /// Used since the bit was last cleared.
    pub(crate) const REFERENCED: Flags = Flags(1 << 1);
    /// On the active list.
    pub(crate) const ACTIVE: Flags = Flags(1 << 2);
    /// Carries the mark of the kernel's policy.
    pub(crate) const MARKED: Flags = Flags(1 << 3);
    /// Read ahead, and not used so far.
    pub(crate) const AHEAD: Flags = Flags(1 << 4);
    /// Written to, and not yet on the device.
    pub(crate) const DIRTY: Flags = Flags(1 << 5);
    /// In flight to or from the device.
    pub(crate) const LOCKED: Flags = Flags(1 << 6);
    /// In page tables.
    pub(crate) const MAPPED: Flags = Flags(1 << 7);
    /// Used through page tables since the last check.
    pub(crate) const YOUNG: Flags = Flags(1 << 8);
    /// Used since it was brought in.
    pub(crate) const USED: Flags = Flags(1 << 9);
    /// A reader waits for it, or was woken and has not used it yet, so it stays.
    pub(crate) const PINNED: Flags = Flags(1 << 10);

    pub(crate) fn has(self, bit: Flags) -> bool {
        self.0 & bit.0 != 0
    }

    pub(crate) fn set(&mut self, bit: Flags) {
        self.0 |= bit.0;
    }

    pub(crate) fn clear(&mut self, bit: Flags) {
        self.0 &= !bit.0;
    }

    /// Clears the bit. Returns whether it was set.
    pub(crate) fn take(&mut self, bit: Flags) -> bool {
        let was_set = self.has(bit);
        self.clear(bit);
        was_set
    }
}

/// One page of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) file: u32,
    pub(crate) page: u32,
    next: FrameId,
    previous: FrameId,
    /// The process by or for which it was brought in, as long as only that process has used it, at most once.
    pub(crate) owner: u32,
    /// The transfer that locks it.
    pub(crate) transfer: u32,
    pub(crate) flags: Flags,
    /// Its zone.
    pub(super) zone: u8,
    /// Why it was read: the index of the cause.
    pub(crate) cause: u8,
    /// log2 of the number of pages in its folio.
    pub(super) order: u8,
}

impl Frame {
    /// The pages of its folio.
    pub(super) fn folio(&self) -> Range<Page> {
        let first = u64::from(self.page) >> self.order << self.order;
        first..first + (1 << self.order)
    }

    /// Whether a page of the same file belongs to its folio.
    pub(crate) fn shares_folio_with(&self, page: Page) -> bool {
        self.folio().contains(&page)
    }

    /// Notes a use of the page by a process. If the process uses it again, or has not brought it in, the page must
    /// stay.
    pub(crate) fn note_use(&mut self, process: u32) {
        if self.flags.has(Flags::USED) || self.owner != process {
            self.owner = NOBODY;
        }
        self.flags.set(Flags::USED);
    }
}

/// Every frame of the machine that was ever used.
#[derive(Debug)]
pub(crate) struct Frames {
    all: Vec<Frame>,
}

impl Frames {
    /// Room for so many frames. None is written to before its first use: most machines use few of theirs.
    pub(crate) fn new(count: usize) -> Self {
        Frames { all: Vec::with_capacity(count) }
    }

    /// Makes the frame of a zone, and those before it, unless they are there.
    pub(crate) fn begin(&mut self, id: FrameId, zone: u8) {
        let unused = Frame {
            file: u32::MAX,
            page: 0,
            next: NO_FRAME,
            previous: NO_FRAME,
            owner: NOBODY,
            transfer: 0,
            flags: Flags::default(),
            zone,
            cause: 0,
            order: 0,
        };
        let least = id as usize + 1;
        self.all.resize(self.all.len().max(least), unused);
        self[id].zone = zone;
    }
}

impl std::ops::Index<FrameId> for Frames {
    type Output = Frame;

    fn index(&self, id: FrameId) -> &Frame {
        &self.all[id as usize]
    }
}

impl std::ops::IndexMut<FrameId> for Frames {
    fn index_mut(&mut self, id: FrameId) -> &mut Frame {
        &mut self.all[id as usize]
    }
}

/// A list of frames: young ones enter at the head, old ones leave at the tail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    head: FrameId,
    tail: FrameId,
    len: u64,
}

impl List {
    pub(crate) const EMPTY: List = List { head: NO_FRAME, tail: NO_FRAME, len: 0 };

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn push_head(&mut self, frames: &mut Frames, id: FrameId) {
        frames[id].previous = NO_FRAME;
        frames[id].next = self.head;
        if self.head == NO_FRAME {
            self.tail = id;
        } else {
            frames[self.head].previous = id;
        }
        self.head = id;
        self.len += 1;
    }

    pub(crate) fn push_tail(&mut self, frames: &mut Frames, id: FrameId) {
        frames[id].next = NO_FRAME;
        frames[id].previous = self.tail;
        if self.tail == NO_FRAME {
            self.head = id;
        } else {
            frames[self.tail].next = id;
        }
        self.tail = id;
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, frames: &mut Frames, id: FrameId) {
        let Frame { next, previous, .. } = frames[id];
        if previous == NO_FRAME {
            self.head = next;
        } else {
            frames[previous].next = next;
        }
        if next == NO_FRAME {
            self.tail = previous;
        } else {
            frames[next].previous = previous;
        }
        self.len -= 1;
    }

    /// The frame at the tail.
    pub(super) fn oldest(&self) -> Option<FrameId> {
        (self.tail != NO_FRAME).then_some(self.tail)
    }

    pub(crate) fn pop_tail(&mut self, frames: &mut Frames) -> Option<FrameId> {
        let id = self.tail;
        if id == NO_FRAME {
            return None;
        }
        self.remove(frames, id);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_its_order_and_length() {
        let mut frames = Frames::new(4);
        frames.begin(3, 0);
        let mut list = List::EMPTY;
        list.push_head(&mut frames, 0);
        list.push_head(&mut frames, 1);
        list.push_tail(&mut frames, 2);
        list.push_head(&mut frames, 3);
        list.remove(&mut frames, 0);
        assert_eq!(list.len(), 3);
        let order: Vec<_> = std::iter::from_fn(|| list.pop_tail(&mut frames)).collect();
        assert_eq!(order, [2, 1, 3]);
        assert_eq!(list.len(), 0);
    }

    #[test]
    fn a_flag_is_taken_once() {
        let mut flags = Flags::default();
        flags.set(Flags::MARKED);
        flags.set(Flags::DIRTY);
        assert!(flags.take(Flags::MARKED));
        assert!(!flags.take(Flags::MARKED));
        assert!(flags.has(Flags::DIRTY));
    }
}
