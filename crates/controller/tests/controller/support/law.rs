//! Rules that every command must keep. Each breach panics.

use std::collections::{BTreeMap, BTreeSet};

use controller::ids::{BackingId, DeviceNumber, FileKey, StreamKey, Target, Ticket};
use controller::{Command, Completed, Input, Nanos, WindowOutcome, WindowSetting};
use readahead::PAGE_BYTES;
use readahead::behind::Span;

use super::MS;

/// After this long, the controller assumes that an answer is lost.
const LOST_NS: Nanos = 10_000 * MS;

/// Most pages that may be dropped ahead of an ended reader: 64 MiB.
const AHEAD_PAGES: u64 = 16_384;

/// Pages that a stream may have passed without a report: two steps of 4 MiB.
const UNTOLD_PAGES: u64 = 2048;

/// What was seen so far. It decides which commands may follow.
#[derive(Default)]
pub(crate) struct Law {
    mounted: BTreeMap<DeviceNumber, BackingId>,
    file_pages: BTreeMap<FileKey, u64>,
    passed: BTreeMap<StreamKey, Vec<Span>>,
    last_ticket: u64,
    batch: Option<(u64, FileKey)>,
    /// The window change of each device that is not answered yet.
    under_way: BTreeMap<Option<BackingId>, (Ticket, Nanos)>,
    /// The newest window change of each target.
    newest: BTreeMap<Target, Ticket>,
    last_set_at: Option<Nanos>,
    /// Targets whose window may not be their own.
    set: BTreeSet<Target>,
}

impl Law {
    pub(crate) fn give(&mut self, input: &Input) {
        match input {
            Input::Mounted(mounted) => {
                self.mounted.insert(mounted.dev, mounted.backing);
            }
            Input::Unmounted(dev) => {
                self.mounted.remove(dev);
                self.passed.retain(|stream, _| stream.file.dev != *dev);
            }
            Input::Access(access) => {
                let pages = access.file_bytes.div_ceil(PAGE_BYTES);
                let known = self.file_pages.entry(access.of.file).or_default();
                *known = pages.max(*known);
            }
            Input::Passed(passed) => {
                let stream = StreamKey {
                    file: passed.of.file,
                    tgid: passed.of.tgid,
                    written: passed.written,
                };
                self.passed.entry(stream).or_default().push(passed.span);
            }
            Input::Completed(Completed::Touched { stream, span: Some(span) }) => {
                self.passed.entry(*stream).or_default().push(*span);
            }
            Input::Completed(Completed::WindowSet { ticket, target, outcome, .. }) => {
                self.under_way.retain(|_, (asked, _)| Some(*asked) != *ticket);
                let is_news = ticket.is_none_or(|t| self.newest.get(target) == Some(&t));
                if is_news && *outcome == WindowOutcome::Own {
                    self.set.remove(target);
                }
            }
            Input::Completed(Completed::LeftBehind { entry, .. }) => {
                self.set.insert(Target::Recovered(*entry));
            }
            _ => {}
        }
    }

    pub(crate) fn check(&mut self, now: Nanos, command: &Command) {
        match command {
            Command::Read { ticket, of, span, .. } => {
                self.is_mounted(of.file.dev, command);
                let most = self.file_pages.get(&of.file).copied().unwrap_or(0);
                assert!(span.start < span.end && span.end <= most, "outside the file: {command:?}");
                if self.batch.is_some_and(|(batch, file)| batch == ticket.0 && file == of.file) {
                    return;
                }
                assert!(ticket.0 > self.last_ticket, "a ticket is used twice: {command:?}");
                (self.last_ticket, self.batch) = (ticket.0, Some((ticket.0, of.file)));
            }
            Command::Mark(file, mark) => {
                self.is_mounted(file.dev, command);
                assert!(mark.first <= mark.last && mark.last - mark.first < controller::MARK_PAGES);
            }
            Command::WriteOut { of, .. } => self.is_mounted(of.file.dev, command),
            Command::List { place, .. } => self.is_mounted(place.key().dev, command),
            Command::ReadFiles { dev, files, head, most_bytes, .. } => {
                self.is_mounted(*dev, command);
                assert!(!files.is_empty() && head.most_pages > 0 && *most_bytes > 0, "{command:?}");
            }
            Command::Listen(file, _) => self.is_mounted(file.dev, command),
            Command::Describe(stream, _) | Command::Touched(stream) => {
                self.is_mounted(stream.file.dev, command);
            }
            Command::Release { stream, of, span, drops_unused, .. } => {
                self.is_mounted(of.file.dev, command);
                assert_eq!(
                    (stream.file, stream.tgid),
                    (of.file, of.tgid),
                    "another's: {command:?}"
                );
                self.is_passed(*stream, *span, *drops_unused);
            }
            Command::SetWindow { ticket, target, file, of, setting, .. } => {
                of.iter().for_each(|of| self.is_mounted(of.file.dev, command));
                assert!(ticket.0 > self.last_ticket, "a ticket is used twice: {command:?}");
                self.last_ticket = ticket.0;
                self.is_next_on(now, self.mounted.get(&file.dev).copied(), *ticket);
                self.newest.insert(*target, *ticket);
                self.may_be_set(*target, *setting);
            }
            _ => {}
        }
    }

    fn is_mounted(&self, dev: DeviceNumber, command: &Command) {
        assert!(self.mounted.contains_key(&dev), "its volume is gone: {command:?}");
    }

    /// The whole span has been passed, except for pages shortly ahead.
    fn is_passed(&self, stream: StreamKey, span: Span, drops_unused: bool) {
        let passed = self.passed.get(&stream).map_or(&[][..], |spans| spans);
        let ahead = if drops_unused { AHEAD_PAGES } else { 0 } + UNTOLD_PAGES;
        let mut at = span.start;
        while let Some(on) =
            passed.iter().filter(|s| s.start <= at && at < s.end).map(|s| s.end).max()
        {
            at = on;
        }
        assert!(at + ahead >= span.end, "never passed: {span:?} of {stream:?}, only {passed:?}");
    }

    /// One change at a time on a device, and one per millisecond in all.
    fn is_next_on(&mut self, now: Nanos, backing: Option<BackingId>, ticket: Ticket) {
        let before = self.under_way.insert(backing, (ticket, now));
        let waits = before.filter(|(_, at)| now.saturating_sub(*at) <= LOST_NS);
        assert_eq!(waits, None, "two windows are set at once on {backing:?}");
        let before = self.last_set_at.replace(now);
        let is_soon = before.is_some_and(|at| now.saturating_sub(at) < MS);
        assert!(!is_soon, "two windows within a millisecond: {ticket:?}");
    }

    fn may_be_set(&mut self, target: Target, setting: WindowSetting) {
        let is_set = self.set.contains(&target);
        match setting {
            WindowSetting::Own => assert!(is_set, "{target:?} has its own already"),
            WindowSetting::Abandoned => {
                assert!(self.set.remove(&target), "{target:?} is nothing of ours");
            }
            _ => {
                self.set.insert(target);
            }
        }
    }
}
