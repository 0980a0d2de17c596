//! Releases and writes under way. Each file system has a bound, so that one that does not answer gets no more.

use std::collections::BTreeMap;

use readahead::behind::{Span, Unused};

use super::copying::Writer;
use super::left_overs::FIRST_DELAY_NS;
use super::stream::Stream;
use crate::Nanos;
use crate::command::Command;
use crate::ids::{DeviceNumber, FileRef, StreamKey, Ticket};
use crate::orders::Orders;

/// Most releases under way on a file system, so that one that does not answer holds few.
const MOST_UNDER_WAY: usize = 384;

/// Most steps of writing under way on a file system, for the same reason.
const MOST_WRITES: usize = 16;

/// Pages of a file to be dropped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Release {
    pub(super) stream: StreamKey,
    pub(super) of: FileRef,
    pub(super) mapped: bool,
    pub(super) span: Span,
    /// Pages that stay are counted within this span.
    pub(super) counted: Span,
    /// Pages believed to be cached. At a stream's end the whole span is examined again, and most pages are gone.
    pub(super) pages: u64,
    pub(super) unused: Unused,
    /// Remove mapped pages from the page tables first.
    pub(super) unmaps: bool,
    /// Delay before the next retry of pages that cannot be dropped, and how many there have been.
    pub(super) delay: Nanos,
    pub(super) tries: u32,
}

impl Release {
    pub(super) fn of(
        key: StreamKey,
        stream: &Stream,
        span: Span,
        counted: Span,
        pages: u64,
        unused: Unused,
    ) -> Self {
        Release {
            stream: key,
            of: stream.of,
            mapped: stream.mapped,
            span,
            counted,
            pages,
            unused,
            unmaps: stream.mapped && stream.drops_everything(),
            delay: FIRST_DELAY_NS,
            tries: 0,
        }
    }
}

#[derive(Debug)]
struct UnderWay {
    release: Release,
    /// Its file system is gone.
    is_gone: bool,
}

/// Releases and writes under way.
#[derive(Debug, Default)]
pub(super) struct Releases {
    releases: BTreeMap<Ticket, UnderWay>,
    writes: BTreeMap<Ticket, DeviceNumber>,
    releases_on: BTreeMap<DeviceNumber, usize>,
    writes_on: BTreeMap<DeviceNumber, usize>,
    /// Written pages in releases under way, by process and file system.
    written: BTreeMap<Writer, u64>,
}

impl Releases {
    /// Asks for a release.
    pub(super) fn release(&mut self, release: Release, orders: &mut Orders<'_>) {
        let ticket = orders.tickets.next();
        orders.out.push(Command::Release {
            ticket,
            stream: release.stream,
            of: release.of,
            span: release.span,
            counted: release.counted,
            drops_unused: release.unused == Unused::Go,
            unmaps: release.unmaps,
        });
        *self.releases_on.entry(release.stream.file.dev).or_default() += 1;
        if release.stream.written {
            *self.written.entry(Writer::of(release.stream)).or_default() += release.pages;
        }
        self.releases.insert(ticket, UnderWay { release, is_gone: false });
    }

    /// Starts writing, unless so much is under way that it would only wait. A disk that is slower than its writer would
    /// keep its file system mounted.
    pub(super) fn write_out(&mut self, of: FileRef, span: Span, orders: &mut Orders<'_>) {
        let under_way = self.writes_on.entry(of.file.dev).or_default();
        if *under_way < MOST_WRITES {
            *under_way += 1;
            let ticket = orders.tickets.next();
            self.writes.insert(ticket, of.file.dev);
            orders.out.push(Command::WriteOut { ticket, of, span });
        }
    }

    /// Writing was started.
    pub(super) fn wrote_out(&mut self, ticket: Ticket) {
        if let Some(dev) = self.writes.remove(&ticket) {
            take_one(&mut self.writes_on, dev);
        }
    }

    /// A release was answered. Returns it, and whether its file system is still mounted. `None` if nobody waits for the
    /// answer.
    pub(super) fn answered(&mut self, ticket: Ticket) -> Option<(Release, bool)> {
        let UnderWay { release, is_gone } = self.releases.remove(&ticket)?;
        if !is_gone {
            take_one(&mut self.releases_on, release.stream.file.dev);
            if release.stream.written {
                let writer = Writer::of(release.stream);
                let pages = self.written.get_mut(&writer);
                let left = pages.map(|pages| {
                    *pages = pages.saturating_sub(release.pages);
                    *pages
                });
                if left == Some(0) {
                    self.written.remove(&writer);
                }
            }
        }
        Some((release, !is_gone))
    }

    /// Written pages of a process in releases under way on a file system.
    pub(super) fn written_pages(&self, writer: Writer) -> u64 {
        self.written.get(&writer).copied().unwrap_or(0)
    }

    /// Whether this file system may get another release.
    pub(super) fn have_room(&self, dev: DeviceNumber) -> bool {
        self.releases_on.get(&dev).is_none_or(|under_way| *under_way < MOST_UNDER_WAY)
    }

    pub(super) fn are_done(&self) -> bool {
        self.releases_on.is_empty()
    }

    pub(super) fn forget_volume(&mut self, dev: DeviceNumber) {
        let on = self.releases.values_mut().filter(|it| it.release.stream.file.dev == dev);
        on.for_each(|it| it.is_gone = true);
        self.writes.retain(|_, on| *on != dev);
        self.releases_on.remove(&dev);
        self.writes_on.remove(&dev);
        self.written.retain(|writer, _| writer.dev != dev);
    }
}

fn take_one(counts: &mut BTreeMap<DeviceNumber, usize>, dev: DeviceNumber) {
    if let Some(count) = counts.get_mut(&dev) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&dev);
        }
    }
}
