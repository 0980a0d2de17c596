//! One way through a tree: which files were requested, and how far the program has come.

use std::collections::VecDeque;

use readahead::Curve;

use super::cursor::{Cursor, Next, Unit};
use super::directory::{Asked, Directories};
use super::runs::{Part, Run};
use super::traversal::Traversal;
use super::walker::{GAIN, LONGEST_STEP, Suffixes, common, suffix_of};
use crate::Nanos;
use crate::ids::FileKey;
use crate::listing::Place;

/// A file whose first access is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marked {
    pub(super) number: u32,
    pub(super) file: FileKey,
    pub(super) suffix: u32,
}

/// Steps of the cursor for each file that is wanted: the program skips some.
const STEPS_PER_FILE: usize = 8;

/// The least steps for a few files.
const LEAST_STEPS: usize = 32;

/// How many files the cursor looks ahead, to find directories to list.
const SCOUTED_FILES: usize = 512;

/// What a stream requests next.
#[derive(Debug, Default)]
pub(super) struct NextFiles {
    pub(super) files: Vec<Unit>,
    /// The directory that must be listed before it can go on.
    pub(super) unlisted: Option<Place>,
}

/// What decides which directories a stream will reach: while it stays the same, looking again shows nothing new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct View {
    cursor: Cursor,
    top: FileKey,
    goes_far: bool,
    /// How many listings have been answered.
    answers: u64,
}

/// Finds the directories that a stream will reach and that are not listed.
#[derive(Debug)]
pub(super) struct Scout {
    cursor: Cursor,
    traversal: Traversal,
    top: FileKey,
    /// How far it still looks.
    steps: usize,
    /// How many directories it still names.
    most: usize,
}

impl Scout {
    /// The next directory that is neither listed nor about to be.
    pub(super) fn next(&mut self, directories: &Directories) -> Option<Place> {
        while self.steps > 0 && self.most > 0 {
            self.steps -= 1;
            let next = self.cursor.next(&self.traversal, self.top, directories);
            match next {
                Next::File(_) => continue,
                Next::Unlisted(_) => self.cursor.skip(),
                Next::Above(_) | Next::End | Next::Far => self.steps = 0,
            }
            let Some(place) = next.unlisted() else { continue };
            self.most -= 1;
            if !directories.is_known(place.key()) {
                return Some(place);
            }
        }
        None
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Stream {
    /// Never 0.
    pub(super) id: u32,
    pub(super) traversal: Traversal,
    /// The walk stays below this directory, as far as is known.
    pub(super) top: FileKey,
    /// The directory in which it began.
    home: FileKey,
    /// The number of the first file requested in another directory.
    left_home_at: Option<u32>,
    /// `None` at the end of the walk.
    pub(super) cursor: Option<Cursor>,
    /// Files requested.
    pub(super) asked: u32,
    /// Files of these that the program has passed.
    pub(super) used: u32,
    /// The files that the program reads here one after the other.
    pub(super) run: Run,
    /// The part of a directory in which the cursor is.
    pub(super) part: Part,
    /// What has been scouted.
    scouted: Option<View>,
    /// Batches that are not answered yet.
    pub(super) batches: u32,
    /// Marked files that the program has not reached, in order.
    pub(super) marks: VecDeque<Marked>,
    /// The program reads in random order: a touched mark stands for its neighbours.
    pub(super) is_shuffled: bool,
    pub(super) heard_at: Nanos,
}

impl Stream {
    pub(super) fn new(
        id: u32,
        traversal: Traversal,
        top: FileKey,
        cursor: Cursor,
        run: Run,
        now: Nanos,
    ) -> Self {
        Stream {
            id,
            traversal,
            top,
            home: cursor.directory,
            left_home_at: None,
            cursor: Some(cursor),
            asked: 0,
            used: 0,
            part: run.part(),
            scouted: None,
            run,
            batches: 0,
            marks: VecDeque::new(),
            is_shuffled: false,
            heard_at: now,
        }
    }

    /// The directory in which it began.
    pub(super) fn home(&self) -> FileKey {
        self.home
    }

    /// Files requested that the program has not reached.
    pub(super) fn ahead(&self) -> u32 {
        self.asked - self.used
    }

    /// A file of that directory will be requested under that number. Returns how many files are then ahead outside the
    /// directory in which the stream began, this one included.
    pub(super) fn ahead_outside(&mut self, directory: FileKey, number: u32) -> u32 {
        if self.left_home_at.is_none() && directory != self.home {
            self.left_home_at = Some(number);
        }
        self.left_home_at.map_or(0, |from| number + 1 - from.max(self.used))
    }

    /// Whether the file of that number is the first one outside the directory in which the stream began.
    pub(super) fn leaves_home_at(&self, number: u32) -> bool {
        self.left_home_at == Some(number)
    }

    /// The walk stays below `top`, if that contains the directory below which it was known to stay.
    pub(super) fn widen(&mut self, top: FileKey, directories: &Directories) {
        if top != self.top && !self.is_shuffled && common(top, self.top, directories) == Some(top) {
            if self.cursor.is_none() {
                self.cursor = Cursor::behind_directory(self.top, &self.traversal, directories);
            }
            self.top = top;
        }
    }

    /// Whether the program will probably come to the next file, which is the entry `number` of its row, counted from 1.
    /// `wanted` more files are wanted.
    pub(super) fn reaches(&mut self, unit: Unit, number: u32, wanted: u64, runs: &Curve) -> bool {
        if self.is_shuffled {
            return true;
        }
        if unit.directory != self.part.directory {
            self.part = Part { directory: unit.directory, start: number - 1 };
        }
        let from = u64::from((number - 1).saturating_sub(self.part.start));
        let read = self.run.length_in(unit.directory).max(1);
        runs.cut(read.into(), from, from + wanted, GAIN.into()) > from
    }

    /// The next files, at most `wanted`. No more than `outside` may be ahead outside the directory in which it began.
    /// `runs` and `suffixes` tell what its walker reads.
    pub(super) fn next_files(
        &mut self,
        now: Nanos,
        wanted: usize,
        outside: u32,
        runs: &Curve,
        suffixes: &Suffixes,
        directories: &mut Directories,
    ) -> NextFiles {
        let mut found = NextFiles::default();
        for _ in 0..wanted.saturating_mul(STEPS_PER_FILE).max(LEAST_STEPS) {
            let left = wanted - found.files.len();
            let Some(mut cursor) = self.cursor.filter(|_| left > 0) else { break };
            let next = cursor.next(&self.traversal, self.top, directories);
            if let Next::File(unit) = next {
                let number = self.asked + found.files.len() as u32;
                if !self.reaches(unit, cursor.place(), left as u64, runs)
                    || self.ahead_outside(unit.directory, number) > outside
                {
                    break;
                }
                let is_read = suffixes.reads(suffix_of(unit, directories));
                let Some(directory) = directories.get_mut(unit.directory) else { break };
                directory.used_at = now;
                if is_read {
                    directory.asked[unit.entry as usize] = Asked { stream: self.id, number };
                    found.files.push(unit);
                }
            }
            self.cursor = (next != Next::End).then_some(cursor);
            found.unlisted = next.unlisted();
            if found.unlisted.is_some() {
                break;
            }
        }
        found
    }

    /// Looks ahead for directories to list: only the next one, unless the walk `goes_far`. `None` at its end, before the
    /// program has used a file, once it has gone elsewhere, and if nothing has changed since the stream was
    /// [scouted](Self::note_scouted).
    pub(super) fn scout(&self, goes_far: bool, directories: &Directories) -> Option<Scout> {
        let is_followed = self.used > 0 && !self.run.is_over();
        let view = self.view(goes_far, directories)?;
        if !is_followed || self.scouted == Some(view) {
            return None;
        }
        let View { cursor, top, .. } = view;
        let most = if goes_far { usize::MAX } else { 1 };
        Some(Scout { cursor, traversal: self.traversal, top, steps: SCOUTED_FILES, most })
    }

    /// All that its scout has found is listed, or will be.
    pub(super) fn note_scouted(&mut self, goes_far: bool, directories: &Directories) {
        self.scouted = self.view(goes_far, directories);
    }

    fn view(&self, goes_far: bool, directories: &Directories) -> Option<View> {
        let answers = directories.answers();
        Some(View { cursor: self.cursor?, top: self.top, goes_far, answers })
    }

    /// Whether the program has left a file of its directory that it would have read next. If files are ahead, an
    /// untouched mark shows that; if not, the file behind the cursor, of which no miss was reported.
    pub(super) fn leaves_files(&self, suffixes: &Suffixes, directories: &Directories) -> bool {
        let here = self.run.part().directory;
        let Some(directory) = directories.get(here) else { return false };
        if let Some(marked) = self.marks.front() {
            let entry = directory.find(marked.file.ino);
            return entry.is_some_and(|at| directory.asked[at as usize].stream == self.id);
        }
        let Some(mut cursor) = self.cursor.filter(|_| self.ahead() == 0) else { return false };
        for _ in 0..LONGEST_STEP {
            let Next::File(unit) = cursor.next(&self.traversal, here, directories) else { break };
            // The cursor may have gone on to another directory.
            if unit.directory != here || directory.asked[unit.entry as usize].stream != 0 {
                break;
            }
            if suffixes.reads(suffix_of(unit, directories)) {
                return true;
            }
        }
        false
    }

    /// Whether it requests nothing more and waits for nothing.
    pub(super) fn is_over(&self) -> bool {
        self.cursor.is_none() && self.ahead() == 0
    }

    /// Whether the program has not passed the file of that number.
    pub(super) fn awaits(&self, number: u32) -> bool {
        self.is_shuffled || number >= self.used
    }

    /// The program has reached the file of that number. Returns how many files count as used: those since the last mark
    /// that it has passed.
    pub(super) fn reach(&mut self, now: Nanos, number: u32) -> u32 {
        self.heard_at = now;
        if self.is_shuffled {
            return self.reach_shuffled(number);
        }
        let until = number.saturating_add(1).clamp(self.used, self.asked);
        let skipped = self.marks.iter().take_while(|marked| marked.number < number).last();
        let skipped = skipped.map_or(0, |marked| marked.number + 1);
        let news = until.saturating_sub(self.used.max(skipped));
        self.used = until;
        news
    }

    /// Each mark that is left stands for its share of the files ahead: files without a mark cause no event.
    fn reach_shuffled(&mut self, number: u32) -> u32 {
        let is_marked = self.marks.iter().any(|marked| marked.number == number);
        let share = self.ahead().div_ceil(self.marks.len().max(1) as u32);
        let news = if is_marked { share } else { 0 };
        self.used += news;
        news
    }

    /// The program has reached a file beyond all requested ones. Returns how many files count as used, and how many do
    /// not. The program touches each mark that it reaches, so files behind an untouched mark are not known to be used.
    pub(super) fn pass_all(&mut self, now: Nanos) -> (u32, u32) {
        self.heard_at = now;
        let untouched = self.marks.iter().find(|marked| marked.number >= self.used);
        let known = untouched.map_or(self.asked, |marked| marked.number);
        let (used, unused) = (known - self.used, self.asked - known);
        self.used = self.asked;
        (used, unused)
    }

    /// Removes the next mark up to that number, which the program has passed.
    pub(super) fn passed_mark(&mut self, number: u32) -> Option<Marked> {
        if self.is_shuffled {
            let at = self.marks.iter().position(|marked| marked.number == number)?;
            return self.marks.remove(at);
        }
        let is_passed = self.marks.front().is_some_and(|marked| marked.number <= number);
        if is_passed { self.marks.pop_front() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::traversal::{BY_INODE, TRAVERSALS};
    use super::*;
    use crate::entries::{Entries, EntryKind};
    use crate::ids::{CgroupId, DeviceNumber, Ticket};
    use crate::listing::{DirectoryRef, Listing};

    /// A directory that is read in random order: `files` are requested, and every `every`th is marked.
    fn shuffled(files: u32, every: usize) -> Stream {
        let directory = FileKey { dev: DeviceNumber::from_kernel(1), ino: 2 };
        let (unit, cursor) = (Unit { directory, entry: 0 }, Cursor::start_of(directory));
        let mut stream = Stream::new(1, BY_INODE, directory, cursor, Run::new(unit, 0, 0), 0);
        stream.is_shuffled = true;
        stream.asked = files;
        stream.marks = (0..files)
            .step_by(every)
            .map(|number| Marked { number, file: directory, suffix: 0 })
            .collect();
        stream
    }

    proptest! {
        #[test]
        fn who_has_touched_all_marks_of_a_shuffled_directory_has_used_all_of_it(
            files in 1..500u32,
            every in 1..40usize,
            order in Just((0..500u32).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let mut stream = shuffled(files, every);
            let mut used = 0;
            for number in order.into_iter().filter(|number| *number < files) {
                prop_assert!(stream.awaits(number));
                used += stream.reach(0, number);
                stream.passed_mark(number);
            }
            prop_assert_eq!((used, stream.ahead()), (files, 0));
        }
    }

    #[test]
    fn half_of_the_marks_of_a_shuffled_directory_stand_for_half_of_its_files() {
        let mut stream = shuffled(120, 10);
        for number in [110, 0, 50, 90, 70, 20] {
            stream.reach(0, number);
            stream.passed_mark(number);
        }
        assert_eq!(stream.used, 60);
    }

    /// A directory with so many files.
    fn list(directories: &mut Directories, ino: u64, files: usize) -> FileKey {
        let key = FileKey { dev: DeviceNumber::from_kernel(1), ino };
        let file = |ino| (&b"name"[..], ino, EntryKind::File);
        let entries = Entries::named((100 * ino..).take(files).map(file));
        let told =
            Listing { directory: DirectoryRef { key, generation: 0 }, parent: None, entries };
        directories.list(0, CgroupId::default(), Ticket(ino), &told, |_| ());
        key
    }

    #[test]
    fn a_stream_that_has_gone_on_into_a_larger_directory_leaves_no_files_behind() {
        let mut directories = Directories::default();
        let (small, large) = (list(&mut directories, 1, 1), list(&mut directories, 2, 9));
        let traversal = TRAVERSALS[0];
        let behind = |directory, entry| {
            Cursor::behind(Unit { directory, entry }, &traversal, &directories).unwrap()
        };
        let run = Run::new(Unit { directory: small, entry: 0 }, 1, 1);
        let mut stream = Stream::new(1, traversal, small, behind(small, 0), run, 0);
        stream.cursor = Some(behind(large, 4));
        assert!(!stream.leaves_files(&Suffixes::default(), &directories));
        let first = Run::new(Unit { directory: large, entry: 4 }, 5, 5);
        let stream = Stream::new(2, traversal, large, behind(large, 4), first, 0);
        assert!(stream.leaves_files(&Suffixes::default(), &directories));
    }

    #[test]
    fn what_has_been_scouted_is_scouted_again_after_an_answer_or_a_step_only() {
        let mut directories = Directories::default();
        let home = list(&mut directories, 1, 9);
        let unit = Unit { directory: home, entry: 0 };
        let cursor = Cursor::behind(unit, &TRAVERSALS[0], &directories).unwrap();
        let mut stream = Stream::new(1, TRAVERSALS[0], home, cursor, Run::new(unit, 1, 1), 0);
        assert!(stream.scout(true, &directories).is_none(), "it has proven nothing");
        stream.used = 1;
        assert!(stream.scout(true, &directories).is_some());
        stream.note_scouted(true, &directories);
        assert!(stream.scout(true, &directories).is_none());
        assert!(stream.scout(false, &directories).is_some(), "another reach");
        list(&mut directories, 2, 1);
        assert!(stream.scout(true, &directories).is_some(), "more is listed");
        stream.note_scouted(true, &directories);
        let next = Unit { directory: home, entry: 1 };
        stream.cursor = Cursor::behind(next, &TRAVERSALS[0], &directories);
        assert!(stream.scout(true, &directories).is_some(), "it has gone on");
        stream.run.end(&mut Curve::default(), false);
        assert!(stream.scout(true, &directories).is_none(), "its program has gone elsewhere");
    }
}
