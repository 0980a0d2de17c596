//! Pages that could not be dropped at once: not written yet, mapped, or held by somebody.

use readahead::behind::{Span, Unused};

use super::Behind;
use super::release::Release;
use crate::Nanos;
use crate::ids::{StreamKey, Ticket};
use crate::orders::Orders;

/// Delay before the first retry. It doubles with each further one, up to the longest.
pub(super) const FIRST_DELAY_NS: Nanos = 50_000_000;
const LONGEST_DELAY_NS: Nanos = 6_400_000_000;

/// Interval between retries while pages are being written, since the disk takes them bit by bit.
const WRITING_DELAY_NS: Nanos = 100_000_000;

/// Retries for mapped or held pages, half a minute in all; the rest is left to the stream's end. Pages being written
/// are retried for ten minutes, and at the end for as long as bowwave waits for them.
const MOST_TRIES: u32 = 10;
const MOST_TRIES_WRITING: u32 = 6000;

/// Most spans that wait to become clean. Beyond that, the oldest stay cached.
const MOST_WAITING: usize = 4096;

const NOTHING: Span = Span { start: 0, end: 0 };

/// A span with pages that could not be dropped, and when to retry.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) release: Release,
    due: Nanos,
}

impl Waiting {
    /// Whether this is in `span` of the stream, so that a release at the stream's end would ask for the same again.
    pub(super) fn is_within(&self, stream: StreamKey, span: Span) -> bool {
        let release = &self.release;
        let is_inside = span.start <= release.span.start && release.span.end <= span.end;
        release.stream == stream && is_inside && release.counted.pages() == 0
    }
}

impl Behind {
    /// Asks for a release, or lets it wait if too many are under way.
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

    /// Retries these pages only at the stream's end.
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
            // Pages may have become dirty again, as those at the ends of steps do.
            if release.stream.written {
                self.releases.write_out(release.of, release.span, orders);
            }
            self.release(release, orders);
        }
    }

    /// A release was answered.
    pub(crate) fn on_released(
        &mut self,
        now: Nanos,
        ticket: Ticket,
        (dropped_pages, kept_pages): (u64, u64),
        left: &[(Span, u64)],
    ) {
        let Some((release, is_there)) = self.releases.answered(ticket) else { return };
        let Release { stream, delay, tries, .. } = release;
        // It cannot be more than was requested.
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
            // The end of a stream repeats earlier requests.
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
