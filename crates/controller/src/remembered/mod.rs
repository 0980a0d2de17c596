//! Start-up lists: what a command read at its last start is read ahead at its next one.
//!
//! ```text
//!   Input::Remembered: the list --> waiting --> ReadRemembered, Mark: as many as the start has earned
//!                                     ^              |
//!   Access: a miss, a mark -----------+              v
//!       |                                 Completed::RememberedRead: gone, cached or read
//!       v                                            |
//!   which pages, in which order                      v
//!       '---------------------------------> Controller::remembered, KeepStart: the next list
//! ```
//!
//! `bowwave run` has one start, to which all processes belong ([`Input::Remembered`](crate::Input::Remembered)). A daemon
//! may have several: it tells which process belongs to which ([`Input::Joined`](crate::Input::Joined)). The controller asks for
//! the list of each ([`Command::Recall`]), and gives the next one once the start has ended ([`Command::KeepStart`]).
//!
//! A list may be stale, so nothing is asked for until the command has come to a range of it. Then a start has a small
//! credit, and earns more with each range that the command uses.

mod range;
mod start;
mod starts;
mod wanted;

use readahead::behind::Span;
use readahead::{FileKey, Mark};
use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::command::{Command, Interest, Listening};
use crate::controller::Controller;
use crate::ids::{DeviceNumber, StartId, Tgid, Ticket};
use crate::input::{Access, Kind};
use range::{Range, marks_of};
use start::{RangeRef, Start};
pub(crate) use starts::Starts;

/// Most ranges of a list.
pub const REMEMBERED_RANGES: usize = 4096;

/// Ranges of one command where accesses overlap, so that several threads open files at once.
const CHUNK: usize = 16;

/// The contents of a file, as its size and the time of its last change tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Size in bytes.
    pub bytes: u64,
    /// Time of the last change, in nanoseconds since 1970.
    pub changed_ns: i64,
}

/// A file of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RememberedFile {
    /// The file.
    pub file: FileKey,
    /// Its generation: inode numbers are used again.
    pub generation: u32,
    /// What it contained; `None` of a file that this start has come to, at which the body has to look.
    pub version: Option<Version>,
    /// Its pages, by their number; no two ranges overlap.
    pub ranges: Vec<RememberedRange>,
}

/// Pages of a file that a command has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RememberedRange {
    /// The pages.
    pub pages: Span,
    /// At how many starts in a row it was read ahead and not used.
    pub starts_in_vain: u8,
}

/// Pages of one file to be read ahead, if the file is still the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePages {
    /// The file.
    pub file: FileKey,
    /// Its generation.
    pub generation: u32,
    /// What it has to contain.
    pub version: Version,
    /// The pages.
    pub spans: Vec<Span>,
}

/// What became of one range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Found {
    /// The file is gone, or another one, or was changed.
    Gone,
    /// It was cached, or cannot be read ahead now: nothing follows from whether it is used.
    Cached,
    /// It was asked for.
    Read,
}

impl Controller {
    /// A command starts to which all processes belong. `list` is what is remembered of it.
    pub(crate) fn on_start(&mut self, now: Nanos, list: &[RememberedFile]) {
        self.starts.begin_for_all(now, list);
        self.walks.mark_all();
    }

    /// A process belongs to a start, which may be new.
    pub(crate) fn on_joined(
        &mut self,
        now: Nanos,
        start: StartId,
        tgid: Tgid,
        out: &mut Vec<Command>,
    ) {
        let is_new = self.starts.get(start).is_none();
        if self.starts.join(now, start, tgid) {
            self.walks.mark_all_of(tgid, true);
            out.extend(is_new.then_some(Command::Recall(start)));
            out.push(Command::WatchProcess(tgid, true));
        }
    }

    /// A process has ended, which may belong to a start.
    pub(crate) fn on_member_exited(&mut self, tgid: Tgid) {
        self.starts.leave(tgid);
        self.walks.mark_all_of(tgid, false);
    }

    /// Of the commands since `before`, drops those by which drop-behind lets go of a process that belongs to a start.
    pub(crate) fn keep_watching_members(&self, before: usize, out: &mut Vec<Command>) {
        let lets_go = |command: &Command| match command {
            Command::WatchProcess(tgid, false) => self.starts.watches(*tgid),
            _ => false,
        };
        if out[before..].iter().any(lets_go) {
            let mut at = 0;
            out.retain(|command| {
                at += 1;
                at <= before || !lets_go(command)
            });
        }
    }

    /// The list of a start has been read.
    pub(crate) fn on_recalled(
        &mut self,
        start: StartId,
        list: &[RememberedFile],
        out: &mut Vec<Command>,
    ) {
        let early = self.starts.get_mut(start).map(|start| start.recall(list));
        for (at, access) in early.unwrap_or_default() {
            self.on_starting_access(at, &access, out);
        }
    }

    /// Notes an access for the list. Returns `true` if it touched a mark of a list, and so tells the policy nothing.
    pub(crate) fn on_starting_access(
        &mut self,
        now: Nanos,
        access: &Access,
        out: &mut Vec<Command>,
    ) -> bool {
        let id = self.starts.id_of(access.of.tgid);
        let mark = access.mark.map(|(first, last)| Mark { first, last });
        let is_lost = mark.is_some_and(|mark| self.starts.lose_mark(id, access.of.file, mark));
        let heard = id.and_then(|id| self.hear(now, id, access, out));
        let taken = heard.or(mark.filter(|_| is_lost));
        if let Some(mark) = taken {
            let notes = self.files.notes(access.of.file, access.cgroup, now);
            notes.mark_taken(mark);
            let listening = Listening { managed: true, ..notes.listening(0) };
            out.push(Command::Listen(access.of.file, listening));
        }
        taken.is_some()
    }

    /// Notes an access of a process of this start. Returns the mark of the start that it has touched.
    fn hear(
        &mut self,
        now: Nanos,
        id: StartId,
        access: &Access,
        out: &mut Vec<Command>,
    ) -> Option<Mark> {
        let head_pages = self.walks.head_pages(access);
        let start = self.starts.get_mut(id)?;
        if start.keep_early(now, access) {
            return None;
        }
        let (used, before) = (start.used_ranges, start.totals);
        let mark = start.hear(now, access, head_pages);
        let has_earned = start.used_ranges > used;
        if start.totals != before
            && let Some(backing) = self.volumes.backing(access.of.file.dev)
            && let Some(backing) = self.backings.get(backing)
        {
            // A file that a walk has marked, too, is counted there.
            let is_spared = access.kind == Kind::Mark && !self.walks.expects(access.of.file);
            start.earn(access.of.file.dev, before, is_spared, &backing.cost());
        }
        if has_earned {
            self.ask_for_list(now, id, out);
        }
        mark
    }

    /// Remembered ranges were asked for, as far as they could be.
    pub(crate) fn on_remembered_read(
        &mut self,
        now: Nanos,
        ticket: Ticket,
        found: &[Found],
        out: &mut Vec<Command>,
    ) {
        let Some((id, start)) = self.starts.asking(ticket) else { return };
        let before = start.totals;
        if let Some(dev) = start.answered(ticket, found)
            && let Some(backing) = self.volumes.backing(dev)
            && let Some(backing) = self.backings.get(backing)
        {
            let ranges = found.iter().filter(|found| **found == Found::Read).count();
            start.spend(dev, ranges as u32, before, &backing.cost());
        }
        self.ask_for_list(now, id, out);
    }

    /// Asks for as much of all lists as their starts have earned and devices and memory leave room for.
    pub(crate) fn ask_for_remembered(&mut self, now: Nanos, out: &mut Vec<Command>) {
        for id in self.starts.ids() {
            self.ask_for_list(now, id, out);
        }
    }

    fn ask_for_list(&mut self, now: Nanos, id: StartId, out: &mut Vec<Command>) {
        let Some(start) = self.starts.get(id) else { return };
        let cgroup = start.cgroup;
        let devs: Vec<DeviceNumber> = start
            .waiting
            .iter()
            .filter(|(_, queue)| !queue.is_empty())
            .map(|(dev, _)| *dev)
            .collect();
        for dev in devs {
            let backing = self.volumes.backing(dev).and_then(|id| self.backings.get(id));
            // A device that answers at once needs no list.
            if backing.is_none_or(|backing| backing.interest() != Interest::All) {
                continue;
            }
            let Some(means) = self.means(dev, cgroup) else { continue };
            let Some(start) = self.starts.get_mut(id) else { return };
            let ranges = start.next_ranges(dev, &means);
            let chunk = if means.cost.is_serial() { ranges.len().max(1) } else { CHUNK };
            for ranges in ranges.chunks(chunk) {
                self.ask_for_ranges(now, id, dev, ranges, out);
            }
        }
    }

    fn ask_for_ranges(
        &mut self,
        now: Nanos,
        id: StartId,
        dev: DeviceNumber,
        ranges: &[RangeRef],
        out: &mut Vec<Command>,
    ) {
        let Some(start) = self.starts.get_mut(id) else { return };
        let ticket = self.tickets.next();
        let mut files: Vec<FilePages> = Vec::new();
        for of_file in ranges.chunk_by(|(one, _), (other, _)| one == other) {
            let key = of_file[0].0;
            let Some(file) = start.files.get(&key) else { continue };
            let (generation, Some(version)) = (file.generation, file.version) else { continue };
            let size = file.group_size();
            let listed = of_file.iter().filter_map(|(_, at)| file.ranges.get(*at));
            let ranges: Vec<Range> = listed.copied().collect();
            let groups = of_file.chunk_by(|(_, one), (_, other)| one / size == other / size);
            let first = groups.filter_map(|group| file.ranges.get(group.first()?.1));
            let marked: Vec<Range> = first.copied().collect();
            let forget = |other| out.push(Command::Listen(other, Listening::default()));
            self.files.make_room(key, forget);
            let notes = self.files.notes(key, start.cgroup, now);
            for mark in marks_of(&marked) {
                out.push(Command::Mark(key, mark));
                notes.mark_set(mark);
                start.expect(key, mark);
            }
            let spans = ranges.iter().map(|range| range.pages).collect();
            // The command's own reads must not count as foreground reads.
            let listening = Listening { managed: true, ..notes.listening(0) };
            out.push(Command::Listen(key, listening));
            files.push(FilePages { file: key, generation, version, spans });
        }
        start.asked(ticket, dev, ranges.to_vec());
        let tgid = start.reader;
        out.push(Command::ReadRemembered { ticket, dev, tgid, files });
    }

    /// Lets go of starts that are over: what they have read in vain takes no room any more. Those that processes have
    /// joined end, and their lists are written.
    pub(crate) fn let_go_of_starts(&mut self, now: Nanos, out: &mut Vec<Command>) {
        for id in self.starts.ids() {
            let is_over = self.starts.is_over(now, id);
            let Some(start) = self.starts.get_mut(id).filter(|_| is_over) else { continue };
            for (file, mark) in start.let_go() {
                if self.starts.others_expect(id, file, mark) {
                    continue;
                }
                let Some(notes) = self.files.get_mut(file) else { continue };
                notes.mark_taken(mark);
                if !self.walks.expects(file) {
                    out.push(Command::Listen(file, notes.listening(0)));
                }
            }
            if self.starts.of_all().is_some() {
                self.walks.mark_few();
                continue;
            }
            let files = self.starts.get(id).map(|start| self.list_of(start)).unwrap_or_default();
            for tgid in self.starts.end(id) {
                self.walks.mark_all_of(tgid, false);
                if !self.behind.as_ref().is_some_and(|behind| behind.watches(tgid)) {
                    out.push(Command::WatchProcess(tgid, false));
                }
            }
            out.push(Command::KeepStart { start: id, files });
        }
    }

    /// A file system is gone.
    pub(crate) fn forget_remembered_volume(&mut self, dev: DeviceNumber) {
        self.starts.forget_volume(dev);
    }

    /// Marks stay for as long as the start may come to them, unless others needed the room.
    pub(crate) fn keep_remembered_marks(&mut self, now: Nanos) {
        let expected = self.starts.expected(now);
        let lost: Vec<FileKey> = expected.filter(|file| !self.files.keep(*file, now)).collect();
        lost.into_iter().for_each(|file| self.starts.lose_marks_of(file));
    }

    /// What the next start of the command should read ahead, in this order. Empty if no start of all processes was
    /// [reported](crate::Input::Remembered).
    pub fn remembered(&self) -> Vec<RememberedFile> {
        self.starts.of_all().map(|start| self.list_of(start)).unwrap_or_default()
    }

    fn list_of(&self, start: &Start) -> Vec<RememberedFile> {
        start.list(|dev| {
            let backing = self.volumes.backing(dev).and_then(|id| self.backings.get(id));
            backing.map_or(0, |backing| backing.cost().access_pages())
        })
    }
}
