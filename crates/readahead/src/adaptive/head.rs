//! Whether the head of a disk stays where a stream has left it: it does while nobody else reads.

/// A stream that goes on so often in a row, with no other access between, is alone.
const ALONE_AFTER: u32 = 16;

/// The accesses to one volume.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Head {
    /// How many there were.
    accesses: u64,
    /// How often in a row a stream went on with the next one.
    undisturbed: u32,
}

/// An access by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AccessNumber(u64);

impl Head {
    /// The next access.
    pub(super) fn access(&mut self) -> AccessNumber {
        self.accesses += 1;
        AccessNumber(self.accesses)
    }

    /// A stream goes on with the latest access; `last` was the one before of that stream.
    pub(super) fn goes_on(&mut self, last: AccessNumber) {
        let is_undisturbed = last.0 + 1 == self.accesses;
        self.undisturbed = if is_undisturbed { self.undisturbed.saturating_add(1) } else { 0 };
    }

    /// Whether streams find the head where they have left it.
    pub(super) fn stays(&self) -> bool {
        self.undisturbed >= ALONE_AFTER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_stays_once_a_stream_was_alone_for_some_time() {
        let mut head = Head::default();
        let mut last = head.access();
        for number in 0..ALONE_AFTER {
            assert!(!head.stays(), "{number}");
            let next = head.access();
            head.goes_on(last);
            last = next;
        }
        assert!(head.stays());
        head.access();
        assert!(head.stays(), "the stream may have ended: this is the start of another");
        head.access();
        head.goes_on(last);
        assert!(!head.stays(), "it goes on after another");
    }
}
