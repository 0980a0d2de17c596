//! What the body keeps of each file: its outstanding marks, and whether listening to it pays.
//!
//! A file whose misses lead to nothing (random reading of a fast disk, say) is muted in the kernel
//! for a while, then heard again for a few events, at lengthening intervals: silence costs nothing.

use std::collections::HashMap;

use readahead::{FileKey, Mark};

use crate::observe::{CHUNK_PAGES, FileState, Interest};

/// How long a file is listened to in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    /// Events in vain before a file is muted.
    first: u32,
    /// Events heard between two silences.
    next: u32,
}

impl Patience {
    /// As long as any pattern takes to show; but an event costs a reader about as much as a read
    /// from a device that answers at once, where a backward or strided reader shows with the fourth.
    pub(crate) fn with(interest: Interest) -> Self {
        match interest {
            Interest::All => Patience { first: 48, next: 12 },
            Interest::NotForward => Patience { first: 8, next: 3 },
        }
    }
}

const FIRST_SILENCE_NS: u64 = 5_000_000;
const LONGEST_SILENCE_NS: u64 = 640_000_000;

/// A stream on a slow disk is heard of at least so often.
const AT_THE_MOMENT_NS: u64 = 500_000_000;

/// Outstanding marks kept per file: two a stream, for as many streams as a policy follows.
const MARKS: usize = 64;

#[derive(Debug)]
pub(crate) struct FileNotes {
    marked_chunks: Vec<u64>,
    vain_events: u32,
    silence_ns: u64,
    led: bool,
    pub(crate) used_at: u64,
}

impl FileNotes {
    fn new() -> Self {
        FileNotes {
            marked_chunks: Vec::new(),
            vain_events: 0,
            silence_ns: FIRST_SILENCE_NS,
            led: false,
            used_at: 0,
        }
    }

    /// A mark was touched and is gone from the kernel's table.
    pub(crate) fn mark_taken(&mut self, first: u64, last: u64) {
        let chunks = first / CHUNK_PAGES..=last / CHUNK_PAGES;
        self.marked_chunks.retain(|chunk| !chunks.contains(chunk));
    }

    pub(crate) fn mark_set(&mut self, mark: Mark) {
        for chunk in mark.first / CHUNK_PAGES..=mark.last / CHUNK_PAGES {
            if self.marked_chunks.len() == MARKS {
                self.marked_chunks.remove(0);
            }
            self.marked_chunks.push(chunk);
        }
    }

    /// Something was done for this file's reader.
    pub(crate) fn served(&mut self) {
        self.vain_events = 0;
        self.silence_ns = FIRST_SILENCE_NS;
        self.led = true;
    }

    /// Its reader is one of a stream; gives whether that is news.
    pub(crate) fn recognised(&mut self) -> bool {
        !std::mem::replace(&mut self.led, true)
    }

    /// Its window is narrow at our instance: that it should be wide again has to be heard soon.
    pub(crate) fn listen_closely(&mut self) {
        self.silence_ns = FIRST_SILENCE_NS;
    }

    /// An event led to nothing; gives the moment until which the file shall be silent, if any.
    pub(crate) fn in_vain(&mut self, now: u64, patience: Patience) -> Option<u64> {
        self.vain_events += 1;
        if self.vain_events < patience.first {
            return None;
        }
        self.vain_events = patience.first - patience.next;
        let until = now + self.silence_ns;
        self.silence_ns = (self.silence_ns * 2).min(LONGEST_SILENCE_NS);
        Some(until)
    }

    pub(crate) fn state(&self, muted_until: u64) -> FileState {
        let bits = self.marked_chunks.iter().fold(0, |bits, chunk| bits | 1 << (chunk % 64));
        FileState { marked_chunks: bits, muted_until, led: self.led }
    }
}

/// The notes of all files heard of lately.
#[derive(Debug, Default)]
pub(crate) struct Book {
    files: HashMap<FileKey, FileNotes>,
}

impl Book {
    pub(crate) fn notes(&mut self, file: FileKey, now: u64) -> &mut FileNotes {
        let notes = self.files.entry(file).or_insert_with(FileNotes::new);
        notes.used_at = now;
        notes
    }

    /// Files that carry marks.
    pub(crate) fn marked_files(&self) -> impl Iterator<Item = FileKey> + '_ {
        let marked = self.files.iter().filter(|(_, notes)| !notes.marked_chunks.is_empty());
        marked.map(|(file, _)| *file)
    }

    /// Files whose readers are led at the moment.
    pub(crate) fn led_files(&self, now: u64) -> u64 {
        let since = now.saturating_sub(AT_THE_MOMENT_NS);
        self.files.values().filter(|notes| notes.led && notes.used_at >= since).count() as u64
    }

    /// Forgets files not heard of since `moment`, giving each to `forget`.
    pub(crate) fn forget_before(&mut self, moment: u64, mut forget: impl FnMut(FileKey)) {
        self.files.retain(|file, notes| {
            let keep = notes.used_at >= moment;
            if !keep {
                forget(*file);
            }
            keep
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_muted_after_events_in_vain_and_ever_longer() {
        let patience = Patience::with(Interest::All);
        let mut notes = FileNotes::new();
        let silences: Vec<u64> = (0..200)
            .filter_map(|now| notes.in_vain(now, patience).map(|until| until - now))
            .collect();
        assert_eq!(silences[..3], [FIRST_SILENCE_NS, 2 * FIRST_SILENCE_NS, 4 * FIRST_SILENCE_NS]);
        notes.served();
        assert_eq!(notes.in_vain(0, patience), None, "success is forgiving");
    }

    #[test]
    fn the_chunk_bits_are_those_of_the_outstanding_marks() {
        let mut notes = FileNotes::new();
        notes.mark_set(Mark { first: 31, last: 32 });
        notes.mark_set(Mark { first: 70 * CHUNK_PAGES, last: 70 * CHUNK_PAGES });
        assert_eq!(notes.state(0).marked_chunks, 0b11 | 1 << 6);
        notes.mark_taken(32, 40);
        assert_eq!(notes.state(0).marked_chunks, 0b1 | 1 << 6);
    }
}
