//! Notes on each file: its outstanding marks, and whether its events are useful.
//!
//! If the misses of a file lead to nothing (random reading of a fast disk, for example), the eBPF programs mute it for
//! a while and then report a few events, at growing intervals. A muted file costs nothing.

use readahead::Mark;

use crate::command::{Interest, Listening};
use crate::depth::KERNEL_WINDOW_BYTES;
use crate::ids::{CgroupId, DeviceNumber, FileKey};
use crate::shared::Shared;
use crate::{CHUNK_PAGES, Nanos};

/// How many unproductive events of a file are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tolerance {
    /// Before it is muted for the first time.
    first: u32,
    /// Between two times of muting.
    next: u32,
}

impl Tolerance {
    /// For a file whose reads fail.
    const FAILING: Tolerance = Tolerance { first: 48, next: 12 };

    /// Enough events for any pattern to show. An event costs a reader some microseconds. On a device that answers at
    /// once, a read takes no longer; there, the fourth event shows a backward or strided reader. Other devices take a
    /// hundred times as long, and dense random reading shows only after hundreds of misses.
    pub(crate) fn with(interest: Interest) -> Self {
        match interest {
            Interest::All => Tolerance { first: 1024, next: 256 },
            Interest::NotForward { .. } => Tolerance { first: 16, next: 3 },
        }
    }
}

/// How long a file is muted at first, and at most: it doubles seven times. A reader that turns to a pattern is noticed
/// within the longest.
const FIRST_SILENCE_NS: Nanos = 5_000_000;
const LONGEST_SILENCE_NS: Nanos = 640_000_000;

/// A stream or a walk counts as read now if it had an event within this time: even on a slow disk, events come more often.
pub(crate) const AT_THE_MOMENT_NS: Nanos = 500_000_000;

/// Most chunks with marks per file: two for each stream that a policy follows.
const MARKED_CHUNKS: usize = 64;

/// Room for files: half as many as the eBPF programs can distinguish. A machine can read more files than this
/// before they are idle long enough to be forgotten.
const MOST_FILES: usize = 8192;

/// One file.
#[derive(Debug)]
pub(crate) struct FileNotes {
    /// By chunk, as in the BPF map.
    marks: Vec<(u64, Mark)>,
    unproductive_events: u32,
    /// Its reads have failed since the last one that succeeded.
    fails: bool,
    silence_ns: Nanos,
    managed: bool,
    /// The kernel reads it whole in one window.
    fits_window: bool,
    used_at: Nanos,
    read_ahead_bytes: u64,
}

impl FileNotes {
    fn new() -> Self {
        FileNotes {
            marks: Vec::with_capacity(MARKED_CHUNKS),
            unproductive_events: 0,
            fails: false,
            silence_ns: FIRST_SILENCE_NS,
            managed: false,
            fits_window: false,
            used_at: 0,
            read_ahead_bytes: 0,
        }
    }

    /// A mark was touched, and so removed from the BPF map.
    pub(crate) fn mark_taken(&mut self, taken: Mark) {
        self.marks.retain(|(_, mark)| *mark != taken);
    }

    /// A mark was set. It replaces others in its chunks.
    pub(crate) fn mark_set(&mut self, mark: Mark) {
        for chunk in mark.first / CHUNK_PAGES..=mark.last / CHUNK_PAGES {
            self.marks.retain(|(other, _)| *other != chunk);
            if self.marks.len() == MARKED_CHUNKS {
                self.marks.remove(0);
            }
            self.marks.push((chunk, mark));
        }
    }

    /// Bytes of it were requested.
    pub(crate) fn read_ahead(&mut self, bytes: u64) {
        self.read_ahead_bytes += bytes;
    }

    /// Pages were read ahead for this file's reader.
    pub(crate) fn served(&mut self) {
        self.unproductive_events = 0;
        self.fails = false;
        self.silence_ns = FIRST_SILENCE_NS;
    }

    /// Its reader belongs to a stream. Returns whether that is new.
    pub(crate) fn recognised(&mut self, file_bytes: u64) -> bool {
        self.fits_window = file_bytes <= KERNEL_WINDOW_BYTES;
        !std::mem::replace(&mut self.managed, true)
    }

    /// Bowwave has narrowed its window, so an event that calls for the original window must be reported soon.
    pub(crate) fn listen_closely(&mut self) {
        self.silence_ns = FIRST_SILENCE_NS;
    }

    /// An event led to nothing. Returns until when to mute the file, if at all.
    pub(crate) fn unproductive(&mut self, now: Nanos, tolerance: Tolerance) -> Option<Nanos> {
        let tolerance = if self.fails { Tolerance::FAILING } else { tolerance };
        self.unproductive_events += 1;
        if self.unproductive_events < tolerance.first {
            return None;
        }
        self.unproductive_events = tolerance.first - tolerance.next;
        let until = now.saturating_add(self.silence_ns);
        self.silence_ns = (self.silence_ns * 2).min(LONGEST_SILENCE_NS);
        Some(until)
    }

    /// A requested read has failed. Returns until when to mute the file, if at all.
    pub(crate) fn failed(&mut self, now: Nanos) -> Option<Nanos> {
        if !std::mem::replace(&mut self.fails, true) {
            self.unproductive_events = 0;
        }
        self.unproductive(now, Tolerance::FAILING)
    }

    pub(crate) fn listening(&self, muted_until: Nanos) -> Listening {
        let bits = self.marks.iter().fold(0, |bits, (chunk, _)| bits | 1 << (chunk % 64));
        Listening { marked_chunks: bits, muted_until, managed: self.managed }
    }
}

/// Notes on all files with recent events.
#[derive(Debug)]
pub(crate) struct FileTable {
    files: Shared<FileKey, FileNotes>,
}

impl Default for FileTable {
    fn default() -> Self {
        FileTable { files: Shared::with_room(MOST_FILES) }
    }
}

impl FileTable {
    /// The notes on a file that a reader of that group has come to.
    pub(crate) fn notes(&mut self, file: FileKey, group: CgroupId, now: Nanos) -> &mut FileNotes {
        if !self.files.contains_key(&file) {
            self.files.insert(group, 1, file, FileNotes::new());
        }
        let notes = self.files.get_mut(&file).expect("it was there, or has just been added");
        notes.used_at = now;
        notes
    }

    /// Makes room for a file. If the table is full, the groups that have the most files in it lose those that were idle
    /// longest. That is a quarter of all files, since a search for one would take as long. Each is passed to `forget`.
    pub(crate) fn make_room(&mut self, file: FileKey, mut forget: impl FnMut(FileKey)) {
        if !self.files.contains_key(&file) {
            self.files.make_much_room(|notes| notes.used_at, |file, _| forget(file));
        }
    }

    /// Keeps what is known of a file. Returns whether anything is.
    pub(crate) fn keep(&mut self, file: FileKey, now: Nanos) -> bool {
        let notes = self.files.get_mut(&file);
        notes.map(|notes| notes.used_at = now).is_some()
    }

    /// The notes on a file that had an event recently.
    pub(crate) fn get_mut(&mut self, file: FileKey) -> Option<&mut FileNotes> {
        self.files.get_mut(&file)
    }

    /// Number of files whose readers are managed now.
    pub(crate) fn managed(&self, now: Nanos) -> u64 {
        self.managed_now(now).count() as u64
    }

    /// Of these, the files that are longer than one window of the kernel, on file systems that are meant.
    pub(crate) fn streams(&self, now: Nanos, is_meant: impl Fn(DeviceNumber) -> bool) -> u64 {
        let streams = self.managed_now(now).filter(|(_, notes)| !notes.fits_window);
        streams.filter(|(file, _)| is_meant(file.dev)).count() as u64
    }

    fn managed_now(&self, now: Nanos) -> impl Iterator<Item = (&FileKey, &FileNotes)> {
        let since = now.saturating_sub(AT_THE_MOMENT_NS);
        self.files.iter().filter(move |(_, notes)| notes.managed && notes.used_at >= since)
    }

    /// Forgets files without an event since `moment`, and passes each to `forget`.
    pub(crate) fn forget_before(&mut self, moment: Nanos, mut forget: impl FnMut(FileKey)) {
        self.files.retain(|file, notes| {
            let keep = notes.used_at >= moment;
            if !keep {
                forget(*file);
            }
            keep
        });
    }

    /// A file system was unmounted.
    pub(crate) fn forget_volume(&mut self, dev: DeviceNumber) {
        self.files.retain(|file, _| file.dev != dev);
    }

    /// The `most` files with most bytes read ahead, in descending order, each with its bytes.
    pub(crate) fn busiest(&self, most: usize) -> Vec<(FileKey, u64)> {
        let read = self.files.iter().map(|(file, notes)| (*file, notes.read_ahead_bytes));
        let mut read: Vec<_> = read.filter(|(_, bytes)| *bytes > 0).collect();
        read.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        read.truncate(most);
        read
    }

    /// Number of files remembered.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_muted_after_unproductive_events_and_ever_longer() {
        let tolerance = Tolerance::FAILING;
        let mut notes = FileNotes::new();
        let silences: Vec<u64> = (0..200)
            .filter_map(|now| notes.unproductive(now, tolerance).map(|until| until - now))
            .collect();
        assert_eq!(silences[..3], [FIRST_SILENCE_NS, 2 * FIRST_SILENCE_NS, 4 * FIRST_SILENCE_NS]);
        notes.served();
        assert_eq!(notes.unproductive(0, tolerance), None, "success is forgiving");
        (0..40).for_each(|_| assert_eq!(notes.unproductive(0, tolerance), None));
        let silences = (0..48).filter(|_| notes.failed(0).is_some());
        assert_eq!(silences.count(), 1, "the first read that fails is not one too many");
    }

    #[test]
    fn the_most_recent_of_too_many_files_are_remembered() {
        let mut table = FileTable::default();
        let file = |ino| FileKey { dev: DeviceNumber { major: 7, minor: 1 }, ino };
        let mut forgotten = 0;
        for ino in 0..100_000 {
            table.make_room(file(ino), |_| forgotten += 1);
            table.notes(file(ino), CgroupId(1), ino);
            assert!(table.len() <= MOST_FILES);
            assert_eq!(table.len() as u64 + forgotten, ino + 1, "each is told of");
        }
        assert!((99_990..100_000).all(|ino| table.get_mut(file(ino)).is_some()));
    }

    #[test]
    fn the_chunk_bits_are_those_of_the_outstanding_marks() {
        let mut notes = FileNotes::new();
        notes.mark_set(Mark { first: 31, last: 32 });
        notes.mark_set(Mark { first: 70 * CHUNK_PAGES, last: 70 * CHUNK_PAGES });
        assert_eq!(notes.listening(0).marked_chunks, 0b11 | 1 << 6);
        notes.mark_taken(Mark { first: 31, last: 32 });
        assert_eq!(notes.listening(0).marked_chunks, 1 << 6);
    }

    #[test]
    fn a_mark_stays_when_one_that_it_replaced_in_a_chunk_is_touched() {
        let mut notes = FileNotes::new();
        notes.mark_set(Mark { first: 30, last: 37 });
        notes.mark_set(Mark { first: 36, last: 43 });
        notes.mark_taken(Mark { first: 30, last: 37 });
        assert_eq!(notes.listening(0).marked_chunks, 0b10);
    }
}
