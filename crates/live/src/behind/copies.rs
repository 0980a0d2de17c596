//! Who writes more than the disk takes, and which of those copy.
//!
//! ```text
//!   written, not on the disk:   too much -----> nothing is read ahead for its process,
//!                               less again ---> and is again
//!   ... by a copy, on a disk with a head -----> what it copies is read without look-ahead,
//!                               it pauses ----> and with it again
//! ```

use std::collections::{HashMap, HashSet};

use readahead::behind::is_copy;
use readahead::{DeviceNumber, FileKey};

use super::Behind;

/// A process, on a file system.
pub(super) type Writer = (u32, DeviceNumber);

/// Pages written that the disk may not have taken.
#[derive(Default)]
struct Backlog {
    pages: u64,
    most_pages: u64,
}

/// Whose writing the disk does not keep up with.
#[derive(Default)]
pub(super) struct Backlogs {
    /// At the moment.
    too_far: HashSet<Writer>,
    /// At a moment since, of those that copy and write on, where the disk has a head.
    copying: HashSet<Writer>,
    /// What those read.
    copied: HashSet<(u32, FileKey)>,
}

impl Behind {
    /// Whether nothing shall be read ahead for a process, as it writes faster than the disk takes it.
    /// It is not stalled: the kernel reads for it as ever, unless it copies.
    pub(crate) fn holds_back(&self, tgid: u32) -> bool {
        self.backlogs.too_far.iter().any(|(writer, _)| *writer == tgid)
    }

    /// What is being copied faster than a disk with a head writes it, and by whom: there shall be no look-ahead
    /// at all.
    pub(crate) fn copied(&self) -> &HashSet<(u32, FileKey)> {
        &self.backlogs.copied
    }

    /// Finds out who is too far ahead of the disk.
    pub(crate) fn compare_with_disks(&mut self, has_head: &dyn Fn(DeviceNumber) -> bool) {
        let too_far = self.too_far();
        let begun = too_far.iter().filter(|writer| has_head(writer.1) && self.is_copying(**writer));
        let begun: Vec<Writer> = begun.copied().collect();
        let mut copying = std::mem::take(&mut self.backlogs.copying);
        copying.extend(begun);
        copying.retain(|writer| self.is_copying(*writer));
        let read = self.streams.iter().filter(|(key, stream)| {
            let is_read = !key.written && !stream.is_settled && stream.passage.is_engaged();
            is_read && copying.contains(&(key.tgid, key.file.dev))
        });
        let copied = read.map(|(key, _)| (key.tgid, key.file)).collect();
        self.backlogs = Backlogs { too_far, copying, copied };
    }

    fn too_far(&self) -> HashSet<Writer> {
        let mut backlogs: HashMap<Writer, Backlog> = HashMap::new();
        for (key, stream) in self.streams.iter().filter(|(key, _)| key.written) {
            let backlog = backlogs.entry((key.tgid, key.file.dev)).or_default();
            backlog.pages += stream.passage.pending_pages();
            backlog.most_pages = stream.most_backlog_pages;
        }
        for waiting in self.waiting.iter().filter(|waiting| waiting.stream.written) {
            let writer = (waiting.stream.tgid, waiting.stream.file.dev);
            if let Some(backlog) = backlogs.get_mut(&writer) {
                backlog.pages += waiting.pages;
            }
        }
        let is_too_far = |(writer, backlog): (Writer, Backlog)| {
            let pages = backlog.pages + self.hands.written_pages(writer);
            (pages > backlog.most_pages).then_some(writer)
        };
        backlogs.into_iter().filter_map(is_too_far).collect()
    }

    /// By the streams that it is at; none of those has paused.
    fn is_copying(&self, (tgid, dev): Writer) -> bool {
        let pages = |written: bool| {
            let its = self.streams.iter().filter(|(key, stream)| {
                let is_its = (key.tgid, key.file.dev, key.written) == (tgid, dev, written);
                is_its && !stream.is_settled
            });
            its.map(|(_, stream)| stream.passage.run().pages()).sum()
        };
        is_copy(pages(false), pages(true))
    }
}
