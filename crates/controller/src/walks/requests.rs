//! Files that were requested, and of which no answer has come yet.

use std::collections::BTreeMap;

use super::WalkerKey;
use super::means::Means;
use crate::command::{Command, Head};
use crate::ids::Ticket;
use crate::listing::EntryRef;
use crate::orders::Orders;

/// Files requested together.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub(super) walker: WalkerKey,
    pub(super) stream: u32,
    /// The number of the first file in the stream.
    pub(super) first: u32,
    pub(super) files: Vec<EntryRef>,
    pub(super) head: Head,
}

/// The batches without an answer.
#[derive(Debug, Default)]
pub(super) struct Requests(BTreeMap<Ticket, Batch>);

impl Requests {
    /// Requests the files of a batch, of about `each` bytes each.
    pub(super) fn send(&mut self, batch: Batch, each: u64, means: &Means, orders: &mut Orders<'_>) {
        let ticket = orders.tickets.next();
        let Batch { walker: (dev, tgid), head, ref files, .. } = batch;
        // Sizes differ; allow twice as much as expected.
        let most_bytes = (each * 2 * files.len() as u64).min(means.room_bytes().max(each));
        let files = files.clone();
        orders.out.push(Command::ReadFiles { ticket, dev, tgid, files, head, most_bytes });
        self.0.insert(ticket, batch);
    }

    /// Who walks to the files of a batch.
    pub(super) fn walker_of(&self, ticket: Ticket) -> Option<WalkerKey> {
        self.0.get(&ticket).map(|batch| batch.walker)
    }

    /// The batch that has been answered.
    pub(super) fn take(&mut self, ticket: Ticket) -> Option<Batch> {
        self.0.remove(&ticket)
    }

    /// Forgets the batches of walkers that `keep` rejects.
    pub(super) fn retain(&mut self, keep: impl Fn(WalkerKey) -> bool) {
        self.0.retain(|_, batch| keep(batch.walker));
    }
}
