//! Two threads: one lets pages go, one starts writing. Both calls may wait for a device, which
//! neither the program nor the thread that decides shall do.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use readahead::behind::{Span, Unused};

use super::mapped;
use crate::observe::{Event, StreamKey, WriteErrors};
use crate::sys;

/// Far fewer than the descriptors a process may have.
const MOST_UNDER_WAY: usize = 384;

/// Steps of the writers of a slow disk.
const MOST_WRITES: usize = 16;

/// Pages of a file to be let go.
pub(super) struct Release {
    pub(super) stream: StreamKey,
    pub(super) event: Event,
    pub(super) file: OwnedFd,
    /// Looked at, of which `go` may go.
    pub(super) span: Span,
    pub(super) go: Vec<Span>,
    pub(super) unused: Unused,
    /// Mapped pages are taken out of the page tables first.
    pub(super) unmaps: bool,
    /// What cannot go is tried again after so many nanoseconds, and has been so often.
    pub(super) delay: u64,
    pub(super) tries: u32,
}

/// What became of a [`Release`].
#[derive(Debug)]
pub(super) struct Released {
    pub(super) stream: StreamKey,
    pub(super) event: Event,
    pub(super) span: Span,
    pub(super) unused: Unused,
    pub(super) delay: u64,
    pub(super) tries: u32,
    pub(super) dropped_pages: u64,
    /// Not written yet, mapped, or held by somebody at the moment; and the pages cached of each.
    pub(super) left: Vec<Span>,
    pub(super) left_pages: Vec<u64>,
}

/// The threads; they end with this.
pub(super) struct Hands {
    releases: Sender<Release>,
    released: Receiver<Released>,
    writes: Sender<(OwnedFd, Span)>,
    under_way: usize,
    writes_under_way: Arc<AtomicUsize>,
}

impl Hands {
    pub(super) fn new(write_failed: WriteErrors) -> Self {
        let (releases, release_inbox) = mpsc::channel::<Release>();
        let (done, released) = mpsc::channel();
        let (writes, write_inbox) = mpsc::channel::<(OwnedFd, Span)>();
        let release = move || {
            for release in release_inbox {
                if done.send(release.run(&write_failed)).is_err() {
                    break;
                }
            }
        };
        let writes_under_way = Arc::new(AtomicUsize::new(0));
        let written = writes_under_way.clone();
        let write = move || {
            for (file, span) in write_inbox {
                // A file system that cannot: the kernel writes when it sees fit.
                let _ = sys::write_out(file.as_fd(), span.start, span.pages());
                written.fetch_sub(1, Ordering::Relaxed);
            }
        };
        // Without a thread its channel is closed, and pages stay.
        let _ = thread::Builder::new().name("bowwave-release".into()).spawn(release);
        let _ = thread::Builder::new().name("bowwave-writeout".into()).spawn(write);
        Hands { releases, released, writes, under_way: 0, writes_under_way }
    }

    pub(super) fn release(&mut self, release: Release) {
        self.under_way += usize::from(self.releases.send(release).is_ok());
    }

    pub(super) fn write_out(&self, file: OwnedFd, span: Span) {
        // Without its thread the kernel writes when it sees fit.
        if self.writes.send((file, span)).is_ok() {
            self.writes_under_way.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether more may be written out: a disk that is slower than its writer would have any number of
    /// descriptors held, and their file system mounted.
    pub(super) fn may_write(&self) -> bool {
        self.writes_under_way.load(Ordering::Relaxed) < MOST_WRITES
    }

    /// What has been done since, waiting up to `timeout` for something if anything is under way.
    pub(super) fn done(&mut self, timeout: Duration) -> Option<Released> {
        if self.under_way == 0 {
            return None;
        }
        let done = self.released.recv_timeout(timeout).ok()?;
        self.under_way -= 1;
        Some(done)
    }

    /// Whether another release may be handed over: each holds a descriptor.
    pub(super) fn has_room(&self) -> bool {
        self.under_way < MOST_UNDER_WAY
    }

    pub(super) fn is_idle(&self) -> bool {
        self.under_way == 0
    }
}

impl Release {
    fn run(self, write_failed: &WriteErrors) -> Released {
        let (mut dropped_pages, mut left_pages, mut left) = (0, Vec::new(), Vec::new());
        for &span in &self.go {
            let Ok((before, mut after)) = self.drop_clean(span, write_failed) else { continue };
            if after > 0 && self.unmaps {
                mapped::unmap(self.stream, span);
                after = self.drop_clean(span, write_failed).map_or(after, |(_, after)| after);
            }
            dropped_pages += before - after.min(before);
            if after > 0 {
                left_pages.push(after);
                left.push(span);
            }
        }
        Released {
            stream: self.stream,
            event: self.event,
            span: self.span,
            unused: self.unused,
            delay: self.delay,
            tries: self.tries,
            dropped_pages,
            left,
            left_pages,
        }
    }

    /// Pages cached before and after. What is dirty is left alone: dropping would start its writing,
    /// page by page, and wait for the queue.
    ///
    /// What could not be written looks clean and is nowhere else: errors are asked for last.
    fn drop_clean(&self, span: Span, write_failed: &WriteErrors) -> io::Result<(u64, u64)> {
        let look = || sys::cached_and_unwritten(self.file.as_fd(), span.start, span.pages());
        let (before, unwritten) = look()?;
        if write_failed(self.stream.file) {
            return Ok((0, 0));
        }
        if before == 0 || unwritten > 0 {
            return Ok((before, before));
        }
        sys::drop_pages(self.file.as_fd(), span.start, span.pages())?;
        Ok((before, look()?.0))
    }
}
