//! The streams followed in one file.

use super::access_context::AccessContext;
use super::stream::Stream;
use crate::access::Nanos;

/// Streams followed in one file: more than programs interleave on one descriptor, and a bit each in `taken`.
const STREAMS: usize = 32;

/// A place in the set.
pub(super) type Slot = usize;

#[derive(Debug)]
pub(super) struct Streams {
    slots: [Option<Stream>; STREAMS],
    /// A bit for each slot that is taken: most files have one stream.
    taken: u32,
}

impl Streams {
    pub(super) fn new() -> Self {
        Streams { slots: [None; STREAMS], taken: 0 }
    }

    /// The stream in a slot that [`nearest`](Self::nearest) returned.
    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut Stream> {
        self.slots[slot].as_mut()
    }

    /// The slot of the stream that the access continues most closely, of those for which `kind` holds. A reader that
    /// should have been seen by now comes after all others: where somebody reads a file again, the streams of the last
    /// time are still known.
    pub(super) fn nearest(
        &self,
        context: &AccessContext,
        kind: impl Fn(&Stream) -> bool,
    ) -> Option<Slot> {
        let mut nearest = None;
        for slot in bits(self.taken) {
            let Some(stream) = self.slots[slot].as_ref().filter(|stream| kind(stream)) else {
                continue;
            };
            let Some(distance) = stream.distance(context) else {
                continue;
            };
            let rank = (stream.has_stopped(context.access.now), distance);
            if nearest.is_none_or(|(least, _)| rank < least) {
                nearest = Some((rank, slot));
            }
        }
        nearest.map(|(_, slot)| slot)
    }

    pub(super) fn each(&mut self, mut look_at: impl FnMut(&mut Stream)) {
        bits(self.taken).for_each(|slot| {
            if let Some(stream) = &mut self.slots[slot] {
                look_at(stream);
            }
        });
    }

    /// Gives a new stream a place. If all are taken, the stream used longest ago goes to `forget`.
    pub(super) fn admit(&mut self, stream: Stream, forget: impl FnOnce(Stream)) -> &mut Stream {
        let age = |i: &Slot| self.slots[*i].as_ref().map_or(0, |s| s.used_at.saturating_add(1));
        let oldest = (0..STREAMS).min_by_key(age).unwrap_or(0);
        if let Some(forgotten) = self.slots[oldest].take() {
            forget(forgotten);
        }
        self.taken |= 1 << oldest;
        self.slots[oldest].insert(stream)
    }

    /// Ends the streams last used before `moment`, giving each to `forget`.
    pub(super) fn forget_before(&mut self, moment: Nanos, mut forget: impl FnMut(Stream)) {
        for slot in bits(self.taken) {
            if let Some(forgotten) = self.slots[slot].take_if(|stream| stream.used_at < moment) {
                self.taken &= !(1 << slot);
                forget(forgotten);
            }
        }
    }
}

/// The bits that are set, lowest first.
fn bits(mut set: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (set != 0).then(|| set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        bit
    })
}
