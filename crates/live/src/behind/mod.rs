//! Drop-behind on the running kernel: what `readahead::behind` decides, carried out.
//!
//! ```text
//!   EVENT_PASSED --> which mode? --> Passage --> write out  --> a thread: sync_file_range
//!                                       |
//!                                       +------> release --> blocks: brought, used once?
//!                                                               |
//!      not written yet, mapped: again later <-- a thread: cachestat, fadvise(DONTNEED)
//! ```
//!
//! A page goes if its bits in the kernel's tables say that the stream's process brought it in and
//! that it was used once, and if it is clean, unmapped and held by nobody at that moment, which the
//! kernel itself sees to.

mod hands;
mod mapped;
mod rounds;
mod rules;
mod totals;

use std::collections::{HashMap, HashSet};
use std::os::fd::AsRawFd;
use std::time::Duration;

use readahead::PAGE_BYTES;
use readahead::behind::{BLOCK_PAGES, Passage, Passing, Span, Terms, Unused, may_go};

pub use rules::{Mode, Rule, RuleError, Rules};

use crate::act::open_file;
use crate::kernel::Features;
use crate::memory;
use crate::mounts::Mount;
use crate::observe::{DeviceNumber, Event, ObserveError, Observer, StreamKey, Watch};
use hands::{Hands, Release, Released};
use rules::Live;
pub(crate) use totals::Totals;

/// Smaller files are left alone unless every stream drops behind: an eighth of less than 32 MiB of
/// memory is nobody's working set.
const LEAST_FILE_PAGES: u64 = 1024;

/// A stream that paused for so long keeps nothing for followers any more.
const PAUSE_NS: u64 = 1_000_000_000;

/// Nobody follows in a file of one step, which its reader is done with sooner.
const SMALL_FILE_BYTES: u64 = 4 << 20;
const SMALL_PAUSE_NS: u64 = 200_000_000;

/// A stream that paused for so long is forgotten.
const IDLE_NS: u64 = 30_000_000_000;

/// Streams are looked through this often.
const ROUND_NS: u64 = 100_000_000;

/// What could not go is tried again after so long, each time twice as long.
const FIRST_DELAY_NS: u64 = 50_000_000;
const LONGEST_DELAY_NS: u64 = 6_400_000_000;

/// What is being written is tried so often: the disk takes it bit by bit.
const WRITING_DELAY_NS: u64 = 100_000_000;

/// Nothing is read ahead for a process that has written so many steps which the disk has not taken yet, or a
/// sixteenth of its memory and at most 64 MiB if that is more: its writing then catches up with its reading.
const BACKLOG_STEPS: u64 = 3;
const MOST_BACKLOG_BYTES: u64 = 64 << 20;
const BACKLOG_SHARE: u64 = 16;

/// What is mapped or held is left to the stream's end after so many tries, half a minute; what is being
/// written is given ten minutes.
const MOST_TRIES: u32 = 10;
const MOST_TRIES_WRITING: u32 = 6000;

/// Spans that wait to become clean; of further ones the oldest stay cached.
const MOST_WAITING: usize = 4096;

/// Looked through once more at a stream's end, from there back: 4 GiB.
const MOST_SWEPT_PAGES: u64 = 1 << 20;

type MountOf<'a> = &'a dyn Fn(DeviceNumber) -> Option<&'a Mount>;

struct Stream {
    /// The last one heard of it; it leads to the file.
    event: Event,
    passage: Passage,
    /// `None` if nothing is done behind it.
    terms: Option<Terms>,
    most_backlog_pages: u64,
    /// Its end, or where it paused, has been dealt with.
    is_settled: bool,
    /// What it had touched when it was last looked at.
    touched: (u64, u64),
}

/// A span some pages of which could not go.
struct Waiting {
    stream: StreamKey,
    event: Event,
    span: Span,
    pages: u64,
    unused: Unused,
    due: u64,
    delay: u64,
    tries: u32,
}

/// Follows the streams and lets go of what they have passed.
pub(crate) struct Behind {
    rules: Rules,
    streams: HashMap<StreamKey, Stream>,
    waiting: Vec<Waiting>,
    hands: Hands,
    is_looking: bool,
    heard_at: u64,
    looked_through_at: u64,
    /// Not all streams that ended could be dealt with at once.
    has_more: bool,
    /// What each process may fill with pages, in bytes, asked for once in a while.
    memory: HashMap<u32, u64>,
    memory_asked_at: u64,
    /// Processes that write faster than the disk takes it.
    held_back: HashSet<u32>,
    totals: Totals,
}

/// What has to be watched for these rules; `None` if nothing, or if this kernel cannot (`bowwave doctor`
/// tells).
pub(crate) fn watch(rules: &Rules) -> Option<Watch> {
    if !Features::detect().can_drop_behind() {
        return None;
    }
    let least_file_pages = if rules.may_be(Mode::Always) {
        0
    } else if rules.may_be(Mode::Auto) {
        LEAST_FILE_PAGES
    } else {
        return None;
    };
    Some(Watch { least_file_pages })
}

impl Behind {
    /// Where everything drops behind, accesses are seen from now on; else once a large file is read
    /// or written.
    pub(crate) fn start(rules: Rules, observer: &mut dyn Observer) -> Result<Self, ObserveError> {
        let is_looking = rules.may_be(Mode::Always);
        observer.look_behind(is_looking)?;
        Ok(Behind {
            rules,
            streams: HashMap::new(),
            waiting: Vec::new(),
            hands: Hands::new(observer.write_errors()?),
            has_more: false,
            is_looking,
            heard_at: 0,
            looked_through_at: 0,
            memory: HashMap::new(),
            memory_asked_at: 0,
            held_back: HashSet::new(),
            totals: Totals::default(),
        })
    }

    /// A stream has passed `event.mark`.
    pub(crate) fn on_passed(
        &mut self,
        event: &Event,
        (written, foreign): (bool, bool),
        mount: &Mount,
        observer: &mut dyn Observer,
    ) -> Result<(), ObserveError> {
        self.heard_at = event.now;
        if !self.is_looking {
            self.is_looking = true;
            return observer.look_behind(true);
        }
        let key = StreamKey { file: event.file, tgid: event.tgid, written };
        if event.now.saturating_sub(self.memory_asked_at) > IDLE_NS {
            self.memory_asked_at = event.now;
            self.memory.clear();
        }
        let rules = &self.rules;
        let stream = self.streams.entry(key).or_insert_with(|| {
            let mode = if foreign { Mode::Never } else { mode_of(rules, event, mount) };
            let available = || memory::available_to(event.tgid);
            Stream::new(event, mode, *self.memory.entry(event.tgid).or_insert_with(available))
        });
        stream.event = *event;
        stream.is_settled = false;
        let Some(terms) = stream.terms else { return Ok(()) };
        let passed = Span { start: event.mark.0, end: event.mark.1 };
        let file_pages = event.file_bytes.div_ceil(PAGE_BYTES);
        let answer = stream.passage.on_pass(passed, file_pages, passing(written), terms);
        if let Some(span) = answer.write_out {
            self.write_out(event, mount, span);
        }
        if let Some(span) = answer.release {
            self.totals.kept_pages += self.release(
                (key, event),
                span,
                (Unused::Stay, FIRST_DELAY_NS, 0),
                mount,
                observer,
            );
        }
        Ok(())
    }

    /// What was left is tried again, and streams that ended or paused are dealt with.
    pub(crate) fn tick(
        &mut self,
        now: u64,
        mount_of: MountOf<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(), ObserveError> {
        while let Some(done) = self.hands.done(Duration::ZERO) {
            self.note(done, now, observer);
        }
        self.try_again(now, mount_of, observer);
        self.hold_back();
        if self.has_more || now.saturating_sub(self.looked_through_at) >= ROUND_NS {
            self.looked_through_at = now;
            self.look_through(now, mount_of, observer);
        }
        let is_old = now.saturating_sub(self.heard_at) > IDLE_NS;
        let is_quiet = is_old && self.streams.is_empty() && !self.has_left_overs();
        if self.is_looking && is_quiet && self.heard_at > 0 {
            // Files watched so far cost their readers a look-up, so all begins anew.
            self.heard_at = 0;
            self.is_looking = self.rules.may_be(Mode::Always);
            observer.look_behind(self.is_looking)?;
        }
        Ok(())
    }

    /// Whether nothing shall be read ahead for a process, as it writes faster than the disk takes it.
    /// It is not stalled: the kernel reads for it as ever.
    pub(crate) fn holds_back(&self, tgid: u32) -> bool {
        self.held_back.contains(&tgid)
    }

    /// Whether [`Behind::tick`] should be called again soon.
    pub(crate) fn is_busy(&self) -> bool {
        let has_open_end = self.streams.values().any(|stream| !stream.is_settled);
        has_open_end || !self.waiting.is_empty() || !self.hands.is_idle()
    }

    /// Streams are looked through at the next [`Behind::tick`]: processes have ended.
    pub(crate) fn hurry(&mut self) {
        self.looked_through_at = 0;
    }

    /// Whether something of a process that has ended has still to go.
    pub(crate) fn has_left_overs(&self) -> bool {
        self.has_more || !self.waiting.is_empty() || !self.hands.is_idle()
    }

    /// What was done so far.
    pub(crate) fn totals(&self) -> Totals {
        let left_pages = self.waiting.iter().map(|waiting| waiting.pages).sum();
        Totals { left_pages, ..self.totals }
    }

    /// A file system was unmounted, and perhaps another has its number: nothing is known of it.
    pub(crate) fn forget_file_system(
        &mut self,
        dev: DeviceNumber,
        observer: &mut dyn Observer,
    ) -> Result<(), ObserveError> {
        self.streams.retain(|key, _| key.file.dev != dev);
        self.waiting.retain(|waiting| waiting.stream.file.dev != dev);
        if self.is_looking {
            observer.look_behind(false)?;
            observer.look_behind(true)?;
        }
        Ok(())
    }

    fn write_out(&self, event: &Event, mount: &Mount, span: Span) {
        if self.hands.may_write()
            && let Ok(file) = open_file(event, mount)
        {
            self.hands.write_out(file, span);
        }
    }

    /// Hands over what of `span` may go; gives the pages that stay.
    fn release(
        &mut self,
        (stream, event): (StreamKey, &Event),
        span: Span,
        (unused, delay, tries): (Unused, u64, u32),
        mount: &Mount,
        observer: &mut dyn Observer,
    ) -> u64 {
        let verdict = may_go(span, stream.tgid, unused, |block| observer.block(stream.file, block));
        let of = self.streams.get(&stream).and_then(|of| of.terms);
        let unmaps = event.mapped && of.is_some_and(|terms| terms.engage_pages == 0);
        if event.mapped && !unmaps && unused == Unused::Stay {
            return span.pages();
        }
        if !verdict.go.is_empty() && !self.hands.has_room() {
            let (pages, event, due) = (span.pages(), *event, event.now);
            self.wait(Waiting { stream, event, span, pages, unused, due, delay, tries });
        } else if !verdict.go.is_empty()
            && let Ok(file) = open_file(event, mount)
        {
            let go = verdict.go;
            let event = *event;
            let release = Release { stream, event, file, span, go, unused, unmaps, delay, tries };
            self.hands.release(release);
        }
        verdict.kept
    }

    fn wait(&mut self, waiting: Waiting) {
        // The end of a stream asks for what was asked for already.
        self.waiting.retain(|old| old.stream != waiting.stream || old.span != waiting.span);
        if self.waiting.len() == MOST_WAITING {
            self.waiting.remove(0);
        }
        self.waiting.push(waiting);
    }

    fn note(&mut self, done: Released, now: u64, observer: &mut dyn Observer) {
        self.totals.dropped_pages += done.dropped_pages;
        let is_left = |first: u64| {
            done.left.iter().any(|left| left.start < first + BLOCK_PAGES && first < left.end)
        };
        let whole = done.span.start.div_ceil(BLOCK_PAGES)..done.span.end / BLOCK_PAGES;
        for block in whole {
            let known = observer.block(done.stream.file, block);
            let may_be_used_yet = known.is_some_and(|known| known.brought & !known.used != 0);
            if known.is_some() && !may_be_used_yet && !is_left(block * BLOCK_PAGES) {
                observer.forget_block(done.stream.file, block);
            }
        }
        let (longest, most_tries) = match done.stream.written {
            true => (WRITING_DELAY_NS, MOST_TRIES_WRITING),
            false => (LONGEST_DELAY_NS, MOST_TRIES),
        };
        if done.tries >= most_tries {
            return;
        }
        for (span, pages) in done.left.iter().zip(&done.left_pages) {
            self.wait(Waiting {
                stream: done.stream,
                event: done.event,
                span: *span,
                pages: *pages,
                unused: done.unused,
                due: now + done.delay,
                delay: (done.delay * 2).min(longest),
                tries: done.tries + 1,
            });
        }
    }
}

fn passing(written: bool) -> Passing {
    if written { Passing::Write } else { Passing::Read }
}

fn mode_of(rules: &Rules, event: &Event, mount: &Mount) -> Mode {
    if rules.rules.is_empty() {
        return rules.mode;
    }
    let file = open_file(event, mount).ok();
    let descriptor = file.as_ref().map(AsRawFd::as_raw_fd);
    rules.mode_of(&Live { tgid: event.tgid, descriptor })
}

impl Stream {
    fn new(event: &Event, mode: Mode, memory: u64) -> Self {
        let terms = Terms::of_memory(memory / PAGE_BYTES);
        let backlog_bytes = (memory / BACKLOG_SHARE).min(MOST_BACKLOG_BYTES);
        let backlog_pages = BACKLOG_STEPS * terms.write_step_pages;
        Stream {
            event: *event,
            passage: Passage::default(),
            terms: match mode {
                Mode::Always => Some(Terms { engage_pages: 0, ..terms }),
                Mode::Never => None,
                Mode::Auto => Some(terms),
            },
            most_backlog_pages: backlog_pages.max(backlog_bytes / PAGE_BYTES),
            is_settled: false,
            touched: (0, 0),
        }
    }
}
