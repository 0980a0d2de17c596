//! Drop-behind: pages that streams have passed leave the cache before others' pages do.
//!
//! ```text
//!   Passed --> which mode? --> StreamProgress --> WriteOut
//!                                   |
//!                                   +-----------> Release --> Released: dropped, kept, left
//!                                                                                    |
//!                        later again <--- not written yet, mapped, held <------------+
//! ```
//!
//! The body drops a page only if it is clean, unmapped and held by nobody, and if its bits in the BPF maps say, right
//! before the call, that the stream's process brought it in and that it was used once.

mod copying;
mod glob;
mod left_overs;
mod release;
mod rounds;
mod rules;
mod stream;

use std::collections::BTreeSet;

use readahead::PAGE_BYTES;
use readahead::behind::{Span, Unused};

pub use rules::{Mode, Rule, RuleError, Rules, match_any};

use crate::Nanos;
use crate::command::Command;
use crate::ids::{DeviceNumber, FileKey, StreamKey, Tgid};
use crate::input::{Attributes, Passed};
use crate::orders::Orders;
use crate::shared::Shared;
use copying::Backlogs;
use left_overs::Waiting;
use release::{Release, Releases};
use stream::Stream;

/// Smaller files are left alone with `auto`. They would be large only in less than 8 MiB of memory, half of which is
/// nobody's working set.
pub const LEAST_FILE_PAGES: u64 = 1024;

/// A stream is forgotten after this long without an event.
const IDLE_NS: Nanos = 30_000_000_000;

/// Interval at which streams are examined.
const ROUND_NS: Nanos = 100_000_000;

/// Interval of [`Behind::tick`] while pages are still to be dropped.
pub(crate) const BUSY_NS: Nanos = 50_000_000;

/// Streams followed at once, 400 bytes each. Groups of readers share the room.
const MOST_STREAMS: usize = 8192;

/// Totals in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Dropped.
    pub(crate) dropped_pages: u64,
    /// Passed by a stream, but kept: cached before it came, used by others, or used again.
    pub(crate) kept_pages: u64,
    /// Not dropped because they are dirty, mapped or held, or too many.
    pub(crate) left_pages: u64,
}

impl Totals {
    fn drop(&mut self, pages: u64) {
        self.dropped_pages = self.dropped_pages.saturating_add(pages);
    }

    fn keep(&mut self, pages: u64) {
        self.kept_pages = self.kept_pages.saturating_add(pages);
    }

    fn leave(&mut self, pages: u64) {
        self.left_pages = self.left_pages.saturating_add(pages);
    }
}

/// Follows streams and drops the pages that they have passed.
#[derive(Debug)]
pub(crate) struct Behind {
    rules: Rules,
    streams: Shared<StreamKey, Stream>,
    /// A stream is not settled, or was not when all were looked through the last time.
    has_open_end: bool,
    waiting: Vec<Waiting>,
    releases: Releases,
    watched: BTreeSet<Tgid>,
    is_looking: bool,
    /// File systems with streams since accesses have been watched.
    seen: BTreeSet<DeviceNumber>,
    heard_at: Nanos,
    looked_through_at: Nanos,
    /// File systems with ended streams that could not be dealt with at once.
    unsettled: BTreeSet<DeviceNumber>,
    /// Wait for pages being written, however long it takes.
    is_finishing: bool,
    backlogs: Backlogs,
    totals: Totals,
}

impl Behind {
    /// With `always`, accesses are watched from now on; with `auto`, once a large file is read or written.
    pub(crate) fn new(rules: Rules, out: &mut Vec<Command>) -> Self {
        let is_looking = rules.may_be(Mode::Always);
        out.push(Command::LookBehind(is_looking));
        Behind {
            rules,
            streams: Shared::with_room(MOST_STREAMS),
            has_open_end: false,
            waiting: Vec::new(),
            releases: Releases::default(),
            watched: BTreeSet::new(),
            is_looking,
            seen: BTreeSet::new(),
            heard_at: 0,
            looked_through_at: 0,
            unsettled: BTreeSet::new(),
            is_finishing: false,
            backlogs: Backlogs::default(),
            totals: Totals::default(),
        }
    }

    /// A stream has passed a step. Its process may fill `memory` bytes with pages.
    pub(crate) fn on_passed(&mut self, passed: &Passed, memory: u64, orders: &mut Orders<'_>) {
        self.heard_at = orders.now;
        self.seen.insert(passed.of.file.dev);
        if !self.is_looking {
            self.is_looking = true;
            orders.out.push(Command::LookBehind(true));
            return;
        }
        let Passed { of, written, .. } = *passed;
        let key = StreamKey { file: of.file, tgid: of.tgid, written };
        if self.watched.insert(of.tgid) {
            orders.out.push(Command::WatchProcess(of.tgid, true));
        }
        if !self.streams.contains_key(&key) {
            self.begin(key, passed, memory, orders);
        }
        self.has_open_end = true;
        let Some(stream) = self.streams.get_mut(&key) else { return };
        stream.note_step(orders.now, passed);
        if passed.span.pages() > 0 {
            self.pass(key, passed.span, orders);
        }
    }

    /// Follows a stream from now on. If there is no room, others are forgotten: those of the groups that have most.
    fn begin(&mut self, key: StreamKey, passed: &Passed, memory: u64, orders: &mut Orders<'_>) {
        let totals = &mut self.totals;
        self.streams.make_much_room(
            |stream| stream.heard_at,
            |key, stream| {
                totals.leave(stream.left_pages);
                orders.out.push(Command::ForgetStream(key));
            },
        );
        let only_mode = if passed.foreground { Some(Mode::Never) } else { self.rules.only_mode() };
        if only_mode.is_none() {
            orders.out.push(Command::Describe(key, passed.of));
        }
        let stream = Stream::new(orders.now, passed, only_mode, memory);
        self.streams.insert(passed.cgroup, 1, key, stream);
    }

    /// A stream's attributes are known. Deals with what it has passed meanwhile.
    pub(crate) fn on_described(
        &mut self,
        key: StreamKey,
        attributes: &Attributes,
        orders: &mut Orders<'_>,
    ) {
        let mode = self.rules.mode_of(attributes);
        let Some(stream) = self.streams.get_mut(&key) else { return };
        if let Some(passed) = stream.decide(mode) {
            self.pass(key, passed, orders);
        }
    }

    /// The pages that a stream has touched so far.
    pub(crate) fn on_touched(&mut self, key: StreamKey, span: Option<Span>, now: Nanos) {
        if let Some(stream) = self.streams.get_mut(&key) {
            stream.note_touched(span, now);
            self.looked_through_at = 0;
        }
    }

    /// Whether the end of this process is to be reported.
    pub(crate) fn watches(&self, tgid: Tgid) -> bool {
        self.watched.contains(&tgid)
    }

    /// A process has ended. The next [`Behind::tick`] deals with its streams.
    pub(crate) fn on_exited(&mut self, tgid: Tgid) {
        if self.watched.remove(&tgid) {
            let its = self.streams.iter_mut().filter(|(key, _)| key.tgid == tgid);
            its.for_each(|(_, stream)| stream.has_ended = true);
            self.looked_through_at = 0;
        }
    }

    fn pass(&mut self, key: StreamKey, passed: Span, orders: &mut Orders<'_>) {
        let Some(stream) = self.streams.get_mut(&key) else { return };
        let Some(answer) = stream.pass(key, passed) else { return };
        let of = stream.of;
        if let Some(span) = answer.write_out {
            self.releases.write_out(of, span, orders);
        }
        if let Some(span) = answer.release {
            let release = Release::of(key, stream, span, span, span.pages(), Unused::Stay);
            self.release(release, orders);
        }
    }

    /// Retries what was left, and deals with streams that have ended or paused.
    pub(crate) fn tick(
        &mut self,
        has_head: &dyn Fn(DeviceNumber) -> bool,
        orders: &mut Orders<'_>,
    ) {
        let now = orders.now;
        self.try_again(orders);
        let has_room = self.unsettled.iter().any(|dev| self.releases.have_room(*dev));
        if has_room || now.saturating_sub(self.looked_through_at) >= ROUND_NS {
            self.looked_through_at = now;
            self.look_through(orders);
        }
        self.compare_with_disks(has_head);
        let is_old = now.saturating_sub(self.heard_at) > IDLE_NS;
        let is_quiet = is_old && self.streams.len() == 0 && !self.has_left_overs();
        if self.is_looking && is_quiet && self.heard_at > 0 {
            // Watched files cost their readers a look-up, so forget them all and start anew.
            self.heard_at = 0;
            self.seen.clear();
            self.is_looking = self.rules.may_be(Mode::Always);
            orders.out.push(Command::LookBehind(self.is_looking));
        }
    }

    /// Whether [`Behind::tick`] should be called again soon.
    pub(crate) fn is_busy(&self) -> bool {
        self.has_open_end || !self.waiting.is_empty() || !self.releases.are_done()
    }

    /// Whether pages that programs have read or written so far may have to be dropped.
    pub(crate) fn may_drop(&self) -> bool {
        self.streams.values().any(|stream| !stream.is_left_alone()) || self.has_left_overs()
    }

    /// The managed processes have ended. The next [`Behind::tick`] deals with their streams, and writing is never given
    /// up from now on.
    pub(crate) fn finish(&mut self) {
        self.is_finishing = true;
        self.looked_through_at = 0;
    }

    /// Whether pages of an ended process are still to be dropped.
    pub(crate) fn has_left_overs(&self) -> bool {
        let has_ended_one = self.streams.values().any(|stream| stream.has_ended);
        !self.unsettled.is_empty()
            || has_ended_one
            || !self.waiting.is_empty()
            || !self.releases.are_done()
    }

    /// Totals so far.
    pub(crate) fn totals(&self) -> Totals {
        let waiting = self.waiting.iter().map(|waiting| waiting.release.pages);
        let given_up = self.streams.values().map(|stream| stream.left_pages);
        let left_pages = waiting.chain(given_up).fold(self.totals.left_pages, u64::saturating_add);
        Totals { left_pages, ..self.totals }
    }

    /// Number of streams followed.
    pub(crate) fn streams(&self) -> usize {
        self.streams.len()
    }

    /// A file system was unmounted, and another one may get its number, so everything about it is forgotten. The BPF
    /// maps forget pages of all file systems, so this happens only if the file system had streams.
    pub(crate) fn forget_volume(&mut self, dev: DeviceNumber, orders: &mut Orders<'_>) {
        self.streams.retain(|key, _| key.file.dev != dev);
        self.waiting.retain(|waiting| waiting.release.stream.file.dev != dev);
        self.releases.forget_volume(dev);
        self.unsettled.remove(&dev);
        self.forget_processes(orders);
        if self.seen.remove(&dev) && self.is_looking {
            self.seen = self.streams.iter().map(|(key, _)| key.file.dev).collect();
            orders.out.push(Command::LookBehind(false));
            orders.out.push(Command::LookBehind(true));
        }
    }

    /// Stops watching processes without streams.
    fn forget_processes(&mut self, orders: &mut Orders<'_>) {
        let reading: BTreeSet<Tgid> = self.streams.iter().map(|(key, _)| key.tgid).collect();
        self.watched.retain(|tgid| {
            let keep = reading.contains(tgid);
            if !keep {
                orders.out.push(Command::WatchProcess(*tgid, false));
            }
            keep
        });
    }

    /// Whether to read nothing ahead for a process because it writes faster than the disk. That does not stall it: the
    /// kernel reads for it as usual, unless it copies.
    pub(crate) fn holds_back(&self, tgid: Tgid) -> bool {
        self.backlogs.holds_back(tgid)
    }

    /// Which process copies which file faster than a disk with a head can write. These are read without look-ahead.
    pub(crate) fn copied(&self) -> &BTreeSet<(Tgid, FileKey)> {
        self.backlogs.copied()
    }
}

/// Whole pages in `bytes`.
fn pages_of(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE_BYTES)
}
