//! Events for drop-behind, as the eBPF programs send them: one for each 4 MiB that a process passes in a file.

use std::collections::{BTreeSet, HashMap, HashSet};

use controller::behind::{LEAST_FILE_PAGES, Mode, Rules};
use controller::ids::{FileRef, StreamKey, Tgid};
use controller::{Input, Passed};
use readahead::behind::Span;
use readahead::{Nanos, PAGE_BYTES, Page};

use super::{CGROUP, key_of};
use crate::cache::NOBODY;
use crate::machine::Machine;

/// A step: 4 MiB.
const STEP_PAGES: u64 = 1024;

/// A stream continues within this distance (1 MiB) of its last place.
const GAP_PAGES: u64 = 256;

/// The streams followed.
pub(super) struct Streams {
    /// Smaller files are left alone.
    least_file_pages: u64,
    is_looking: bool,
    ways: HashMap<StreamKey, Way>,
    /// Large files reported before accesses are watched.
    told: HashSet<u32>,
    watched: BTreeSet<Tgid>,
}

/// A process's place in a file.
#[derive(Debug)]
struct Way {
    /// The end of the pages that it touched last.
    until: Page,
    reported: Page,
    /// All pages that it has touched.
    touched: Span,
}

impl Streams {
    pub(super) fn new(rules: &Rules) -> Self {
        let least_file_pages = if rules.may_be(Mode::Always) { 0 } else { LEAST_FILE_PAGES };
        Streams {
            least_file_pages,
            is_looking: false,
            ways: HashMap::new(),
            told: HashSet::new(),
            watched: BTreeSet::new(),
        }
    }

    pub(super) fn look(&mut self, on: bool) {
        self.is_looking = on;
        self.ways.clear();
        self.told.clear();
    }

    pub(super) fn forget(&mut self, stream: StreamKey) {
        self.ways.remove(&stream);
    }

    pub(super) fn touched(&self, stream: StreamKey) -> Option<Span> {
        self.ways.get(&stream).map(|way| way.touched)
    }

    pub(super) fn watch(&mut self, tgid: Tgid, is_watched: bool) {
        if is_watched {
            self.watched.insert(tgid);
        } else {
            self.watched.remove(&tgid);
        }
    }

    pub(super) fn is_watched(&self, tgid: Tgid) -> bool {
        self.watched.contains(&tgid)
    }

    /// A page of a file of `file_pages` enters the cache. Returns whether to note who has brought it in, and whether to
    /// report the file, as the first large one before accesses are watched.
    fn bring(&mut self, file: u32, file_pages: u64) -> (bool, bool) {
        let is_large = file_pages >= self.least_file_pages;
        (is_large && self.is_looking, is_large && !self.is_looking && self.told.insert(file))
    }

    /// A page was used. Returns the span to report, if any.
    fn pass(&mut self, key: StreamKey, page: Page, file_pages: u64) -> Option<Span> {
        if !self.is_looking || file_pages < self.least_file_pages {
            return None;
        }
        let mut is_new = false;
        let way = self.ways.entry(key).or_insert_with(|| {
            is_new = true;
            let touched = Span { start: page, end: page };
            Way { until: page, reported: page, touched }
        });
        if !(way.until.saturating_sub(1)..=way.until + GAP_PAGES).contains(&page) {
            way.reported = page;
        }
        way.until = page + 1;
        way.touched =
            Span { start: way.touched.start.min(page), end: way.touched.end.max(page + 1) };
        // A writer has passed the whole page; a reader may still be in the first one.
        let at = if key.written { page + 1 } else { page };
        if !is_new && at.saturating_sub(way.reported) < STEP_PAGES {
            return None;
        }
        Some(Span { start: std::mem::replace(&mut way.reported, at), end: at })
    }
}

impl Machine {
    /// The owner of the pages that are about to enter the cache for `number`, if owners are noted.
    pub(crate) fn owner_for(&mut self, now: Nanos, file: u32, page: Page, number: u32) -> u32 {
        if number == NOBODY {
            return NOBODY;
        }
        let file_pages = self.cache.file(file).pages();
        let streams = self.body.as_mut().and_then(|body| body.streams.as_mut());
        let Some((is_noted, is_told)) = streams.map(|streams| streams.bring(file, file_pages))
        else {
            return NOBODY;
        };
        if is_told {
            let key = StreamKey { file: key_of(file), tgid: number, written: false };
            self.tell_passed(now, key, Span { start: page, end: page }, false);
        }
        if is_noted { number } else { NOBODY }
    }

    /// A process has used a page.
    pub(crate) fn pass(
        &mut self,
        now: Nanos,
        number: u32,
        file: u32,
        page: Page,
        (written, mapped): (bool, bool),
    ) {
        let file_pages = self.cache.file(file).pages();
        let key = StreamKey { file: key_of(file), tgid: number, written };
        let streams = self.body.as_mut().and_then(|body| body.streams.as_mut());
        if let Some(span) = streams.and_then(|streams| streams.pass(key, page, file_pages)) {
            self.tell_passed(now, key, span, mapped);
        }
    }

    fn tell_passed(&mut self, now: Nanos, key: StreamKey, span: Span, mapped: bool) {
        let StreamKey { file, tgid, written } = key;
        let passed = Passed {
            of: FileRef { file, generation: 0, tgid },
            cgroup: CGROUP,
            file_bytes: self.cache.file(file.ino as u32).pages() * PAGE_BYTES,
            written,
            mapped,
            foreground: false,
            span,
        };
        self.give_input(now, &Input::Passed(passed));
    }

    /// Whether streams are watched.
    #[inline]
    pub(crate) fn drops_behind(&self) -> bool {
        self.body.as_ref().is_some_and(|body| body.streams.is_some())
    }
}
