//! The ends of streams: finds those that have ended or paused and that nobody follows.

use std::collections::BTreeMap;

use readahead::behind::{Span, Unused};

use super::release::Release;
use super::stream::{Stream, passing};
use super::{Behind, IDLE_NS, pages_of};
use crate::command::Command;
use crate::ids::{FileKey, StreamKey, Tgid};
use crate::orders::Orders;

/// How far ahead of an ended reader its unread pages are searched for: 64 MiB.
const MOST_AHEAD_PAGES: u64 = 16_384;

/// How far back from a stream's end its pages are examined again: 4 GiB.
const MOST_SWEPT_PAGES: u64 = 1 << 20;

impl Behind {
    /// Deals with streams that have ended or paused and that nobody follows closely.
    pub(super) fn look_through(&mut self, orders: &mut Orders<'_>) {
        self.unsettled.clear();
        for key in self.quiet(orders) {
            let Some(stream) = self.streams.get_mut(&key) else { continue };
            let (has_ended, is_old) = (stream.has_ended, is_old(stream, orders));
            if !self.releases.have_room(key.file.dev) {
                self.unsettled.insert(key.file.dev);
                continue;
            }
            let Some(touched) = stream.rests_at.take() else {
                if stream.asks(orders.now) {
                    orders.out.push(Command::Touched(key));
                }
                continue;
            };
            // Pages read ahead may be for another reader of the file.
            let is_alone = self.of_file(key.file).all(|other| *other == key);
            let unused = if has_ended && is_alone { Unused::Go } else { Unused::Stay };
            self.settle(key, unused, touched, orders);
            if has_ended || is_old {
                let gone = self.streams.remove(&key);
                self.totals.leave(gone.map_or(0, |stream| stream.left_pages));
                orders.out.push(Command::ForgetStream(key));
            }
        }
        self.has_open_end = self.streams.values().any(|stream| !stream.is_settled);
        self.forget_processes(orders);
    }

    /// Streams through a file, without a search through all others.
    fn of_file(&self, file: FileKey) -> impl Iterator<Item = &StreamKey> {
        let first = StreamKey { file, tgid: 0, written: false };
        let last = StreamKey { file, tgid: Tgid::MAX, written: true };
        self.streams.range(first..=last).map(|(key, _)| key)
    }

    /// Streams that have ended or paused, that nobody follows, and that are not settled.
    fn quiet(&self, orders: &Orders<'_>) -> Vec<StreamKey> {
        let now = orders.now;
        let mut active: BTreeMap<FileKey, Vec<(&StreamKey, &Stream)>> = BTreeMap::new();
        for (key, stream) in self.streams.iter().filter(|(_, stream)| stream.is_active(now)) {
            active.entry(key.file).or_default().push((key, stream));
        }
        let is_followed = |key: &StreamKey, stream: &Stream| {
            let mut others = active.get(&key.file).into_iter().flatten().filter(|it| it.0 != key);
            others.any(|(_, other)| other.follows(stream))
        };
        let streams = self.streams.iter();
        let quiet = streams.filter(|(key, it)| it.is_quiet(now) && !is_followed(key, it));
        let is_due =
            |stream: &Stream| !stream.is_settled || stream.has_ended || is_old(stream, orders);
        quiet.filter(|(_, stream)| is_due(stream)).map(|(key, _)| *key).collect()
    }

    /// Drops the rest of a stream that nobody follows.
    fn settle(
        &mut self,
        key: StreamKey,
        unused: Unused,
        touched: Option<Span>,
        orders: &mut Orders<'_>,
    ) {
        let Some(stream) = self.streams.get_mut(&key) else { return };
        let is_news = !std::mem::replace(&mut stream.is_settled, true) || unused == Unused::Go;
        let Some(terms) = stream.terms().filter(|_| is_news) else { return };
        let Some(touched) = touched else { return };
        let file_pages = pages_of(stream.file_bytes);
        let answer = stream.progress.finish(touched.end, file_pages, passing(key.written), terms);
        let run = stream.progress.run();
        if !stream.progress.is_engaged() {
            return;
        }
        // All pages are tried again.
        stream.left_pages = 0;
        let of = stream.of;
        if let Some(span) = answer.write_out {
            self.releases.write_out(of, span, orders);
        }
        // Only one run was streamed through. Where everything is dropped, that is all the stream has touched.
        let passed = if stream.drops_everything() { touched } else { run };
        let start = passed.start.max(passed.end.saturating_sub(MOST_SWEPT_PAGES));
        // Beyond are pages that were read ahead for nobody.
        let ahead = if unused == Unused::Go { MOST_AHEAD_PAGES } else { 0 };
        let all = Span { start, end: (passed.end + ahead).min(file_pages).max(passed.end) };
        // Pages passed earlier are counted already.
        let rest = answer.release.unwrap_or(Span { start: all.end, end: all.end });
        let rest = Span { end: all.end, ..rest };
        let release = Release::of(key, stream, all, rest, rest.pages(), unused);
        self.waiting.retain(|waiting| !waiting.is_within(key, all));
        self.release(release, orders);
    }
}

fn is_old(stream: &Stream, orders: &Orders<'_>) -> bool {
    orders.now.saturating_sub(stream.heard_at) > IDLE_NS || stream.is_small()
}
