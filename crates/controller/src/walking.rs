//! Passes inputs on to walks, with the room that device and memory leave to them.

use crate::Nanos;
use crate::command::{Command, Listening};
use crate::controller::Controller;
use crate::ids::{CgroupId, DeviceNumber, Ticket};
use crate::input::{Access, Kind};
use crate::listing::{FileMiss, Listing};
use crate::orders::Orders;
use crate::walks::Means;

impl Controller {
    /// The first page of a file was absent.
    pub(crate) fn on_file_miss(&mut self, now: Nanos, miss: &FileMiss, out: &mut Vec<Command>) {
        if self.policy.window_bound(miss.cgroup.group()).is_some() {
            // Its group is thrashing: read-ahead would evict pages that it needs.
            return;
        }
        let Some(means) = self.means(miss.of.file.dev, miss.cgroup) else { return };
        let before = out.len();
        let mut orders = Orders { now, tickets: &mut self.tickets, out };
        self.walks.on_miss(miss, &means, &mut orders);
        if self.walks.follows(miss) {
            // Its own reads must not count as foreground reads.
            let listening = Listening { managed: true, ..Listening::default() };
            out.push(Command::Listen(miss.of.file, listening));
        }
        self.keep_marks(now, before, out);
    }

    /// An access that may belong to a walker. Returns `true` if it only shows how far the walker has come.
    pub(crate) fn on_walkers_access(
        &mut self,
        now: Nanos,
        access: &Access,
        out: &mut Vec<Command>,
    ) -> bool {
        if access.kind != Kind::Mark {
            if access.page > 0 {
                self.walks.on_read_on(access);
            }
            return false;
        }
        if access.page > 0 {
            return false;
        }
        let Some(means) = self.means(access.of.file.dev, access.cgroup) else { return false };
        let before = out.len();
        let mut orders = Orders { now, tickets: &mut self.tickets, out };
        let is_ours = self.walks.on_mark(access, &means, &mut orders);
        self.keep_marks(now, before, out);
        is_ours
    }

    /// A directory was listed, or could not be.
    pub(crate) fn on_listed(
        &mut self,
        now: Nanos,
        ticket: Ticket,
        listing: Option<&Listing>,
        out: &mut Vec<Command>,
    ) {
        let owner = self.walks.owner(ticket);
        let means = owner.and_then(|(dev, cgroup)| self.means(dev, cgroup));
        let Some(means) = means else {
            // Its walker has been forgotten.
            if listing.is_some() {
                out.push(Command::ForgetListing(ticket));
            }
            return;
        };
        let before = out.len();
        let mut orders = Orders { now, tickets: &mut self.tickets, out };
        self.walks.on_listed(ticket, listing, &means, &mut orders);
        self.keep_marks(now, before, out);
    }

    /// A batch of files was requested.
    pub(crate) fn on_files_read(
        &mut self,
        now: Nanos,
        ticket: Ticket,
        files: u32,
        bytes: u64,
        out: &mut Vec<Command>,
    ) {
        let owner = self.walks.owner(ticket);
        let Some(means) = owner.and_then(|(dev, cgroup)| self.means(dev, cgroup)) else { return };
        let before = out.len();
        let mut orders = Orders { now, tickets: &mut self.tickets, out };
        self.walks.on_files_read(ticket, files, bytes, &means, &mut orders);
        self.keep_marks(now, before, out);
    }

    /// Forgets walks that are over.
    pub(crate) fn forget_walks(&mut self, now: Nanos, moment: Nanos, out: &mut Vec<Command>) {
        let before = out.len();
        let mut orders = Orders { now, tickets: &mut self.tickets, out };
        self.walks.forget_before(moment, &mut orders);
        self.keep_marks(now, before, out);
    }

    /// Goes through the commands that a walk has appended since `before`. A walk does not know the marks of streams in
    /// its files, so they are added to what it says about marked chunks. While a start is remembered, the walk's marks
    /// are noted as well: it removes marks that it takes for passed, and the start still waits for them.
    fn keep_marks(&mut self, now: Nanos, before: usize, out: &mut Vec<Command>) {
        let mut forgotten = Vec::new();
        let walker = out[before..].iter().find_map(|command| match command {
            Command::ReadFiles { tgid, .. } => Some(*tgid),
            _ => None,
        });
        let start = walker.and_then(|tgid| self.starts.of_mut(tgid));
        let mut start = start.filter(|start| !start.is_over(now));
        for command in &mut out[before..] {
            match command {
                Command::Mark(file, mark) => {
                    if let Some(start) = &mut start {
                        self.files.make_room(*file, |other| forgotten.push(other));
                        self.files.notes(*file, start.cgroup, now).mark_set(*mark);
                        start.expect(*file, *mark);
                    }
                }
                Command::Listen(file, listening) => {
                    if let Some(notes) = self.files.get_mut(*file) {
                        let known = notes.listening(0);
                        listening.marked_chunks |= known.marked_chunks;
                        listening.managed |= known.managed;
                    }
                }
                _ => {}
            }
        }
        let forget = |file| Command::Listen(file, Listening::default());
        out.extend(forgotten.into_iter().map(forget));
    }

    /// What device and memory leave to the walks of a cgroup: no room while the cgroup is thrashing.
    pub(crate) fn means(&self, dev: DeviceNumber, cgroup: CgroupId) -> Option<Means> {
        let backing = self.volumes.backing(dev).and_then(|id| self.backings.get(id))?;
        let memory_bytes = match self.policy.window_bound(cgroup.group()) {
            None => self.memory.walk_bytes(
                cgroup,
                self.ahead_bytes(),
                self.walks.ahead_bytes_in(cgroup) + self.starts.ahead_bytes_in(cgroup),
            ),
            Some(_) => 0,
        };
        Some(Means {
            cost: backing.cost(),
            depth_bytes: backing.depth_bytes(),
            in_flight_bytes: backing.in_flight_bytes(),
            access_bytes: backing.access_bytes(),
            memory_bytes,
        })
    }
}
