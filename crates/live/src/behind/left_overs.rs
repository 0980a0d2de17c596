//! What could not go at once: not written yet, mapped, or held by somebody.

use linux::mounts::Mount;
use readahead::behind::{Span, Unused};

use super::release::{Release, Released};
use super::{Behind, MountOf};
use crate::observe::{Event, StreamKey};

/// What could not go is tried again after so long, each time twice as long.
pub(super) const FIRST_DELAY_NS: u64 = 50_000_000;
const LONGEST_DELAY_NS: u64 = 6_400_000_000;

/// What is being written is tried so often: the disk takes it bit by bit.
const WRITING_DELAY_NS: u64 = 100_000_000;

/// What is mapped or held is left to the stream's end after so many tries, half a minute; what is being
/// written is given ten minutes, and at the end as long as that is waited for.
const MOST_TRIES: u32 = 10;
const MOST_TRIES_WRITING: u32 = 6000;

/// Spans that wait to become clean; of further ones the oldest stay cached.
const MOST_WAITING: usize = 4096;

/// A span some pages of which could not go.
pub(super) struct Waiting {
    pub(super) stream: StreamKey,
    event: Event,
    pub(super) span: Span,
    /// Not looked at yet: what stays of this is still to be counted.
    pub(super) counted: Span,
    pub(super) pages: u64,
    unused: Unused,
    due: u64,
    delay: u64,
    tries: u32,
}

const NOTHING: Span = Span { start: 0, end: 0 };

impl Behind {
    /// Hands over `span`, of which goes what may go when it is looked at: so many `pages`, it is thought;
    /// what stays of `counted` is counted.
    pub(super) fn release(
        &mut self,
        (stream, event): (StreamKey, &Event),
        span: Span,
        counted: Span,
        pages: u64,
        (unused, delay, tries): (Unused, u64, u32),
        mount: &Mount,
    ) {
        let of = self.streams.get(&stream).and_then(|of| of.terms);
        let unmaps = event.mapped && of.is_some_and(|terms| terms.engage_pages == 0);
        let event = *event;
        if event.mapped && !unmaps && unused == Unused::Stay {
            self.totals.kept_pages += counted.pages();
        } else if self.hands.has_room(stream.file.dev) {
            let release =
                Release { stream, event, span, counted, pages, unused, unmaps, delay, tries };
            self.hands.release(release, mount);
        } else {
            let due = event.now + delay;
            self.wait(Waiting { stream, event, span, counted, pages, unused, due, delay, tries });
        }
    }

    fn wait(&mut self, waiting: Waiting) {
        if self.waiting.len() == MOST_WAITING {
            let oldest = self.waiting.remove(0);
            self.give_up(oldest.stream, oldest.pages);
        }
        self.waiting.push(waiting);
    }

    /// These pages are not tried again, but for the stream's end.
    fn give_up(&mut self, stream: StreamKey, pages: u64) {
        match self.streams.get_mut(&stream) {
            Some(stream) => stream.left_pages += pages,
            None => self.totals.left_pages += pages,
        }
    }

    pub(super) fn try_again(&mut self, now: u64, mount_of: MountOf<'_>) {
        let due = |waiting: &mut Waiting| waiting.due <= now;
        let due: Vec<Waiting> = self.waiting.extract_if(.., due).collect();
        for waiting in due {
            if !self.hands.has_room(waiting.stream.file.dev) {
                self.waiting.push(Waiting { due: now + waiting.delay, ..waiting });
                continue;
            }
            let Some(mount) = mount_of(waiting.stream.file.dev) else { continue };
            // Pages dirtied again since, as those at the ends of steps are.
            if waiting.stream.written {
                self.hands.write_out(&waiting.event, waiting.span, mount);
            }
            let of = (waiting.stream, &waiting.event);
            let how = (waiting.unused, waiting.delay, waiting.tries);
            self.release(of, waiting.span, waiting.counted, waiting.pages, how, mount);
        }
    }

    /// Notes what became of a release.
    pub(super) fn note(&mut self, done: Released, now: u64) {
        self.totals.dropped_pages += done.dropped_pages;
        self.totals.kept_pages += done.kept_pages;
        let Release { stream, event, unused, delay, tries, .. } = done.of;
        let (longest, most_tries) = match stream.written {
            true => (WRITING_DELAY_NS, MOST_TRIES_WRITING),
            false => (LONGEST_DELAY_NS, MOST_TRIES),
        };
        let is_waited_for = stream.written && self.is_finishing;
        if tries >= most_tries && !is_waited_for {
            return self.give_up(stream, done.left.iter().map(|(_, pages)| pages).sum());
        }
        let (due, delay, tries) = (now + delay, (delay * 2).min(longest), tries + 1);
        for (span, pages) in done.left {
            // The end of a stream asks for what was asked for already.
            let is_same = |old: &Waiting| old.stream == stream && old.span == span;
            self.waiting.retain(|old| !is_same(old) || old.counted.pages() > 0);
            let counted = NOTHING;
            self.wait(Waiting { stream, event, span, counted, pages, unused, due, delay, tries });
        }
    }
}
