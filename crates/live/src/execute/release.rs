//! Letting the pages of one span go: judged at the last moment, by what the kernel's tables say then.
//!
//! ```text
//!   2 MiB --> brought, used once? --> clean? --> no error of writing? --> still so? --> fadvise(DONTNEED)
//! ```
//!
//! Whoever uses a page up to the last look saves it; who comes in the microseconds after that reads
//! it again.

use std::cell::LazyCell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use controller::Completed;
use controller::ids::{FileRef, StreamKey, Ticket};
use linux::mounts::Mount;
use linux::{failpoint, handles, sys};
use readahead::behind::{BLOCK_PAGES, Span, Unused, Verdict, may_go};

use super::unmap::unmap;
use crate::observe::PageTables;

/// Pages of a file to be let go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Release {
    pub(super) ticket: Ticket,
    pub(super) stream: StreamKey,
    pub(super) of: FileRef,
    pub(super) span: Span,
    /// Pages that stay are counted within this.
    pub(super) counted: Span,
    pub(super) unused: Unused,
    /// Mapped pages are taken out of the page tables first.
    pub(super) unmaps: bool,
}

impl Release {
    /// Lets go of what may go now.
    pub(super) fn run(self, mount: &Mount, tables: &dyn PageTables) -> Completed {
        // Opened for this only, so that a file system is not held while releases wait.
        let file = LazyCell::new(|| handles::open_file(self.of, mount).ok());
        let (mut dropped_pages, mut kept_pages, mut left) = (0, 0, Vec::new());
        for piece in self.span.pieces() {
            let go = self.judge(piece, tables).go;
            if go.is_empty() {
                continue;
            }
            let Some(file) = &*file else { continue };
            let before = left.len();
            for span in go {
                dropped_pages += self.let_go(file, span, tables, &mut left);
            }
            self.forget(piece, &left[before..], tables);
        }
        if self.counted.pages() > 0
            && let Some(file) = &*file
        {
            kept_pages = self.kept(file, &left, tables);
        }
        Completed::Released { ticket: self.ticket, dropped_pages, kept_pages, left }
    }

    /// That nobody is there to do it.
    pub(super) fn refused(&self) -> Completed {
        let left = vec![(self.span, self.span.pages())];
        Completed::Released { ticket: self.ticket, dropped_pages: 0, kept_pages: 0, left }
    }

    /// What of `span` may go as things stand.
    fn judge(&self, span: Span, tables: &dyn PageTables) -> Verdict {
        let block = |block| tables.block(self.stream.file, block);
        may_go(span, self.stream.tgid, self.unused, block)
    }

    /// Pages that are counted, still cached, and neither left for another try nor to be used yet.
    fn kept(&self, file: &OwnedFd, left: &[(Span, u64)], tables: &dyn PageTables) -> u64 {
        let counted = self.counted;
        let looked_at = sys::cached_and_unwritten(file.as_fd(), counted.start, counted.pages());
        let cached = looked_at.map_or(0, |(cached, _)| cached);
        // No more of a span can lie within than all of it.
        let left = left.iter().map(|(span, pages)| span.within(counted).pages().min(*pages));
        cached.saturating_sub(left.sum()).saturating_sub(self.judge(counted, tables).waiting)
    }

    /// Pages dropped; what would go but cannot now is added to `left`.
    fn let_go(
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

    /// Pages dropped, and pages that would go but are still there. What is dirty is left alone: dropping
    /// would start its writing, page by page, and wait for the queue.
    ///
    /// What could not be written looks clean and is nowhere else: errors are asked for after that. Last
    /// of all is asked whether somebody has used a page meanwhile.
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

    /// Of whole blocks of which nothing is left to do nothing needs to be known any more.
    fn forget(&self, piece: Span, left: &[(Span, u64)], tables: &dyn PageTables) {
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
