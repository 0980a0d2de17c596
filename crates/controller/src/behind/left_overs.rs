//! What could not go at once: not written yet, mapped, or held by somebody.

use readahead::behind::{Span, Unused};

use super::Behind;
use super::release::Release;
use crate::Nanos;
use crate::ids::{StreamKey, Ticket};
use crate::orders::Orders;

/// What could not go is tried again after so long, each time twice as long.
pub(super) const FIRST_DELAY_NS: Nanos = 50_000_000;
const LONGEST_DELAY_NS: Nanos = 6_400_000_000;

/// What is being written is tried so often: the disk takes it bit by bit.
const WRITING_DELAY_NS: Nanos = 100_000_000;

/// What is mapped or held is left to the stream's end after so many tries, half a minute; what is being written is
/// given ten minutes, and at the end as long as that is waited for.
const MOST_TRIES: u32 = 10;
const MOST_TRIES_WRITING: u32 = 6000;

/// Spans that wait to become clean; of further ones the oldest stay cached.
const MOST_WAITING: usize = 4096;

const NOTHING: Span = Span { start: 0, end: 0 };

/// A span some pages of which could not go, and when it is tried again.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) release: Release,
    due: Nanos,
}

impl Waiting {
    /// Whether a release of `span` at the stream's end would ask for the same again.
    pub(super) fn is_within(&self, stream: StreamKey, span: Span) -> bool {
        let release = &self.release;
        let is_inside = span.start <= release.span.start && release.span.end <= span.end;
        release.stream == stream && is_inside && release.counted.pages() == 0
    }
}

impl Behind {
    /// Lets go of what may go; what cannot be asked for now waits.
    pub(super) fn release(&mut self, release: Release, orders: &mut Orders<'_>) {
        if release.mapped && !release.unmaps && release.unused == Unused::Stay {
            self.totals.keep(release.counted.pages());
        } else if self.releases.have_room(release.stream.file.dev) {
            self.releases.release(release, orders);
        } else {
            self.wait(Waiting { release, due: orders.now.saturating_add(release.delay) });
        }
    }

    fn wait(&mut self, waiting: Waiting) {
        if self.waiting.len() == MOST_WAITING {
            let Release { stream, pages, .. } = self.waiting.remove(0).release;
            self.give_up(stream, pages);
        }
        self.waiting.push(waiting);
    }

    /// These pages are not tried again, but for the stream's end.
    fn give_up(&mut self, stream: StreamKey, pages: u64) {
        match self.streams.get_mut(&stream) {
            Some(stream) => stream.left_pages = stream.left_pages.saturating_add(pages),
            None => self.totals.leave(pages),
        }
    }

    pub(super) fn try_again(&mut self, orders: &mut Orders<'_>) {
        let now = orders.now;
        let due: Vec<Waiting> = self.waiting.extract_if(.., |waiting| waiting.due <= now).collect();
        for Waiting { release, .. } in due {
            if !self.releases.have_room(release.stream.file.dev) {
                self.waiting.push(Waiting { release, due: now.saturating_add(release.delay) });
                continue;
            }
            // Pages dirtied again since, as those at the ends of steps are.
            if release.stream.written {
                self.releases.write_out(release.of, release.span, orders);
            }
            self.release(release, orders);
        }
    }

    /// What became of a release.
    pub(crate) fn on_released(
        &mut self,
        now: Nanos,
        ticket: Ticket,
        (dropped_pages, kept_pages): (u64, u64),
        left: &[(Span, u64)],
    ) {
        let Some((release, is_there)) = self.releases.answered(ticket) else { return };
        let Release { stream, delay, tries, .. } = release;
        // It cannot have been more than was asked for.
        let most = release.span.pages();
        self.totals.drop(dropped_pages.min(most));
        self.totals.keep(kept_pages.min(most));
        if !is_there {
            return;
        }
        let left = left.iter().map(|(span, pages)| {
            let span = span.within(release.span);
            (span, span.pages().min(*pages))
        });
        let left = left.filter(|(span, _)| span.pages() > 0);
        let (longest, most_tries) = match stream.written {
            true => (WRITING_DELAY_NS, MOST_TRIES_WRITING),
            false => (LONGEST_DELAY_NS, MOST_TRIES),
        };
        let is_waited_for = stream.written && self.is_finishing;
        if tries >= most_tries && !is_waited_for {
            return self.give_up(stream, left.map(|(_, pages)| pages).fold(0, u64::saturating_add));
        }
        for (span, pages) in left {
            // The end of a stream asks for what was asked for already.
            let is_same = |old: &Waiting| {
                old.release.stream == stream
                    && old.release.span == span
                    && old.release.counted.pages() == 0
            };
            self.waiting.retain(|old| !is_same(old));
            let delay_next = (delay * 2).min(longest);
            let (counted, tries) = (NOTHING, tries + 1);
            let again = Release { span, counted, pages, delay: delay_next, tries, ..release };
            self.wait(Waiting { release: again, due: now.saturating_add(delay) });
        }
    }

    /// Writing was started.
    pub(crate) fn on_wrote_out(&mut self, ticket: Ticket) {
        self.releases.wrote_out(ticket);
    }
}
