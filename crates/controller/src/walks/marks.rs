//! Files that carry a mark: their first access is reported.

use readahead::Mark;

use super::WalkerKey;
use super::cursor::Unit;
use crate::Nanos;
use crate::command::{Command, Listening};
use crate::ids::FileKey;
use crate::orders::Orders;
use crate::shared::Shared;

/// Room for files that carry a mark. Others are read ahead as well, but their use causes no event.
pub(super) const MOST_MARKS: usize = 4096;

/// A file that carries a mark.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outstanding {
    pub(super) walker: WalkerKey,
    pub(super) unit: Unit,
    pub(super) at: Nanos,
}

pub(super) type Marks = Shared<FileKey, Outstanding>;

/// Marks a file, so that its first access is reported. Its reader counts as managed.
pub(super) fn mark(file: FileKey, orders: &mut Orders<'_>) {
    orders.out.push(Command::Mark(file, Mark { first: 0, last: 0 }));
    let listening = Listening { marked_chunks: 1, muted_until: 0, managed: true };
    orders.out.push(Command::Listen(file, listening));
}

pub(super) fn unmark(marks: &mut Marks, file: FileKey, orders: &mut Orders<'_>) {
    if marks.remove(&file).is_some() {
        orders.out.push(Command::Listen(file, Listening::default()));
    }
}
