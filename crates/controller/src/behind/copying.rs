//! Which processes write faster than the disk, and which of them copy.
//!
//! ```text
//!   written, not on the disk:   too much -----> nothing is read ahead for its process,
//!                               less again ---> and is again
//!   ... by a copy, on a disk with a head -----> what it copies is read without look-ahead,
//!                               it pauses ----> and with it again
//! ```

use std::collections::{BTreeMap, BTreeSet};

use readahead::behind::is_copy;

use super::Behind;
use crate::ids::{DeviceNumber, FileKey, StreamKey, Tgid};

/// A process on a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Writer {
    tgid: Tgid,
    pub(super) dev: DeviceNumber,
}

impl Writer {
    pub(super) fn of(stream: StreamKey) -> Self {
        Writer { tgid: stream.tgid, dev: stream.file.dev }
    }
}

/// Written pages that may not be on the disk yet.
#[derive(Default)]
struct Backlog {
    pages: u64,
    most_pages: u64,
}

/// Processes that write faster than their disk.
#[derive(Debug, Default)]
pub(super) struct Backlogs {
    /// Those that have written too much now.
    too_far: BTreeSet<Writer>,
    /// Those that copy, have written too much at some time, and have not paused since; only on disks with a head.
    copying: BTreeSet<Writer>,
    /// The files that copying processes read.
    copied: BTreeSet<(Tgid, FileKey)>,
}

impl Backlogs {
    pub(super) fn holds_back(&self, tgid: Tgid) -> bool {
        self.too_far.iter().any(|writer| writer.tgid == tgid)
    }

    pub(super) fn copied(&self) -> &BTreeSet<(Tgid, FileKey)> {
        &self.copied
    }
}

impl Behind {
    /// Finds out which processes have written too much, and which of them copy.
    pub(super) fn compare_with_disks(&mut self, has_head: &dyn Fn(DeviceNumber) -> bool) {
        let too_far = self.too_far();
        let mut copying = std::mem::take(&mut self.backlogs.copying);
        copying.extend(too_far.iter().filter(|writer| has_head(writer.dev)));
        copying.retain(|writer| self.is_copying(*writer));
        let read = self.streams.iter().filter(|(key, stream)| {
            let is_read = !key.written && !stream.is_settled && stream.progress.is_engaged();
            is_read && copying.contains(&Writer::of(**key))
        });
        let copied = read.map(|(key, _)| (key.tgid, key.file)).collect();
        self.backlogs = Backlogs { too_far, copying, copied };
    }

    fn too_far(&self) -> BTreeSet<Writer> {
        let mut backlogs: BTreeMap<Writer, Backlog> = BTreeMap::new();
        for (key, stream) in self.streams.iter().filter(|(key, _)| key.written) {
            let backlog = backlogs.entry(Writer::of(*key)).or_default();
            backlog.pages += stream.progress.pending_pages();
            backlog.most_pages = stream.most_backlog_pages;
        }
        for waiting in self.waiting.iter().filter(|waiting| waiting.release.stream.written) {
            if let Some(backlog) = backlogs.get_mut(&Writer::of(waiting.release.stream)) {
                backlog.pages += waiting.release.pages;
            }
        }
        let is_too_far = |(writer, backlog): (Writer, Backlog)| {
            let pages = backlog.pages + self.releases.written_pages(writer);
            (pages > backlog.most_pages).then_some(writer)
        };
        backlogs.into_iter().filter_map(is_too_far).collect()
    }

    /// Judges by the process's streams that have not paused.
    fn is_copying(&self, writer: Writer) -> bool {
        let pages = |written: bool| {
            let its = self.streams.iter().filter(|(key, stream)| {
                Writer::of(**key) == writer && key.written == written && !stream.is_settled
            });
            its.map(|(_, stream)| stream.progress.run().pages()).sum()
        };
        is_copy(pages(false), pages(true))
    }
}
