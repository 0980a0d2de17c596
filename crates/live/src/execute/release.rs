//! Drops the pages of one span, 2 MiB at a time, judged by the eBPF tables right before each call.
//!
//! ```text
//!   2 MiB --> brought by the stream, used once? --> clean? --> no write error? --> still so? --> fadvise(DONTNEED)
//! ```
//!
//! A page that somebody uses before the last check stays. Who uses it in the microseconds after that reads it again.

use std::cell::LazyCell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use controller::Completed;
use controller::ids::{FileRef, StreamKey, Ticket};
use ebpf::observe::PageTables;
use linux::mounts::Mount;
use linux::{failpoint, handles, sys};
use readahead::behind::{BLOCK_PAGES, Span, Unused, Verdict, may_go};
use rustix::io::Errno;

use super::opening;
use super::unmap::unmap;

/// Pages of a file to drop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Release {
    pub(super) ticket: Ticket,
    pub(super) stream: StreamKey,
    pub(super) of: FileRef,
    pub(super) span: Span,
    /// Count the pages that stay within this span.
    pub(super) counted: Span,
    pub(super) unused: Unused,
    /// First take mapped pages out of the page tables.
    pub(super) unmaps: bool,
}

impl Release {
    /// The answer if nobody does it: all of it is left.
    pub(super) fn refused(&self) -> Completed {
        let left = vec![(self.span, self.span.pages())];
        Completed::Released { ticket: self.ticket, dropped_pages: 0, kept_pages: 0, left }
    }

    pub(super) fn run(self, mount: &Mount, tables: &dyn PageTables) -> Completed {
        // Open the file only now: a waiting release must not keep the file system from being unmounted.
        self.run_on(|| opening::open(&handles::reach(self.of, mount)?), tables)
    }

    fn run_on(
        self,
        open: impl FnOnce() -> io::Result<OwnedFd>,
        tables: &dyn PageTables,
    ) -> Completed {
        let file = LazyCell::new(open);
        let (mut dropped_pages, mut kept_pages, mut left) = (0, 0, Vec::new());
        for piece in self.span.pieces() {
            let go = self.judge(piece, tables).go;
            if go.is_empty() {
                continue;
            }
            let file = match &*file {
                Ok(file) => file,
                Err(error) if may_pass(error) => {
                    left.extend(go.into_iter().map(|span| (span, span.pages())));
                    continue;
                }
                Err(_) => continue,
            };
            let before = left.len();
            for span in go {
                dropped_pages += self.drop_span(file, span, tables, &mut left);
            }
            self.forget_finished_blocks(piece, &left[before..], tables);
        }
        if self.counted.pages() > 0
            && let Ok(file) = &*file
        {
            kept_pages = self.count_kept(file, &left, tables);
        }
        Completed::Released { ticket: self.ticket, dropped_pages, kept_pages, left }
    }

    /// Which pages of `span` may go now.
    fn judge(&self, span: Span, tables: &dyn PageTables) -> Verdict {
        let block = |block| tables.block(self.stream.file, block);
        may_go(span, self.stream.tgid, self.unused, block)
    }

    /// Counts the pages of `counted` that stay cached for good: not left for another try, and not waiting to be used.
    fn count_kept(&self, file: &OwnedFd, left: &[(Span, u64)], tables: &dyn PageTables) -> u64 {
        let counted = self.counted;
        let found = sys::cached_and_unwritten(file.as_fd(), counted.start, counted.pages());
        let cached = found.map_or(0, |(cached, _)| cached);
        let left = left.iter().map(|(span, pages)| span.within(counted).pages().min(*pages));
        cached.saturating_sub(left.sum()).saturating_sub(self.judge(counted, tables).waiting)
    }

    /// Drops what it can and returns the number of pages. Adds a span that has to be tried again to `left`.
    fn drop_span(
        &self,
        file: &OwnedFd,
        span: Span,
        tables: &dyn PageTables,
        left: &mut Vec<(Span, u64)>,
    ) -> u64 {
        let Ok((mut dropped, mut still)) = self.drop_clean(file, span, tables) else { return 0 };
        if still > 0 && self.unmaps {
            unmap(self.stream, &self.judge(span, tables).go);
            if let Ok((more, rest)) = self.drop_clean(file, span, tables) {
                dropped += more;
                still = rest;
            }
        }
        if still > 0 {
            left.push((span, still));
        }
        dropped
    }

    /// Drops a span if all of it is clean. Returns the number of pages dropped, and of those that may go but are still
    /// cached. On dirty pages, `fadvise` would start to write them one by one and wait for the queue.
    ///
    /// The order of the checks matters. A page whose writing failed looks clean and is nowhere else, so ask for write
    /// errors after seeing it clean. Ask for uses last, right before dropping.
    fn drop_clean(
        &self,
        file: &OwnedFd,
        span: Span,
        tables: &dyn PageTables,
    ) -> io::Result<(u64, u64)> {
        let look = |span: Span| sys::cached_and_unwritten(file.as_fd(), span.start, span.pages());
        let (cached, unwritten) = look(span)?;
        if cached == 0 || tables.write_failed(self.stream.file) {
            return Ok((0, 0));
        }
        if unwritten > 0 {
            return Ok((0, cached));
        }
        let (mut dropped, mut left) = (0, 0);
        for part in self.judge(span, tables).go {
            let before = if part == span { cached } else { look(part)?.0 };
            sys::drop_pages(file.as_fd(), part.start, part.pages())?;
            failpoint::reach("dropped");
            let after = look(part)?.0.min(before);
            dropped += before - after;
            left += after;
        }
        Ok((dropped, left))
    }

    /// Removes the whole blocks that have nothing left to drop from the eBPF table, which is small.
    fn forget_finished_blocks(&self, piece: Span, left: &[(Span, u64)], tables: &dyn PageTables) {
        for block in piece.start.div_ceil(BLOCK_PAGES)..piece.end / BLOCK_PAGES {
            let pages = Span { start: block * BLOCK_PAGES, end: (block + 1) * BLOCK_PAGES };
            let known = tables.block(self.stream.file, block);
            let is_done = known.is_some_and(|known| known.brought & !known.used == 0);
            if is_done && left.iter().all(|(left, _)| left.within(pages).pages() == 0) {
                tables.forget(self.stream.file, block);
            }
        }
    }
}

/// Whether opening the file may succeed later: this failure is for want of memory or descriptors, or a signal came.
fn may_pass(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::INTR | Errno::MFILE | Errno::NFILE | Errno::NOMEM))
}

#[cfg(test)]
mod tests {
    use controller::ids::FileKey;
    use readahead::DeviceNumber;
    use readahead::behind::Block;

    use super::*;

    const TGID: u32 = 7;

    /// All pages were brought in and used by one process.
    struct AllUsed;

    impl PageTables for AllUsed {
        fn block(&self, _: FileKey, _: u64) -> Option<Block> {
            Some(Block { brought: u64::MAX, used: u64::MAX, owner: TGID })
        }

        fn forget(&self, _: FileKey, _: u64) {}

        fn write_failed(&self, _: FileKey) -> bool {
            false
        }
    }

    /// What is left for another try if opening the file fails so.
    fn left_after(errno: Errno) -> Vec<(Span, u64)> {
        let file = FileKey { dev: DeviceNumber { major: 7, minor: 1 }, ino: 1 };
        let release = Release {
            ticket: Ticket(1),
            stream: StreamKey { file, tgid: TGID, written: false },
            of: FileRef { file, generation: 0, tgid: TGID },
            span: Span { start: 10, end: 700 },
            counted: Span { start: 10, end: 700 },
            unused: Unused::Stay,
            unmaps: false,
        };
        match release.run_on(|| Err(errno.into()), &AllUsed) {
            Completed::Released { dropped_pages: 0, kept_pages: 0, left, .. } => left,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_release_is_tried_again_if_the_file_could_not_be_opened_just_now() {
        for errno in [Errno::INTR, Errno::MFILE, Errno::NFILE, Errno::NOMEM] {
            let left = left_after(errno);
            let pages: u64 = left.iter().map(|(span, _)| span.pages()).sum();
            assert_eq!(pages, 690, "{errno}");
            assert!(left.iter().all(|(span, pages)| span.pages() == *pages), "{left:?}");
        }
        for errno in [Errno::NOENT, Errno::STALE, Errno::ACCESS] {
            assert_eq!(left_after(errno), [], "{errno}");
        }
    }
}
