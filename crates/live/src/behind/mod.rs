//! Drop-behind on the running kernel: what `readahead::behind` decides, carried out.
//!
//! ```text
//!   EVENT_PASSED --> which mode? --> StreamProgress --> write out  --> a thread: sync_file_range
//!                                       |
//!                                       +------> release --> a thread: brought, used once?
//!                                                               |
//!      not written yet, mapped: again later <-- cachestat, fadvise(DONTNEED)
//! ```
//!
//! A page goes if its bits in the kernel's tables say that the stream's process brought it in and
//! that it was used once, and if it is clean, unmapped and held by nobody at that moment, which the
//! kernel itself sees to.

mod config;
mod copies;
mod glob;
mod hands;
mod left_overs;
mod mapped;
mod release;
mod rounds;
mod rules;
mod stream;
#[cfg(test)]
mod tests;
mod totals;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use linux::meminfo;
use linux::mounts::Mount;
use readahead::behind::{Span, Unused};
use readahead::{DeviceNumber, PAGE_BYTES};

pub use config::ConfigError;
pub use rules::{Mode, Rule, RuleError, Rules};

use crate::kernel::Features;
use crate::observe::{Event, ObserveError, Observer, StreamKey, Watch};
use copies::Backlogs;
use hands::Hands;
use left_overs::{FIRST_DELAY_NS, Waiting};
use stream::{Stream, mode_of, passing};
pub(crate) use totals::Totals;

/// Smaller files are left alone unless every stream drops behind: an eighth of less than 32 MiB of
/// memory is nobody's working set.
const LEAST_FILE_PAGES: u64 = 1024;

/// A stream that paused for so long is forgotten.
const IDLE_NS: u64 = 30_000_000_000;

/// Streams are looked through this often.
const ROUND_NS: u64 = 100_000_000;

/// Looked through once more at a stream's end, from there back: 4 GiB.
const MOST_SWEPT_PAGES: u64 = 1 << 20;

type MountOf<'a> = &'a dyn Fn(DeviceNumber) -> Option<&'a Mount>;

/// Follows the streams and lets go of what they have passed.
pub(crate) struct Behind {
    rules: Rules,
    streams: HashMap<StreamKey, Stream>,
    waiting: Vec<Waiting>,
    hands: Hands,
    is_looking: bool,
    heard_at: u64,
    looked_through_at: u64,
    /// Where streams have ended that could not be dealt with at once.
    unsettled: HashSet<DeviceNumber>,
    /// Whether what is being written is waited for however long it takes.
    is_finishing: bool,
    /// What each process may fill with pages, in bytes, asked for once in a while.
    memory: HashMap<u32, u64>,
    memory_asked_at: u64,
    backlogs: Backlogs,
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
            hands: Hands::new(observer.page_tables()?),
            unsettled: HashSet::new(),
            is_finishing: false,
            is_looking,
            heard_at: 0,
            looked_through_at: 0,
            memory: HashMap::new(),
            memory_asked_at: 0,
            backlogs: Backlogs::default(),
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
            let available = || meminfo::available_to(event.tgid);
            Stream::new(event, mode, *self.memory.entry(event.tgid).or_insert_with(available))
        });
        stream.event = *event;
        stream.is_settled = false;
        let Some(terms) = stream.terms else { return Ok(()) };
        let passed = Span { start: event.mark.0, end: event.mark.1 };
        let file_pages = event.file_bytes.div_ceil(PAGE_BYTES);
        let answer = stream.passage.on_pass(passed, file_pages, passing(written), terms);
        if let Some(span) = answer.write_out {
            self.hands.write_out(event, span, mount);
        }
        if let Some(span) = answer.release {
            let how = (Unused::Stay, FIRST_DELAY_NS, 0);
            self.release((key, event), span, span, span.pages(), how, mount);
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
            self.note(done, now);
        }
        self.try_again(now, mount_of);
        let has_room = self.unsettled.iter().any(|dev| self.hands.has_room(*dev));
        if has_room || now.saturating_sub(self.looked_through_at) >= ROUND_NS {
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

    /// Whether [`Behind::tick`] should be called again soon.
    pub(crate) fn is_busy(&self) -> bool {
        let has_open_end = self.streams.values().any(|stream| !stream.is_settled);
        has_open_end || !self.waiting.is_empty() || !self.hands.is_idle()
    }

    /// Processes have ended, and so will this: streams are looked through at the next [`Behind::tick`],
    /// and writing is not given up any more.
    pub(crate) fn finish(&mut self) {
        self.is_finishing = true;
        self.looked_through_at = 0;
    }

    /// Whether something of a process that has ended has still to go.
    pub(crate) fn has_left_overs(&self) -> bool {
        !self.unsettled.is_empty() || !self.waiting.is_empty() || !self.hands.is_idle()
    }

    /// What was done so far.
    pub(crate) fn totals(&self) -> Totals {
        let waiting = self.waiting.iter().map(|waiting| waiting.pages);
        let given_up = self.streams.values().map(|stream| stream.left_pages);
        let left_pages = self.totals.left_pages + waiting.chain(given_up).sum::<u64>();
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
        self.hands.forget_file_system(dev);
        if self.is_looking {
            observer.look_behind(false)?;
            observer.look_behind(true)?;
        }
        Ok(())
    }
}

/// A path fits itself, whatever is in it, and one pattern fits all.
#[cfg(any(test, fuzzing))]
pub(crate) fn match_any(path: &str) {
    let is_plain = !path.contains(['*', '?']);
    assert!(!is_plain || glob::matches(path, path));
    assert!(glob::matches("**", path));
    glob::matches(path, "/srv/films/a.mkv");
}
