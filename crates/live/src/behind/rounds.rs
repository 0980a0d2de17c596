//! What has to be done from time to time: trying again, and the ends of streams.

use std::cell::RefCell;
use std::collections::HashMap;

use linux::process;
use readahead::behind::{Span, Unused};
use readahead::{FileKey, PAGE_BYTES};

use super::left_overs::{FIRST_DELAY_NS, Waiting};
use super::stream::{Stream, passing};
use super::{Behind, IDLE_NS, MOST_SWEPT_PAGES, MountOf};
use crate::observe::{Observer, StreamKey};

/// How far ahead of a reader that has ended pages are looked for that it has left unread: 64 MiB.
const MOST_AHEAD_PAGES: u64 = 16_384;

impl Behind {
    /// Streams whose process has ended, or that have paused, and are no longer followed closely.
    pub(super) fn look_through(
        &mut self,
        now: u64,
        mount_of: MountOf<'_>,
        observer: &mut dyn Observer,
    ) {
        self.see_who_is_slow(now, observer);
        let living = Living::default();
        let idle = |stream: &Stream| now.saturating_sub(stream.event.now);
        let is_active = |key: &StreamKey, stream: &Stream| {
            idle(stream) < stream.pause() && living.has(key.tgid)
        };
        let mut active: HashMap<FileKey, Vec<&Stream>> = HashMap::new();
        for (key, stream) in self.streams.iter().filter(|(key, stream)| is_active(key, stream)) {
            active.entry(key.file).or_default().push(stream);
        }
        let is_followed = |key: &StreamKey, stream: &Stream| {
            let followers = active.get(&key.file);
            followers.is_some_and(|all| all.iter().any(|follower| follower.follows(stream)))
        };
        let streams = self.streams.iter();
        let quiet = streams.filter(|(key, it)| !is_active(key, it) && !is_followed(key, it));
        let quiet: Vec<(StreamKey, bool, bool)> = quiet
            .map(|(key, stream)| {
                let is_old = idle(stream) > IDLE_NS || stream.is_small();
                (key, stream, !living.has(key.tgid), is_old)
            })
            .filter(|(_, stream, has_ended, is_old)| !stream.is_settled || *has_ended || *is_old)
            .map(|(key, _, has_ended, is_old)| (*key, has_ended, is_old))
            .collect();
        self.unsettled.clear();
        for (key, has_ended, is_old) in quiet {
            if !self.hands.has_room(key.file.dev) {
                self.unsettled.insert(key.file.dev);
                continue;
            }
            // What was read ahead may be for another reader of the file.
            let is_alone = !self.streams.keys().any(|o| o.file == key.file && *o != key);
            let unused = if has_ended && is_alone { Unused::Go } else { Unused::Stay };
            self.settle(key, unused, mount_of, observer);
            if has_ended || is_old {
                let gone = self.streams.remove(&key);
                self.totals.left_pages += gone.map_or(0, |stream| stream.left_pages);
                observer.forget_stream(key);
            }
        }
    }

    /// A stream is heard of every 4 MiB only: one that has come further has not paused.
    fn see_who_is_slow(&mut self, now: u64, observer: &dyn Observer) {
        for (key, stream) in self.streams.iter_mut().filter(|(_, stream)| !stream.is_settled) {
            let is_quiet = now.saturating_sub(stream.event.now) >= stream.pause();
            let touched = observer.touched(*key).filter(|_| is_quiet);
            if let Some(touched) = touched.filter(|touched| *touched != stream.touched) {
                stream.touched = touched;
                stream.event.now = now;
            }
        }
    }

    /// The rest goes: nobody follows.
    fn settle(
        &mut self,
        key: StreamKey,
        unused: Unused,
        mount_of: MountOf<'_>,
        observer: &mut dyn Observer,
    ) {
        let Some(stream) = self.streams.get_mut(&key) else { return };
        let is_news = !std::mem::replace(&mut stream.is_settled, true) || unused == Unused::Go;
        let Some(terms) = stream.terms.filter(|_| is_news) else { return };
        let (touched, mount) = (observer.touched(key), mount_of(key.file.dev));
        let (Some((low, high)), Some(mount)) = (touched, mount) else { return };
        let event = stream.event;
        let file_pages = event.file_bytes.div_ceil(PAGE_BYTES);
        let answer = stream.passage.finish(high, file_pages, passing(key.written), terms);
        let run = stream.passage.run();
        if !stream.passage.is_engaged() {
            return;
        }
        // All of it is tried again.
        stream.left_pages = 0;
        if let Some(span) = answer.write_out {
            self.hands.write_out(&event, span, mount);
        }
        // Only what was passed in one run was streamed through; where everything goes, all it touched.
        let passed = match terms.engage_pages {
            0 => Span { start: low, end: high },
            _ => run,
        };
        let start = passed.start.max(passed.end.saturating_sub(MOST_SWEPT_PAGES));
        // Beyond lies what was read ahead for nobody.
        let ahead = if unused == Unused::Go { MOST_AHEAD_PAGES } else { 0 };
        let all = Span { start, end: (passed.end + ahead).min(file_pages).max(passed.end) };
        let is_within = |span: Span| all.start <= span.start && span.end <= all.end;
        let is_asked_for = |waiting: &Waiting| waiting.stream == key && is_within(waiting.span);
        self.waiting.retain(|waiting| !is_asked_for(waiting) || waiting.counted.pages() > 0);
        // What was passed before has been counted.
        let rest = answer.release.unwrap_or(Span { start: all.end, end: all.end });
        let rest = Span { end: all.end, ..rest };
        let how = (unused, FIRST_DELAY_NS, 0);
        self.release((key, &event), all, rest, rest.pages(), how, mount);
    }
}

/// Which processes are there, asked once each.
#[derive(Default)]
struct Living(RefCell<HashMap<u32, bool>>);

impl Living {
    fn has(&self, tgid: u32) -> bool {
        *self.0.borrow_mut().entry(tgid).or_insert_with(|| process::is_alive(tgid))
    }
}
