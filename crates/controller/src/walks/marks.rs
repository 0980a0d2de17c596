//! Files that carry a mark: their first access is reported.

use std::collections::BTreeSet;

use readahead::Mark;

use super::WalkerKey;
use super::cursor::Unit;
use crate::Nanos;
use crate::command::{Command, Listening};
use crate::ids::{CgroupId, DeviceNumber, FileKey, Tgid};
use crate::orders::Orders;
use crate::shared::Shared;

/// Room for files that carry a mark. Others are read ahead as well, but their use causes no event.
const MOST_MARKS: usize = 4096;

/// A file that carries a mark.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outstanding {
    pub(super) walker: WalkerKey,
    pub(super) unit: Unit,
    pub(super) at: Nanos,
}

/// The marks from which walks draw conclusions, and who wants all files marked.
#[derive(Debug)]
pub(super) struct Marks {
    outstanding: Shared<FileKey, Outstanding>,
    all: bool,
    /// Processes whose files are all marked.
    all_of: BTreeSet<Tgid>,
}

impl Default for Marks {
    fn default() -> Self {
        Marks { outstanding: Shared::with_room(MOST_MARKS), all: false, all_of: BTreeSet::new() }
    }
}

impl Marks {
    /// Whether all files are marked from now on.
    pub(super) fn set_all(&mut self, all: bool) {
        self.all = all;
    }

    /// Whether all files of this process are marked from now on.
    pub(super) fn set_all_of(&mut self, tgid: Tgid, all: bool) {
        match all {
            true => self.all_of.insert(tgid),
            false => self.all_of.remove(&tgid),
        };
    }

    pub(super) fn are_all_set_of(&self, tgid: Tgid) -> bool {
        self.all || self.all_of.contains(&tgid)
    }

    pub(super) fn get(&self, file: FileKey) -> Option<Outstanding> {
        self.outstanding.get(&file).copied()
    }

    /// Notes a mark for that group, if the file has none and there is room. Those that make room for it go to `lost`.
    pub(super) fn add(
        &mut self,
        group: CgroupId,
        file: FileKey,
        marked: Outstanding,
        lost: &mut Vec<(FileKey, Outstanding)>,
    ) -> bool {
        let age = |marked: &Outstanding| Some(marked.at);
        let is_added = !self.outstanding.contains_key(&file)
            && self.outstanding.make_room(group, 1, age, |file, old| lost.push((file, old)));
        if is_added {
            self.outstanding.insert(group, 1, file, marked);
        }
        is_added
    }

    pub(super) fn remove(&mut self, file: FileKey, orders: &mut Orders<'_>) {
        if self.outstanding.remove(&file).is_some() {
            unmark(file, orders);
        }
    }

    /// Removes the marks that `keep` rejects.
    pub(super) fn retain(
        &mut self,
        orders: &mut Orders<'_>,
        keep: impl Fn(FileKey, &Outstanding) -> bool,
    ) {
        self.outstanding.retain(|file, marked| {
            let stays = keep(*file, marked);
            if !stays {
                unmark(*file, orders);
            }
            stays
        });
    }

    /// A file system was unmounted, with the marks on it.
    pub(super) fn forget_volume(&mut self, dev: DeviceNumber) {
        self.outstanding.retain(|file, _| file.dev != dev);
    }
}

/// Marks a file, so that its first access is reported. Its reader counts as managed.
pub(super) fn mark(file: FileKey, orders: &mut Orders<'_>) {
    orders.out.push(Command::Mark(file, Mark { first: 0, last: 0 }));
    let listening = Listening { marked_chunks: 1, muted_until: 0, managed: true };
    orders.out.push(Command::Listen(file, listening));
}

/// The first access of a file is of no interest any more.
pub(super) fn unmark(file: FileKey, orders: &mut Orders<'_>) {
    orders.out.push(Command::Listen(file, Listening::default()));
}
