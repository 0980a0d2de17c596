//! Read-ahead across files: a directory is a stream whose units are files.
//!
//! ```text
//!   FileMiss: the first page of a file was absent --> Walker: the last files of this process
//!                                                        |  two or three in one directory
//!                                                        v
//!                                 List --> Listed --> which traversal explains the steps?
//!                                                        |
//!                                                        v
//!   ReadFiles, Mark <--- the next files, as many as are proven <--- Stream: cursor in the tree
//!       |                                                             ^
//!       '--> the program comes to a marked file ----------------------'
//! ```
//!
//! A cached file causes no event, so some of the requested files carry marks. Directories are listed before the cursor
//! reaches them.

mod cursor;
mod directory;
mod marks;
mod means;
mod requests;
mod runs;
mod stream;
mod traversal;
mod waits;
mod walker;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use readahead::DeviceCost;

use crate::Nanos;
use crate::command::Command;
use crate::files::AT_THE_MOMENT_NS;
use crate::ids::{CgroupId, DeviceNumber, FileKey, Tgid, Ticket};
use crate::input::Access;
use crate::listing::{DirectoryRef, FileMiss, Listing, Place};
use crate::orders::Orders;
use crate::savings::{Saved, Savings, batch_gain};
use crate::shared::Shared;
use cursor::{Cursor, Unit};
use directory::{Asked, Directories};
use marks::{Marks, Outstanding, mark, unmark};
pub(crate) use means::Means;
use requests::{Batch, Requests};
use runs::Run;
use stream::{Marked, Stream};
use traversal::{BY_INODE, Traversal};
use waits::Used;
use walker::{STREAMS, Walker, suffix_of};

/// Most listings under way for one group of readers, since all groups share the threads of a device.
const MOST_LISTING: usize = 32;

/// Room for processes that are followed.
const MOST_WALKERS: usize = 256;

/// A directory with a new file is listed again, but no sooner than after this long.
const LIST_AGAIN_NS: Nanos = 1_000_000_000;

/// Files per command where accesses overlap, so that several threads open files at once.
const CHUNK: usize = 16;

/// One file in this many of a large batch is marked.
const MARK_EVERY: usize = 32;

/// Misses in a directory before reading it whole is considered: one for this many of its files, but at most
/// `MOST_MISSES`.
const FILES_PER_MISS: u32 = 8;
const MOST_MISSES: u32 = 16;

/// A process on a file system.
type WalkerKey = (DeviceNumber, Tgid);

/// A listing under way.
#[derive(Clone, Copy, Debug)]
struct Pending {
    walker: WalkerKey,
    group: CgroupId,
    key: FileKey,
}

/// Totals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) used_files: u64,
    pub(crate) listings: u64,
}

/// All walks. See the [module](self).
#[derive(Debug)]
pub(crate) struct Walks {
    walkers: Shared<WalkerKey, Walker>,
    directories: Directories,
    pending: BTreeMap<Ticket, Pending>,
    requests: Requests,
    marks: Marks,
    /// Of a stream.
    last_id: u32,
    totals: Totals,
    savings: Savings,
}

impl Default for Walks {
    fn default() -> Self {
        Walks {
            walkers: Shared::with_room(MOST_WALKERS),
            directories: Directories::default(),
            pending: BTreeMap::new(),
            requests: Requests::default(),
            marks: Marks::default(),
            last_id: 0,
            totals: Totals::default(),
            savings: Savings::default(),
        }
    }
}

impl Walks {
    /// From now on, marks every file that is read ahead, so that each use is reported. Walks draw conclusions only from
    /// the marks that they would set anyway.
    pub(crate) fn mark_all(&mut self) {
        self.marks.set_all(true);
    }

    /// Marks all files that are read ahead for this process from now on, or no more.
    pub(crate) fn mark_all_of(&mut self, tgid: Tgid, marks_all: bool) {
        self.marks.set_all_of(tgid, marks_all);
    }

    /// From now on, marks only the files from which walks draw conclusions.
    pub(crate) fn mark_few(&mut self) {
        self.marks.set_all(false);
    }

    /// Number of programs that walk now on file systems that are meant.
    pub(crate) fn walkers_at(&self, now: Nanos, is_meant: impl Fn(DeviceNumber) -> bool) -> u64 {
        let since = now.saturating_sub(AT_THE_MOMENT_NS);
        let walks = |walker: &Walker| walker.heard_at >= since && walker.ahead() > 0;
        let walkers = self.walkers.iter().filter(|((dev, _), _)| is_meant(*dev));
        walkers.filter(|(_, walker)| walks(walker)).count() as u64
    }

    /// Whether a walk has marked the file and waits for its use.
    pub(crate) fn expects(&self, file: FileKey) -> bool {
        self.marks.get(file).is_some()
    }

    /// A process reads a file whose first page was absent.
    pub(crate) fn on_miss(&mut self, miss: &FileMiss, means: &Means, orders: &mut Orders<'_>) {
        let key = (miss.of.file.dev, miss.of.tgid);
        if miss.directory.key.dev != miss.of.file.dev {
            return;
        }
        let directory = miss.directory.key;
        let walker = self.walker(key, miss.cgroup);
        let is_new = walker.note_file(orders.now, directory, miss.of.file.ino);
        walker.cgroup = miss.cgroup;
        walker.measure(miss);
        let unit = self.find(orders.now, miss).map(|entry| Unit { directory, entry });
        let is_requested = unit.is_some_and(|unit| self.asked(unit).stream != 0);
        if is_new
            && !is_requested
            && let Some(walker) = self.walkers.get_mut(&key)
        {
            walker.waits.on_miss(orders.now, means.cost.latency_s);
        }
        match unit {
            Some(unit) => self.on_known_miss(key, unit, means, orders),
            None => self.on_unknown_miss(key, miss.directory, orders),
        }
    }

    /// The entry of a file in its directory, if the directory is listed.
    fn find(&mut self, now: Nanos, miss: &FileMiss) -> Option<u32> {
        let directory = self.directories.get_mut(miss.directory.key)?;
        directory.used_at = now;
        if directory.of.generation != miss.directory.generation {
            return None;
        }
        directory.find(miss.of.file.ino)
    }

    /// A miss in a directory that is not listed, or that has this new file.
    fn on_unknown_miss(&mut self, key: WalkerKey, of: DirectoryRef, orders: &mut Orders<'_>) {
        let is_due = match self.directories.get(of.key) {
            Some(old) => orders.now.saturating_sub(old.listed_at) >= LIST_AGAIN_NS,
            None => !self.directories.is_known(of.key),
        };
        let Some(walker) = self.walkers.get(&key) else { return };
        let is_promising =
            walker.traversal.is_some() || walker.recent_in(of.key) >= 2 || walker.has_history();
        if is_due && is_promising {
            self.list_within_credit(key, of, orders);
        }
    }

    /// A miss of a file in a listed directory.
    fn on_known_miss(
        &mut self,
        key: WalkerKey,
        unit: Unit,
        means: &Means,
        orders: &mut Orders<'_>,
    ) {
        let suffix = suffix_of(unit, &self.directories);
        let Some(walker) = self.walkers.get_mut(&key) else { return };
        walker.suffixes.note(suffix, true);
        let is_late = true;
        if self.reach(key, unit, is_late, means, orders) {
            return self.request_more(key, means, orders);
        }
        self.follow(key, unit, means, orders);
    }

    fn asked(&self, unit: Unit) -> Asked {
        let directory = self.directories.get(unit.directory);
        directory.and_then(|d| d.asked.get(unit.entry as usize)).copied().unwrap_or_default()
    }

    /// The program has reached a file that a stream of this walker has requested. `is_late`: it waits, as the file has
    /// not arrived. Returns `false` if it had passed that file.
    fn reach(
        &mut self,
        key: WalkerKey,
        unit: Unit,
        is_late: bool,
        means: &Means,
        orders: &mut Orders<'_>,
    ) -> bool {
        let asked = self.asked(unit);
        let Some(walker) = self.walkers.get_mut(&key) else { return false };
        let found = walker.streams.iter().position(|stream| stream.id == asked.stream);
        let Some(at) = found.filter(|at| walker.streams[*at].awaits(asked.number)) else {
            return false;
        };
        let directories = &self.directories;
        let used = walker.reach(orders.now, at, unit, asked.number, is_late, directories);
        let stream = &mut walker.streams[at];
        while let Some(marked) = stream.passed_mark(asked.number) {
            walker.suffixes.note(marked.suffix, marked.number == asked.number);
            self.marks.remove(marked.file, orders);
        }
        self.earn(key, used, &means.cost);
        true
    }

    /// A program has used files that were read ahead.
    fn earn(&mut self, key: WalkerKey, used: Used, cost: &DeviceCost) {
        self.totals.used_files += u64::from(used.files);
        if let Some(walker) = self.walkers.get(&key) {
            let saved_s = f64::from(used.spared) * walker.waits.wait_s(cost.latency_s);
            self.savings.earn(key.0, saved_s, used.bytes, cost);
        }
    }

    /// An access touched a mark. Returns `false` if it is not a mark of a walk.
    pub(crate) fn on_mark(
        &mut self,
        access: &Access,
        means: &Means,
        orders: &mut Orders<'_>,
    ) -> bool {
        let Some(Outstanding { walker: key, unit, .. }) = self.marks.get(access.of.file) else {
            return false;
        };
        if let Some(walker) = self.walkers.get_mut(&key) {
            walker.note_file(orders.now, unit.directory, access.of.file.ino);
        }
        let is_late = false;
        if !self.reach(key, unit, is_late, means, orders) {
            self.marks.remove(access.of.file, orders);
        }
        self.request_more(key, means, orders);
        true
    }

    /// Pages that are read ahead of each file for the process of an access.
    pub(crate) fn head_pages(&self, access: &Access) -> u64 {
        let walker = self.walkers.get(&(access.of.file.dev, access.of.tgid));
        walker.map_or(0, |walker| walker.head_pages.into())
    }

    /// A process has read on in a file, beyond its first pages.
    pub(crate) fn on_read_on(&mut self, access: &Access) {
        if let Some(walker) = self.walkers.get_mut(&(access.of.file.dev, access.of.tgid)) {
            walker.note_read_on(access.page.saturating_add(access.request_pages.into()));
        }
    }

    /// A program has reached a file that no stream had requested.
    fn follow(&mut self, key: WalkerKey, unit: Unit, means: &Means, orders: &mut Orders<'_>) {
        if !self.continue_stream(key, unit, means, orders.now) {
            self.miss_out_of_order(key, unit, means, orders.now);
        }
        self.link(key, orders);
        self.request_more(key, means, orders);
    }

    /// Finds the stream that continues from a walker's last file, or begins one. Returns `false` if no traversal leads
    /// there.
    fn continue_stream(&mut self, key: WalkerKey, unit: Unit, means: &Means, now: Nanos) -> bool {
        let directories = &self.directories;
        let Some(walker) = self.walkers.get_mut(&key) else { return false };
        if walker.is_predicted {
            return true;
        }
        if let Some(used) = walker.catch_up(now, unit, directories) {
            walker.note_predicted();
            self.earn(key, used, &means.cost);
            return true;
        }
        let explained = walker.explain(directories).or_else(|| walker.begins(unit, directories));
        let Some(explained) = explained else { return false };
        walker.note_predicted();
        walker.note_skipped(&explained.traversal, directories);
        walker.traversal = Some(explained.traversal);
        self.begin(key, unit, explained.traversal, explained.top, now);
        true
    }

    /// Begins a stream behind a file.
    fn begin(
        &mut self,
        key: WalkerKey,
        unit: Unit,
        traversal: Traversal,
        top: FileKey,
        now: Nanos,
    ) {
        let cursor = Cursor::behind(unit, &traversal, &self.directories);
        let (Some(cursor), Some(walker)) = (cursor, self.walkers.get_mut(&key)) else { return };
        let id = next_id(&mut self.last_id);
        let run = Run::new(unit, cursor.place(), walker.in_a_row());
        let stream = Stream::new(id, traversal, top, cursor, run, now);
        walker.add(stream, &self.directories);
    }

    /// No traversal leads to this file. Reads the whole directory once that costs no more than the misses have.
    fn miss_out_of_order(&mut self, key: WalkerKey, unit: Unit, means: &Means, now: Nanos) {
        let Some(walker) = self.walkers.get_mut(&key) else { return };
        let Some(directory) = self.directories.get_mut(unit.directory) else { return };
        directory.misses = directory.misses.saturating_add(1);
        // Reading it whole is worth a miss for so many of its files.
        let gain = batch_gain(&means.cost);
        let is_paid = f64::from(directory.misses) * gain >= f64::from(directory.len());
        let bytes = u64::from(directory.len()).saturating_mul(walker.file_bytes());
        if directory.is_swept
            || directory.misses < (directory.len() / FILES_PER_MISS).clamp(2, MOST_MISSES)
            || !is_paid
            || bytes > means.room_bytes()
        {
            return;
        }
        directory.is_swept = true;
        let cursor = Cursor::start_of(unit.directory);
        let (id, run) = (next_id(&mut self.last_id), Run::new(unit, 0, 0));
        let mut stream = Stream::new(id, BY_INODE, unit.directory, cursor, run, now);
        stream.is_shuffled = true;
        walker.add(stream, &self.directories);
    }

    /// Lists the directories that are missing between the last two files.
    fn link(&mut self, key: WalkerKey, orders: &mut Orders<'_>) {
        let Some(walker) = self.walkers.get(&key) else { return };
        let mut last = walker.last_directories();
        let (Some(to), Some(from)) = (last.next(), last.next()) else { return };
        drop(last);
        if to == from || walker::common(to, from, &self.directories).is_some() {
            return;
        }
        for directory in [to, from] {
            if let Some(above) = self.directories.first_unlisted_above(directory) {
                self.list_within_credit(key, above, orders);
            }
        }
    }

    /// Lists a directory that may be of no use, within the walker's credit.
    fn list_within_credit(&mut self, key: WalkerKey, of: DirectoryRef, orders: &mut Orders<'_>) {
        let Some(walker) = self.walkers.get_mut(&key) else { return };
        if walker.listings_left > 0
            && self.list(key, Place::Known(of), orders)
            && let Some(walker) = self.walkers.get_mut(&key)
        {
            walker.listings_left -= 1;
        }
    }

    /// Lists a directory. Returns `false` if that cannot be requested now.
    fn list(&mut self, walker: WalkerKey, place: Place, orders: &mut Orders<'_>) -> bool {
        let group = self.group_of(walker);
        let under_way = self.pending.values().filter(|pending| pending.group == group).count();
        if under_way >= MOST_LISTING || !self.directories.has_room(group) {
            return false;
        }
        let (key, ticket) = (place.key(), orders.tickets.next());
        self.directories.pend(orders.now, group, key, |old| {
            orders.out.push(Command::ForgetListing(old));
        });
        self.pending.insert(ticket, Pending { walker, group, key });
        self.totals.listings += 1;
        orders.out.push(Command::List { ticket, place, tgid: walker.1 });
        true
    }

    /// The file system and cgroup for which a directory is being listed, or files are read.
    pub(crate) fn owner(&self, ticket: Ticket) -> Option<(DeviceNumber, CgroupId)> {
        let pending = self.pending.get(&ticket).map(|pending| pending.walker);
        let key = pending.or_else(|| self.requests.walker_of(ticket))?;
        Some((key.0, self.group_of(key)))
    }

    fn group_of(&self, walker: WalkerKey) -> CgroupId {
        self.walkers.get(&walker).map_or(CgroupId::default(), |walker| walker.cgroup)
    }

    /// A directory was listed, or could not be.
    pub(crate) fn on_listed(
        &mut self,
        ticket: Ticket,
        listing: Option<&Listing>,
        means: &Means,
        orders: &mut Orders<'_>,
    ) {
        let Some(pending) = self.pending.remove(&ticket) else { return };
        let Pending { walker: key, group, key: directory } = pending;
        match listing.filter(|listing| listing.directory.key == directory) {
            Some(listing) => {
                self.directories.list(orders.now, group, ticket, listing, |old| {
                    orders.out.push(Command::ForgetListing(old));
                });
            }
            None => {
                self.directories.fail(orders.now, directory);
                if listing.is_some() {
                    orders.out.push(Command::ForgetListing(ticket));
                }
            }
        }
        let last = self.walkers.get(&key).and_then(|walker| walker.last(&self.directories));
        if let Some(unit) = last.filter(|unit| self.asked(*unit).stream == 0) {
            self.continue_stream(key, unit, means, orders.now);
            self.link(key, orders);
        }
        if let Some(walker) = self.walkers.get_mut(&key) {
            walker.widen(&self.directories);
        }
        self.request_more(key, means, orders);
    }

    /// A batch of files was requested: the first `files`, of `bytes` in all.
    pub(crate) fn on_files_read(
        &mut self,
        ticket: Ticket,
        files: u32,
        bytes: u64,
        means: &Means,
        orders: &mut Orders<'_>,
    ) {
        let Some(mut batch) = self.requests.take(ticket) else { return };
        let files = files.min(batch.files.len() as u32);
        self.totals.files += u64::from(files);
        self.totals.bytes = self.totals.bytes.saturating_add(bytes);
        let Some(walker) = self.walkers.get_mut(&batch.walker) else { return };
        walker.note_bytes(bytes, files);
        walker.waits.on_request(bytes);
        if bytes > 0 {
            self.savings.spend(batch.walker.0, files, bytes, &means.cost);
        }
        let each = walker.file_bytes();
        let may_be_ahead = walker.ahead() <= walker.allowance() && means.room_bytes() >= each;
        if let Some(stream) = walker.streams.iter_mut().find(|stream| stream.id == batch.stream) {
            let is_cut = files > 0 && files < batch.files.len() as u32;
            // The program may have passed some of the others meanwhile.
            let over = files.max(stream.used.saturating_sub(batch.first));
            batch.files.drain(..(over as usize).min(batch.files.len()));
            batch.first += over;
            if is_cut && !batch.files.is_empty() && may_be_ahead {
                // The first files were larger than expected.
                return self.requests.send(batch, each, means, orders);
            }
            stream.batches = stream.batches.saturating_sub(1);
        }
        self.request_more(batch.walker, means, orders);
    }

    /// Requests more files in each stream of a walker, and lists directories that these will reach.
    fn request_more(&mut self, key: WalkerKey, means: &Means, orders: &mut Orders<'_>) {
        if let Some(walker) = self.walkers.get_mut(&key) {
            // Streams that the program still follows come before those that it has left.
            walker.streams.sort_unstable_by_key(|stream| Reverse((stream.heard_at, stream.id)));
        }
        let mut asked_bytes = 0;
        for at in 0..STREAMS {
            let Some(walker) = self.walkers.get_mut(&key) else { return };
            let Some(stream) = walker.streams.get(at) else { break };
            let each = walker.file_bytes();
            let room_files = means.room_files(each, asked_bytes);
            let wanted = u64::from(walker.wanted(stream, &means.cost)).min(room_files);
            if wanted > 0 {
                let units = self.next_files(key, at, wanted as usize, orders);
                asked_bytes += units.len() as u64 * each;
                self.ask(key, at, &units, means, orders);
            }
            self.scout(key, at, orders);
        }
        if let Some(walker) = self.walkers.get_mut(&key) {
            walker.streams.retain(|stream| !stream.is_over());
        }
    }

    /// The next files of a stream, at most `wanted`. If a directory must be listed before it can go on, that is begun.
    fn next_files(
        &mut self,
        key: WalkerKey,
        at: usize,
        wanted: usize,
        orders: &mut Orders<'_>,
    ) -> Vec<Unit> {
        let Some(walker) = self.walkers.get_mut(&key) else { return Vec::new() };
        let outside = walker.allowance_outside();
        let Walker { streams, runs, suffixes, .. } = walker;
        let Some(stream) = streams.get_mut(at) else { return Vec::new() };
        let directories = &mut self.directories;
        let next = stream.next_files(orders.now, wanted, outside, runs, suffixes, directories);
        if let Some(place) = next.unlisted.filter(|place| !directories.is_known(place.key())) {
            self.list(key, place, orders);
        }
        next.files
    }

    /// Requests files, and marks some of them.
    fn ask(
        &mut self,
        key: WalkerKey,
        at: usize,
        units: &[Unit],
        means: &Means,
        orders: &mut Orders<'_>,
    ) {
        self.mark_some(key, at, units, orders);
        let Some(walker) = self.walkers.get_mut(&key) else { return };
        let each = walker.file_bytes();
        let head = walker.head(means.cost.is_serial());
        let Some(stream) = walker.streams.get_mut(at).filter(|_| !units.is_empty()) else { return };
        let chunk = if means.cost.is_serial() { units.len() } else { CHUNK };
        for units in units.chunks(chunk) {
            let files = units.iter().filter_map(|unit| self.directories.entry_of(*unit)).collect();
            let batch = Batch { walker: key, stream: stream.id, first: stream.asked, files, head };
            stream.batches += 1;
            stream.asked = stream.asked.saturating_add(units.len() as u32);
            self.requests.send(batch, each, means, orders);
        }
    }

    /// Marks some of the files that a stream requests next: one in `MARK_EVERY` of many, the last, and the first
    /// outside the directory in which the stream began.
    fn mark_some(&mut self, key: WalkerKey, at: usize, units: &[Unit], orders: &mut Orders<'_>) {
        let Some(walker) = self.walkers.get_mut(&key) else { return };
        let group = walker.cgroup;
        let Some(stream) = walker.streams.get_mut(at) else { return };
        let every = (units.len() / 8).clamp(1, MARK_EVERY);
        let mut lost = Vec::new();
        for (number, unit) in (stream.asked..).zip(units) {
            let Some(directory) = self.directories.get(unit.directory) else { continue };
            let entry = directory.entries[unit.entry as usize];
            let file = FileKey { dev: key.0, ino: entry.ino };
            let is_last = number == stream.asked + units.len() as u32 - 1;
            let is_due =
                (number as usize).is_multiple_of(every) || is_last || stream.leaves_home_at(number);
            let marked = Outstanding { walker: key, unit: *unit, at: orders.now };
            if is_due && self.marks.add(group, file, marked, &mut lost) {
                stream.marks.push_back(Marked { number, file, suffix: entry.suffix });
                mark(file, orders);
            } else if self.marks.are_all_set_of(key.1) {
                mark(file, orders);
            }
        }
        for (file, marked) in lost {
            if let Some(walker) = self.walkers.get_mut(&marked.walker) {
                walker.lose_mark(file);
            }
            unmark(file, orders);
        }
    }

    /// Lists directories that a stream will reach.
    fn scout(&mut self, key: WalkerKey, at: usize, orders: &mut Orders<'_>) {
        let Some(walker) = self.walkers.get(&key) else { return };
        let goes_far = walker.crosses;
        let stream = walker.streams.get(at);
        let scout = stream.and_then(|stream| stream.scout(goes_far, &self.directories));
        let Some(mut scout) = scout else { return };
        // Listing one may make room by forgetting others, so look again after each.
        while let Some(place) = scout.next(&self.directories) {
            if !self.list(key, place, orders) {
                return;
            }
        }
        let walker = self.walkers.get_mut(&key);
        if let Some(stream) = walker.and_then(|walker| walker.streams.get_mut(at)) {
            stream.note_scouted(goes_far, &self.directories);
        }
    }

    /// The walker of that number. If there is no room for a new one, the group loses the one that was idle longest.
    fn walker(&mut self, key: WalkerKey, group: CgroupId) -> &mut Walker {
        if !self.walkers.contains_key(&key) {
            let heard_at = |walker: &Walker| Some(walker.heard_at);
            if !self.walkers.make_room(group, 1, heard_at, |_, _| ()) {
                self.walkers.forget_oldest(group, heard_at);
            }
            self.walkers.insert(group, 1, key, Walker::new());
        }
        self.walkers.get_mut(&key).expect("it was there, or has just been added")
    }

    /// Whether the files of this process are read ahead.
    pub(crate) fn follows(&self, miss: &FileMiss) -> bool {
        let walker = self.walkers.get(&(miss.of.file.dev, miss.of.tgid));
        walker.is_some_and(|walker| walker.traversal.is_some())
    }

    /// Bytes read ahead of walkers that they have not reached, as far as is known.
    pub(crate) fn ahead_bytes(&self) -> u64 {
        self.walkers.values().map(Walker::ahead_bytes).sum()
    }

    /// The same for the walkers of one cgroup.
    pub(crate) fn ahead_bytes_in(&self, cgroup: CgroupId) -> u64 {
        let walkers = self.walkers.values().filter(|walker| walker.cgroup == cgroup);
        walkers.map(Walker::ahead_bytes).sum()
    }

    /// Forgets walkers and directories that were idle since `moment`.
    pub(crate) fn forget_before(&mut self, moment: Nanos, orders: &mut Orders<'_>) {
        self.walkers.retain(|_, walker| {
            walker.rest(orders.now);
            walker.heard_at >= moment
        });
        let walkers = &self.walkers;
        self.marks.retain(orders, |file, marked| {
            walkers.get(&marked.walker).is_some_and(|walker| walker.has_marked(file))
        });
        self.requests.retain(|walker| walkers.contains_key(&walker));
        self.pending.retain(|_, pending| walkers.contains_key(&pending.walker));
        self.directories.forget_before(moment, |listing| {
            orders.out.push(Command::ForgetListing(listing));
        });
    }

    /// A file system was unmounted.
    pub(crate) fn forget_volume(&mut self, dev: DeviceNumber, orders: &mut Orders<'_>) {
        self.walkers.retain(|key, _| key.0 != dev);
        self.marks.forget_volume(dev);
        self.requests.retain(|walker| walker.0 != dev);
        self.pending.retain(|_, pending| pending.walker.0 != dev);
        self.savings.forget_volume(dev);
        self.directories.forget_volume(dev, |listing| {
            orders.out.push(Command::ForgetListing(listing));
        });
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    /// What walks have saved and cost on a file system.
    pub(crate) fn saved_on(&self, dev: DeviceNumber) -> Saved {
        self.savings.on(dev)
    }
}

/// The id of a new stream: never 0.
fn next_id(last: &mut u32) -> u32 {
    *last = last.wrapping_add(1).max(1);
    *last
}
