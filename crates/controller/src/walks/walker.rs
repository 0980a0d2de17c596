//! One process on one file system: its last files, and what follows from them.

use std::collections::VecDeque;

use readahead::{Curve, DeviceCost, PAGE_BYTES};

use super::cursor::{Cursor, Next, Unit};
use super::directory::{Directories, LEVELS};
use super::stream::Stream;
use super::traversal::{TRAVERSALS, Traversal};
use super::waits::{Used, Waits};
use crate::Nanos;
use crate::command::Head;
use crate::ids::{CgroupId, FileKey};
use crate::kernel_window::first_window;
use crate::listing::FileMiss;

/// How many of its last files are remembered.
const RECENT: usize = 6;

/// How many of the last steps a traversal must explain. Older ones may have followed another order.
const STEPS: usize = 4;

/// A file may follow any of this many files before it, since several threads may walk side by side.
const SIDE_BY_SIDE: usize = 3;

/// A step to the next file may pass at most this many files, that one included. A longer one would explain anything.
pub(super) const LONGEST_STEP: u32 = 6;

/// Two files of one directory that are farther apart than this many entries are not compared closely.
const FARTHEST: u32 = 64;

/// The least score of a traversal: two steps to the next file, or more steps that are less certain.
const CONVINCING: f64 = 1.4;

/// Bytes that may be read in vain for an unknown walker.
const CREDIT_BYTES: u64 = 256 << 10;

/// Files that may be read in vain for an unknown walker.
const CREDIT_FILES: u64 = 16;

/// If the walker waits for this many files that a traversal explains, one file that was read in vain is forgiven.
const FORGIVING: u32 = 4;

/// Each used file allows this many files ahead.
pub(super) const GAIN: u32 = 3;

/// Directories that may be listed for a walker before it has used any file.
const LISTINGS: u32 = 16;

/// After this long without an event a walker rests, and some of its losses are forgotten.
const REST_NS: Nanos = 1_000_000_000;

/// Most streams of one walker: `rg` has one for each thread.
pub(super) const STREAMS: usize = 8;

/// Most suffixes that are remembered.
const SUFFIXES: usize = 16;

/// Most pages read ahead of a file, until the walker was seen to read on: 128 KiB.
const HEAD_PAGES: u32 = 32;

/// Most pages after that, 1 MiB: the rest is a stream within the file.
const LONG_HEAD_PAGES: u32 = 256;

/// Which files a walker reads, by suffix.
#[derive(Debug, Default)]
pub(super) struct Suffixes {
    counts: Vec<SuffixCount>,
}

/// How many files with this suffix were read, and how many skipped.
#[derive(Clone, Copy, Debug)]
struct SuffixCount {
    suffix: u32,
    read: u32,
    skipped: u32,
}

impl Suffixes {
    /// A file with that suffix was read, or skipped.
    pub(super) fn note(&mut self, suffix: u32, is_read: bool) {
        let found = self.counts.iter().position(|count| count.suffix == suffix);
        let at = found.unwrap_or(self.counts.len());
        if at == SUFFIXES {
            return;
        }
        if at == self.counts.len() {
            self.counts.push(SuffixCount { suffix, read: 0, skipped: 0 });
        }
        let count = &mut self.counts[at];
        let count = if is_read { &mut count.read } else { &mut count.skipped };
        *count = count.saturating_add(1);
    }

    /// Whether such files are probably read: at least one for eight that were skipped.
    pub(super) fn reads(&self, suffix: u32) -> bool {
        let count = self.counts.iter().find(|count| count.suffix == suffix);
        count.is_none_or(|count| count.skipped < 2 || count.read.saturating_mul(8) >= count.skipped)
    }

    /// Whether such files are known to be read.
    pub(super) fn has_read(&self, suffix: u32) -> bool {
        self.counts.iter().any(|count| count.suffix == suffix && count.read > 0)
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Walker {
    pub(super) cgroup: CgroupId,
    /// Its last files, the latest at the back: directory and inode number.
    recent: VecDeque<(FileKey, u64)>,
    pub(super) traversal: Option<Traversal>,
    pub(super) streams: Vec<Stream>,
    pub(super) suffixes: Suffixes,
    /// Files used, and files of streams that were given up before their use.
    pub(super) used: u32,
    pub(super) wasted: u32,
    pub(super) listings_left: u32,
    /// How many files of a directory it reads before it goes elsewhere.
    pub(super) runs: Curve,
    /// When the last stream began.
    began_at: Nanos,
    /// It has gone from one directory into another as its traversal says. A program that reads one directory and stops
    /// looks the same until then.
    pub(super) crosses: bool,
    /// A stream continues from its last file.
    pub(super) is_predicted: bool,
    /// Files that a stream had predicted, but for which it had to wait.
    predicted: u32,
    /// How often in a row no traversal explained its steps.
    unexplained: u32,
    mean_bytes: u64,
    pub(super) waits: Waits,
    pub(super) head_pages: u32,
    pub(super) heard_at: Nanos,
}

/// The explanation of the last steps.
pub(super) struct Explained {
    pub(super) traversal: Traversal,
    pub(super) top: FileKey,
}

impl Walker {
    pub(super) fn new() -> Self {
        Walker {
            cgroup: CgroupId::default(),
            recent: VecDeque::with_capacity(RECENT),
            traversal: None,
            streams: Vec::new(),
            suffixes: Suffixes::default(),
            used: 0,
            wasted: 0,
            listings_left: LISTINGS,
            runs: Curve::default(),
            began_at: 0,
            crosses: false,
            is_predicted: false,
            predicted: 0,
            unexplained: 0,
            mean_bytes: 0,
            waits: Waits::default(),
            head_pages: 1,
            heard_at: 0,
        }
    }

    /// It has reached a file. Returns whether that is another one than its last.
    pub(super) fn note_file(&mut self, now: Nanos, directory: FileKey, ino: u64) -> bool {
        self.heard_at = now;
        if self.recent.back() == Some(&(directory, ino)) {
            return false;
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((directory, ino));
        self.is_predicted = false;
        true
    }

    /// Notes the size of a file that was missed.
    pub(super) fn measure(&mut self, miss: &FileMiss) {
        let first = first_window(miss.request_pages.into(), HEAD_PAGES.into());
        self.head_pages = self.head_pages.max(first as u32);
        let head_bytes = u64::from(self.head_pages) * PAGE_BYTES;
        self.note_bytes(miss.file_bytes.min(head_bytes), 1);
    }

    /// Notes that `files` have `bytes` in all.
    pub(super) fn note_bytes(&mut self, bytes: u64, files: u32) {
        if files > 0 {
            let most = u64::from(LONG_HEAD_PAGES) * PAGE_BYTES;
            let each = (bytes / u64::from(files)).min(most);
            let before = if self.mean_bytes == 0 { each } else { self.mean_bytes };
            self.mean_bytes = (before * 3 + each) / 4;
        }
    }

    /// It has read a file up to that page.
    pub(super) fn note_read_on(&mut self, page: u64) {
        let needed = page.saturating_add(1).next_power_of_two().max(u64::from(HEAD_PAGES));
        let needed = needed.min(u64::from(LONG_HEAD_PAGES)) as u32;
        self.head_pages = self.head_pages.max(needed);
    }

    /// How much of each file to read ahead. Once the walker has read more than half of the longest head, it probably
    /// reads longer files on to their ends. A device that serves one access at a time would then come to them twice, so
    /// they are left out there.
    pub(super) fn head(&self, is_serial: bool) -> Head {
        Head {
            most_pages: self.head_pages,
            only_whole: is_serial && self.head_pages == LONG_HEAD_PAGES,
        }
    }

    /// Expected bytes to read ahead of one more file.
    pub(super) fn file_bytes(&self) -> u64 {
        self.mean_bytes.max(PAGE_BYTES)
    }

    /// Notes that a stream continues from its last file, which was not read ahead.
    pub(super) fn note_predicted(&mut self) {
        self.is_predicted = true;
        self.predicted = self.predicted.saturating_add(1);
    }

    /// How many files it has read in a row in the directory of its last one, as far as is remembered.
    pub(super) fn in_a_row(&self) -> u32 {
        let last = self.recent.back().map(|(directory, _)| *directory);
        self.recent.iter().rev().take_while(|(directory, _)| Some(*directory) == last).count()
            as u32
    }

    /// Number of recent files in that directory.
    pub(super) fn recent_in(&self, directory: FileKey) -> usize {
        self.recent.iter().filter(|(of, _)| *of == directory).count()
    }

    /// Whether enough files are remembered to find a step between them.
    pub(super) fn has_history(&self) -> bool {
        self.recent.len() >= SIDE_BY_SIDE
    }

    /// The directories of the last two files.
    pub(super) fn last_directories(&self) -> impl Iterator<Item = FileKey> {
        self.recent.iter().rev().take(2).map(|(directory, _)| *directory)
    }

    /// The last file, if its directory is listed.
    pub(super) fn last(&self, directories: &Directories) -> Option<Unit> {
        self.recent.back().and_then(|seen| resolve(*seen, directories))
    }

    /// Continues a stream whose cursor reaches this file after skipping a few others. Returns what of
    /// the files ahead counts as used, or `None` if there is no such stream.
    pub(super) fn catch_up(
        &mut self,
        now: Nanos,
        unit: Unit,
        directories: &Directories,
    ) -> Option<Used> {
        let before = self.ahead();
        for stream in &mut self.streams {
            let Some(mut cursor) = stream.cursor.filter(|_| !stream.is_shuffled) else { continue };
            let mut skipped = Vec::new();
            for _ in 0..LONGEST_STEP {
                match cursor.next(&stream.traversal, stream.top, directories) {
                    Next::File(next) if next == unit => {
                        let (used, unused) = stream.pass_all(now);
                        self.crosses |= unit.directory != stream.home();
                        self.used = self.used.saturating_add(used);
                        self.wasted = self.wasted.saturating_add(unused);
                        stream.run.go_on(&mut self.runs, unit, cursor.place(), used + 1);
                        stream.part = stream.run.part();
                        stream.cursor = Some(cursor);
                        for suffix in skipped {
                            self.suffixes.note(suffix, false);
                        }
                        return Some(self.pass(before, used));
                    }
                    Next::File(next) => skipped.push(suffix_of(next, directories)),
                    _ => break,
                }
            }
        }
        None
    }

    /// The program has reached a file that a stream has requested under that number, and waits for it if `is_late`.
    /// Returns what of the files ahead counts as used.
    pub(super) fn reach(
        &mut self,
        now: Nanos,
        stream: usize,
        unit: Unit,
        number: u32,
        is_late: bool,
        directories: &Directories,
    ) -> Used {
        let before = self.ahead();
        self.waits.on_reach(is_late);
        let stream = &mut self.streams[stream];
        let used = stream.reach(now, number);
        self.used = self.used.saturating_add(used);
        self.crosses |= unit.directory != stream.home();
        if let Some(cursor) = Cursor::behind(unit, &stream.traversal, directories) {
            stream.run.go_on(&mut self.runs, unit, cursor.place(), used);
        }
        self.pass(before, used)
    }

    /// It has passed some of the files that were ahead `before`, and has used that many of them.
    fn pass(&mut self, before: u32, used: u32) -> Used {
        let after = self.ahead();
        self.waits.pass(used, before.saturating_sub(after).saturating_sub(used), after)
    }

    /// Adds a stream, in place of the one that was idle longest.
    pub(super) fn add(&mut self, stream: Stream, directories: &Directories) {
        self.listings_left = LISTINGS;
        self.end_runs(directories);
        self.began_at = stream.heard_at;
        if self.streams.len() == STREAMS {
            let oldest = (0..STREAMS).min_by_key(|at| self.streams[*at].heard_at).unwrap_or(0);
            let before = self.ahead();
            let given_up = self.streams.remove(oldest);
            self.wasted = self.wasted.saturating_add(given_up.ahead());
            self.pass(before, 0);
        }
        self.streams.push(stream);
    }

    /// Notes that the program has left streams with which it has not gone on since it began the last one.
    fn end_runs(&mut self, directories: &Directories) {
        let Walker { streams, suffixes, runs, began_at, .. } = self;
        let idle = streams.iter_mut().filter(|stream| stream.heard_at < *began_at);
        for stream in idle.filter(|stream| !stream.is_shuffled) {
            let leaves_files = stream.leaves_files(suffixes, directories);
            stream.run.end(runs, leaves_files);
        }
    }

    /// A file does not carry its mark any more, since another group needs the room.
    pub(super) fn lose_mark(&mut self, file: FileKey) {
        self.streams
            .iter_mut()
            .for_each(|stream| stream.marks.retain(|marked| marked.file != file));
    }

    /// Whether one of its streams has marked that file.
    pub(super) fn has_marked(&self, file: FileKey) -> bool {
        self.streams.iter().any(|stream| stream.marks.iter().any(|marked| marked.file == file))
    }

    /// Time has passed: losses are forgotten gradually, so that a few files may be tried again.
    pub(super) fn rest(&mut self, now: Nanos) {
        if now.saturating_sub(self.heard_at) >= REST_NS {
            self.wasted -= self.wasted / 4;
            self.listings_left = self.listings_left.max(1);
        }
    }

    /// Files that may be read in vain for an unknown walker: 256 KiB, at least 4 and at most 16.
    fn credit(&self) -> u32 {
        (CREDIT_BYTES / self.file_bytes()).clamp(4, CREDIT_FILES) as u32
    }

    /// Files that may be ahead in other directories than the one in which a stream began.
    pub(super) fn allowance_outside(&self) -> u32 {
        if self.crosses { u32::MAX } else { self.credit() }
    }

    /// Files that may be ahead, of all its streams.
    pub(super) fn allowance(&self) -> u32 {
        let credit = self.credit();
        let earned = self.used.saturating_mul(GAIN);
        let forgiven = self.predicted / FORGIVING;
        credit.saturating_add(earned).saturating_add(forgiven).saturating_sub(self.wasted)
    }

    /// Files that are ahead.
    pub(super) fn ahead(&self) -> u32 {
        self.streams.iter().map(Stream::ahead).sum()
    }

    /// Bytes of the files that are ahead, as far as sizes are known.
    pub(super) fn ahead_bytes(&self) -> u64 {
        u64::from(self.ahead()) * self.file_bytes()
    }

    /// How many more files of a stream to request. Where accesses overlap, this keeps the device's queue full. A disk
    /// reads large batches one after the other.
    pub(super) fn wanted(&self, stream: &Stream, cost: &DeviceCost) -> u32 {
        if stream.is_shuffled {
            // The misses have paid for the whole directory: no allowance bounds it.
            return SERIAL_FILES.saturating_sub(stream.batches.saturating_mul(LEAST_FILES));
        }
        if stream.run.is_over() {
            return 0;
        }
        let most = match cost.is_serial() {
            true => SERIAL_FILES,
            false => (cost.concurrency * QUEUES) as u32,
        };
        let most = most.clamp(LEAST_FILES, SERIAL_FILES);
        let left = self.allowance().saturating_sub(self.ahead());
        // Share among streams: a program that compares two trees waits for the slower one.
        let going_on = self.streams.iter().filter(|stream| !stream.run.is_over()).count();
        let left = left.div_ceil(going_on.max(1) as u32);
        let ahead = stream.ahead();
        let most = most.min(ahead.saturating_add(left));
        let more = most.saturating_sub(ahead);
        let is_time = match cost.is_serial() {
            true => stream.batches == 0 && more >= most / 2,
            false => more >= (most / 8).max(1),
        };
        if is_time { more } else { 0 }
    }

    /// The traversal that explains the last steps, if any.
    pub(super) fn explain(&mut self, directories: &Directories) -> Option<Explained> {
        // Examine only some steps of a random reader.
        self.unexplained = self.unexplained.saturating_add(1);
        if self.unexplained > 8 && !self.unexplained.is_multiple_of(16) {
            return None;
        }
        let units: Vec<Option<Unit>> =
            self.recent.iter().map(|seen| resolve(*seen, directories)).collect();
        let last = units.last().copied().flatten()?;
        let traversals = self.traversal.iter().chain(TRAVERSALS.iter());
        let mut best: Option<(f64, Traversal)> = None;
        for traversal in traversals {
            let score = self.score(traversal, &units, directories);
            if best.is_none_or(|(most, _)| score > most) {
                best = Some((score, *traversal));
            }
        }
        let (_, traversal) = best.filter(|(score, _)| *score >= CONVINCING)?;
        self.unexplained = 0;
        Some(Explained { traversal, top: self.top(last, directories) })
    }

    /// The lowest directory that contains its last files.
    fn top(&self, last: Unit, directories: &Directories) -> FileKey {
        self.recent.iter().fold(last.directory, |top, (directory, _)| {
            common(top, *directory, directories).unwrap_or(top)
        })
    }

    /// More directories are known. The stream of its last file may go on below the lowest directory that contains all
    /// its last files.
    pub(super) fn widen(&mut self, directories: &Directories) {
        let Some(last) = self.last(directories) else { return };
        let top = self.top(last, directories);
        for stream in self.streams.iter_mut().filter(|stream| stream.run.last() == last) {
            stream.widen(top, directories);
        }
    }

    /// The walker's known traversal, if its last file `unit` is the first one which that reads in another directory.
    pub(super) fn begins(&self, unit: Unit, directories: &Directories) -> Option<Explained> {
        let traversal = self.traversal.filter(|_| self.used > 0)?;
        let mut last = self.last_directories();
        if last.next() == last.next() {
            return None;
        }
        let mut cursor = Cursor::start_of(unit.directory);
        for _ in 0..LONGEST_STEP {
            match cursor.next(&traversal, unit.directory, directories) {
                Next::File(first) if first == unit => {
                    let top = self.top(unit, directories);
                    return Some(Explained { traversal, top });
                }
                Next::File(other) if self.suffixes.reads(suffix_of(other, directories)) => {
                    return None;
                }
                Next::File(_) => {}
                Next::Unlisted(_) => cursor.skip(),
                Next::Above(_) | Next::End | Next::Far => return None,
            }
        }
        None
    }

    /// How well a traversal explains the last steps: a step to the next file counts 1, longer ones less, and one that
    /// it cannot explain -1.
    fn score(
        &self,
        traversal: &Traversal,
        units: &[Option<Unit>],
        directories: &Directories,
    ) -> f64 {
        let first = units.len().saturating_sub(STEPS);
        let mut score = 0.0;
        for at in first.max(1)..units.len() {
            let Some(to) = units[at] else { continue };
            let before = units[at.saturating_sub(SIDE_BY_SIDE)..at].iter().flatten();
            let steps = before.filter_map(|from| self.step(*from, to, traversal, directories));
            score += match steps.min() {
                Some(1) => 1.0,
                Some(2) => 0.7,
                Some(3) => 0.5,
                Some(_) => 0.3,
                None => -1.0,
            };
        }
        score
    }

    /// How many files with suffixes that it reads are between the two, the second one included.
    fn step(
        &self,
        from: Unit,
        to: Unit,
        traversal: &Traversal,
        directories: &Directories,
    ) -> Option<u32> {
        let top = common(from.directory, to.directory, directories)?;
        if from.directory == to.directory {
            let directory = directories.get(to.directory)?;
            let (one, other) = (
                directory.place(traversal.files, from.entry)?,
                directory.place(traversal.files, to.entry)?,
            );
            if other <= one || other - one > FARTHEST {
                return None;
            }
        }
        let mut cursor = Cursor::behind(from, traversal, directories)?;
        let mut step = 1;
        for _ in 0..FARTHEST {
            match cursor.next(traversal, top, directories) {
                Next::File(unit) if unit == to => return Some(step),
                Next::File(unit) => {
                    step += u32::from(self.suffixes.has_read(suffix_of(unit, directories)))
                }
                Next::Unlisted(_) => cursor.skip(),
                Next::Above(_) | Next::End | Next::Far => return None,
            }
            if step > LONGEST_STEP {
                return None;
            }
        }
        None
    }

    /// Notes the files between its last two as skipped.
    pub(super) fn note_skipped(&mut self, traversal: &Traversal, directories: &Directories) {
        let mut last = self.recent.iter().rev();
        let (Some(to), Some(from)) = (last.next(), last.next()) else { return };
        let (Some(from), Some(to)) = (resolve(*from, directories), resolve(*to, directories))
        else {
            return;
        };
        if from.directory != to.directory || self.step(from, to, traversal, directories).is_none() {
            return;
        }
        let Some(mut cursor) = Cursor::behind(from, traversal, directories) else { return };
        while let Next::File(unit) = cursor.next(traversal, from.directory, directories)
            && unit != to
        {
            self.suffixes.note(suffix_of(unit, directories), false);
        }
    }
}

/// The smallest batch: fewer files are not worth a command.
const LEAST_FILES: u32 = 16;

/// The largest batch, which a disk reads in the order of positions.
const SERIAL_FILES: u32 = 2048;

/// Files ahead for each access that a device serves at once: those in its queue, and those that wait for a place in it.
const QUEUES: f64 = 4.0;

fn resolve((directory, ino): (FileKey, u64), directories: &Directories) -> Option<Unit> {
    let entry = directories.get(directory)?.find(ino)?;
    Some(Unit { directory, entry })
}

pub(super) fn suffix_of(unit: Unit, directories: &Directories) -> u32 {
    let entry = directories.get(unit.directory).and_then(|d| d.entries.get(unit.entry as usize));
    entry.map_or(0, |entry| entry.suffix)
}

/// The lowest directory that contains both, or is one of them, as far as directories are listed.
pub(super) fn common(one: FileKey, other: FileKey, directories: &Directories) -> Option<FileKey> {
    let above = |key: FileKey| {
        std::iter::successors(Some(key), |key| Some(directories.get(*key)?.parent?.key))
            .take(LEVELS)
    };
    above(one)
        .find(|key| directories.get(*key).is_some() && above(other).any(|other| other == *key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_files_that_are_skipped_are_left_out() {
        let mut suffixes = Suffixes::default();
        assert!(suffixes.reads(7), "nothing is known");
        suffixes.note(7, false);
        suffixes.note(7, false);
        assert!(!suffixes.reads(7));
        suffixes.note(7, true);
        assert!(suffixes.reads(7), "some are read");
    }

    #[test]
    fn a_walker_may_have_more_ahead_the_more_it_has_used() {
        let mut walker = Walker::new();
        let before = walker.allowance();
        walker.used = 100;
        assert_eq!(walker.allowance(), before + 300);
        walker.wasted = 1000;
        assert_eq!(walker.allowance(), 0);
    }
}
