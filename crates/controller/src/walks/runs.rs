//! How many files of a directory a program reads before it goes elsewhere.

use readahead::Curve;

use super::cursor::Unit;
use crate::ids::FileKey;

/// Files of a directory that are read in the order of a traversal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) directory: FileKey,
    /// Entries before the first of these.
    pub(super) start: u32,
}

/// Files that a program reads one after the other. It may go on into other directories.
#[derive(Debug)]
pub(super) struct Run {
    /// The last one.
    last: Unit,
    part: Part,
    /// Entries of this part, up to the last file.
    length: u32,
    /// The program seems to have gone elsewhere.
    is_over: bool,
    /// It counts as ended at this length.
    has_ended: bool,
}

impl Run {
    /// A run whose last files are `in_a_row` files of this directory up to `last`, which is the entry `number` of its
    /// row, counted from 1.
    pub(super) fn new(last: Unit, number: u32, in_a_row: u32) -> Self {
        let length = in_a_row.clamp(1, number.max(1));
        let part = Part { directory: last.directory, start: number.saturating_sub(length) };
        Run { last, part, length, is_over: false, has_ended: false }
    }

    /// The last file that the program has read.
    pub(super) fn last(&self) -> Unit {
        self.last
    }

    /// Whether the program seems to have gone elsewhere.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// The part of a directory that the program is reading.
    pub(super) fn part(&self) -> Part {
        self.part
    }

    /// How many entries it has passed of that directory.
    pub(super) fn length_in(&self, directory: FileKey) -> u32 {
        if self.part.directory == directory { self.length } else { 0 }
    }

    /// The program has read on, by about `files` files, up to `unit`, which is the entry `number` of its row, counted
    /// from 1.
    pub(super) fn go_on(&mut self, lengths: &mut Curve, unit: Unit, number: u32, files: u32) {
        self.is_over = false;
        if std::mem::take(&mut self.has_ended) {
            lengths.resume(self.length.into());
        }
        if unit.directory != self.part.directory {
            let start = number.saturating_sub(files.max(1));
            self.part = Part { directory: unit.directory, start };
            self.length = 0;
        }
        let length = number.saturating_sub(self.part.start).max(self.length);
        lengths.pass(self.length.into(), length.into());
        (self.last, self.length) = (unit, length);
    }

    /// The program has gone elsewhere. `leaves_files` tells that it has left files of the directory that it would have
    /// read next: only then has the run ended, and not the directory.
    pub(super) fn end(&mut self, lengths: &mut Curve, leaves_files: bool) {
        if !self.is_over && leaves_files {
            lengths.end(self.length.into());
            self.has_ended = true;
        }
        self.is_over = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::DeviceNumber;

    fn unit(directory: u64, entry: u32) -> Unit {
        let dev = DeviceNumber { major: 8, minor: 0 };
        Unit { directory: FileKey { dev, ino: directory }, entry }
    }

    #[test]
    fn a_run_is_as_long_as_the_entries_that_the_program_has_passed_in_its_directory() {
        let mut lengths = Curve::default();
        let mut run = Run::new(unit(1, 4), 5, 2);
        assert_eq!((run.part().start, run.length_in(unit(1, 0).directory)), (3, 2));
        run.go_on(&mut lengths, unit(1, 9), 10, 5);
        assert_eq!(run.length_in(unit(1, 0).directory), 7);
        // Of the last 8 files, 3 are in the next directory.
        run.go_on(&mut lengths, unit(2, 2), 3, 8);
        assert_eq!((run.part().start, run.length_in(unit(2, 0).directory)), (0, 3));
        assert_eq!(run.length_in(unit(1, 0).directory), 0);
    }

    #[test]
    fn runs_that_leave_files_bound_later_ones_unless_they_go_on_after_all() {
        let mut lengths = Curve::default();
        let ahead_of_two = |lengths: &Curve| lengths.cut(2, 2, 18, 3.0) - 2;
        let mut runs: Vec<Run> = (0..6).map(|ino| Run::new(unit(ino, 2), 3, 3)).collect();
        runs.iter_mut().for_each(|run| run.end(&mut lengths, true));
        runs.iter_mut().for_each(|run| run.end(&mut lengths, true));
        assert!(runs.iter().all(Run::is_over));
        assert_eq!(ahead_of_two(&lengths), 1);
        for (run, ino) in runs.iter_mut().zip(0..) {
            run.go_on(&mut lengths, unit(ino, 20), 21, 18);
        }
        assert_eq!(ahead_of_two(&lengths), 16);
    }

    #[test]
    fn the_end_of_a_directory_ends_no_run() {
        let mut lengths = Curve::default();
        for ino in 0..20 {
            Run::new(unit(ino, 2), 3, 3).end(&mut lengths, false);
        }
        assert_eq!(lengths.cut(2, 2, 18, 3.0), 18);
    }
}
