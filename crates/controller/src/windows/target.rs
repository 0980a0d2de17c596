//! One target: its last access, its window, and the changes that were tried.

use readahead::Past;

use super::{PATIENCE_NS, RETRY_NS};
use crate::Nanos;
use crate::command::{Command, WindowSetting};
use crate::ids::{DeviceNumber, FileKey, FileRef, Target, Tgid, Ticket};
use crate::input::{Access, Advice, Kind, WindowOutcome};

/// A change that was requested.
#[derive(Clone, Copy, Debug)]
struct Asked {
    ticket: Ticket,
    setting: WindowSetting,
    /// The window before, if the answer is overdue. The change then counts as made.
    overdue: Option<WindowSetting>,
}

/// What is known of a target.
#[derive(Debug)]
pub(super) struct Entry {
    /// The last access through it.
    pub(super) access: Access,
    pub(super) heard_at: Nanos,
    /// Its window before any change, in pages.
    pub(super) own_pages: u32,
    pub(super) actual: WindowSetting,
    /// The window that the policy wants for a mapped file.
    pub(super) narrow: Option<u32>,
    /// The window with which the kernel reads ahead in bowwave's place.
    pub(super) larger: Option<u32>,
    /// The window in which the kernel should read ahead while nobody else waits for the device.
    pub(super) wide: Option<u32>,
    /// No wider window before that: the last one was given back.
    wide_from: Nanos,
    /// When its window was last set.
    set_at: Nanos,
    /// Requests in a row that were longer than its own window, and the window that the longest of them needs.
    long_requests: (u32, u32),
    /// It is an entry of an earlier run's journal.
    pub(super) is_left_behind: bool,
    /// It has been idle for long, and its place is needed.
    pub(super) is_over: bool,
    /// Another group needs its place: it is forgotten as soon as it has its own window.
    pub(super) makes_room: bool,
    /// The reader and file of the copy, if its look-ahead was taken away. Other processes may have the same open file.
    copied_by: Option<(Tgid, FileKey)>,
    /// The newest change that was requested and is not answered yet.
    asked: Option<Asked>,
    /// When a change last failed.
    failed_at: Option<Nanos>,
    /// When advice of ours was last set, and when it was last removed. Accesses from before either may still arrive.
    advised_at: Nanos,
    given_back_at: Option<Nanos>,
}

impl Entry {
    pub(super) fn new(now: Nanos, access: &Access, was_set: bool) -> Self {
        let mut entry = Entry {
            access: *access,
            heard_at: now,
            own_pages: access.kernel_window,
            actual: WindowSetting::Own,
            narrow: None,
            larger: None,
            wide: None,
            wide_from: 0,
            set_at: 0,
            long_requests: (0, 0),
            is_left_behind: false,
            is_over: false,
            makes_room: false,
            copied_by: None,
            asked: None,
            failed_at: None,
            advised_at: 0,
            given_back_at: None,
        };
        entry.access.advice.sequential &= !was_set;
        entry
    }

    /// A target of which only one thing is known: its window is changed.
    pub(super) fn left_behind(now: Nanos, file: FileKey) -> Self {
        let access = Access {
            kind: Kind::Miss,
            of: FileRef { file, generation: 0, tgid: 0 },
            open_file: None,
            cgroup: crate::ids::CgroupId::default(),
            page: 0,
            request_pages: 1,
            previous: None,
            file_bytes: 0,
            kernel_window: 0,
            mapped: false,
            advice: Advice::default(),
            past: Past::Unknown,
            mark: None,
        };
        let actual = WindowSetting::Bounded(0);
        Entry { actual, is_left_behind: true, ..Entry::new(now, &access, false) }
    }

    /// Notes an access. A window of twice the size is no sign of sequential advice if the device's own window was
    /// changed at that moment (`was_set`), or if we have set this one. Returns whether this is another open file, which
    /// has got the address.
    pub(super) fn note_access(&mut self, now: Nanos, access: &Access, was_set: bool) -> bool {
        let is_new = self.access.of.file != access.of.file;
        if is_new {
            *self = Entry::new(now, access, was_set);
            return true;
        }
        let was_sequential = self.access.advice.sequential;
        self.access = *access;
        self.heard_at = now;
        self.is_over = false;
        if was_set || self.is_larger() {
            self.access.advice.sequential = was_sequential;
        }
        if !self.is_set() && self.asked.is_none() {
            self.own_pages = access.kernel_window;
        }
        if let WindowSetting::Larger(pages) = self.actual
            && access.kernel_window < pages
            && access.open_file.is_some()
            && now > self.set_at
        {
            // Its program has set its own window.
            self.narrow_again(now);
        }
        if access.kind == Kind::Miss && access.request_pages <= self.own_pages {
            self.long_requests = (0, 0);
        }
        false
    }

    /// Notes a request of `pages`, longer than its own window, that should be read whole.
    pub(super) fn note_long_request(&mut self, pages: u32) {
        let (count, longest) = self.long_requests;
        self.long_requests = (count.saturating_add(1), longest.max(pages));
    }

    /// The window that is wanted for it, if a larger one is. A single long request is no reason: most files that are
    /// read in one are then closed.
    pub(super) fn larger(&self) -> Option<u32> {
        let (count, longest) = self.long_requests;
        self.larger.max((count > 1).then_some(longest))
    }

    /// Asks for a wider window of `pages`. Returns whether that is news: once it has one, only a window that is twice as
    /// wide is; and none is, if one was given back a short time ago.
    pub(super) fn widen(&mut self, now: Nanos, pages: u32) -> bool {
        let has_one = self.is_set() || self.is_awaited();
        let known = self.wide.filter(|_| has_one);
        let is_wider = known.is_none_or(|known| pages >= known.saturating_mul(2));
        let is_news = is_wider && now >= self.wide_from;
        if is_news {
            self.wide = Some(pages);
        }
        is_news
    }

    /// A wider window is of no use. Returns whether one was wanted.
    pub(super) fn narrow_again(&mut self, now: Nanos) -> bool {
        let was_wanted = self.wide.take().is_some();
        if was_wanted {
            self.wide_from = now.saturating_add(PATIENCE_NS);
        }
        was_wanted
    }

    /// Its file system.
    pub(super) fn dev(&self) -> DeviceNumber {
        self.access.of.file.dev
    }

    /// Its process and file.
    pub(super) fn reader(&self) -> (Tgid, FileKey) {
        self.copied_by.unwrap_or((self.access.of.tgid, self.access.of.file))
    }

    /// It has been idle for long. The policy's wish for it ends; if others need its place, its window is given back.
    /// Returns whether that changes anything.
    pub(super) fn settle_idle(&mut self, is_crowded: bool) -> bool {
        let had_window = [self.narrow, self.larger(), self.wide].iter().any(Option::is_some);
        (self.narrow, self.larger, self.wide, self.long_requests) = (None, None, None, (0, 0));
        let was_over = std::mem::replace(&mut self.is_over, is_crowded);
        had_window || (is_crowded && !was_over)
    }

    /// Whether its window is changed.
    pub(super) fn is_set(&self) -> bool {
        !matches!(self.actual, WindowSetting::Own | WindowSetting::Abandoned)
    }

    /// Whether nothing has to be given back, and no answer is awaited.
    pub(super) fn may_be_forgotten(&self) -> bool {
        !self.is_set() && self.asked.is_none()
    }

    pub(super) fn is_without_look_ahead(&self) -> bool {
        self.actual == WindowSetting::NoLookAhead
    }

    fn is_larger(&self) -> bool {
        matches!(self.actual, WindowSetting::Larger(_))
    }

    /// Whether random advice seen at that moment is ours.
    pub(super) fn has_our_advice(&self, at: Nanos) -> bool {
        let asked = self.asked.map(|asked| asked.setting);
        let is_ours = self.is_without_look_ahead() || asked == Some(WindowSetting::NoLookAhead);
        is_ours || self.given_back_at.is_some_and(|given_back| at <= given_back)
    }

    /// Whether its program has given advice that setting a window would clear, or that has cleared ours.
    pub(super) fn is_advised(&self, now: Nanos) -> bool {
        let advice = self.access.advice;
        if self.is_without_look_ahead() {
            let is_news = self.heard_at > self.advised_at;
            return is_news && !advice.random;
        }
        let random = advice.random && !self.has_our_advice(now.min(self.heard_at));
        let bounded_then_sequential =
            matches!(self.actual, WindowSetting::Bounded(_)) && advice.sequential;
        random || advice.noreuse || bounded_then_sequential
    }

    /// Whether a change has failed a short time ago.
    pub(super) fn has_failed(&self, now: Nanos) -> bool {
        self.failed_at.is_some_and(|at| now.saturating_sub(at) < PATIENCE_NS)
    }

    /// Whether to ask for a change to `setting` now.
    pub(super) fn may_be_tried(&self, now: Nanos, setting: WindowSetting) -> bool {
        if self.is_awaited() {
            return false;
        }
        match setting {
            WindowSetting::Own => self.is_set() && !self.was_refused(now),
            WindowSetting::Abandoned => true,
            _ => !self.has_failed(now),
        }
    }

    fn was_refused(&self, now: Nanos) -> bool {
        self.failed_at.is_some_and(|at| now.saturating_sub(at) < RETRY_NS)
    }

    /// Whether giving its own window back has failed and should be retried.
    pub(super) fn is_restore_pending(&self, now: Nanos) -> bool {
        self.is_set() && self.failed_at.is_some() && !self.was_refused(now)
    }

    pub(super) fn command(
        &self,
        ticket: Ticket,
        target: Target,
        setting: WindowSetting,
    ) -> Command {
        Command::SetWindow {
            ticket,
            target,
            file: self.access.of.file,
            of: (!self.is_left_behind).then_some(self.access.of),
            kernel_window: self.own_pages,
            setting,
        }
    }

    pub(super) fn asked_for(&mut self, now: Nanos, ticket: Ticket, setting: WindowSetting) {
        if setting == WindowSetting::Abandoned {
            // No answer would change anything.
            self.actual = WindowSetting::Abandoned;
        }
        if setting == WindowSetting::NoLookAhead {
            self.advised_at = now;
            self.copied_by = Some(self.reader());
        }
        self.asked = Some(Asked { ticket, setting, overdue: None });
    }

    /// Whether an answer is outstanding.
    pub(super) fn is_awaited(&self) -> bool {
        self.asked.is_some_and(|asked| asked.overdue.is_none())
    }

    /// The answer is overdue, so the result is unknown. The window counts as set, so that it is given back. A late
    /// answer still counts, until another change is requested.
    pub(super) fn mark_overdue(&mut self, now: Nanos, ticket: Ticket) {
        let Some(asked) = self.asked.as_mut().filter(|asked| asked.ticket == ticket) else {
            return;
        };
        asked.overdue = Some(self.actual);
        match asked.setting {
            WindowSetting::Own => self.failed_at = Some(now),
            setting => self.actual = setting,
        }
    }

    /// Whether this answers the last request.
    pub(super) fn is_answer(&self, ticket: Ticket) -> bool {
        self.asked.is_some_and(|asked| asked.ticket == ticket)
    }

    /// Notes an answer. Returns whether the window is narrower than before.
    pub(super) fn answered(&mut self, now: Nanos, outcome: WindowOutcome) -> bool {
        let Some(asked) = self.asked.take() else { return false };
        match outcome {
            WindowOutcome::Set { own_pages } if asked.setting != WindowSetting::Own => {
                self.own_pages = own_pages;
                self.actual = asked.setting;
                self.set_at = now;
                self.failed_at = None;
                if asked.setting == WindowSetting::NoLookAhead {
                    self.advised_at = now;
                }
                matches!(asked.setting, WindowSetting::Bounded(_))
            }
            WindowOutcome::Own => {
                self.is_own_again(now);
                self.narrow_again(now);
                // Closed, if another window was requested: do not ask again at once.
                let is_given_back =
                    matches!(asked.setting, WindowSetting::Own | WindowSetting::Abandoned);
                self.failed_at = (!is_given_back).then_some(now);
                false
            }
            WindowOutcome::Failed | WindowOutcome::Set { .. } => {
                self.failed_at = Some(now);
                self.actual = asked.overdue.unwrap_or(self.actual);
                if !self.is_without_look_ahead() {
                    self.copied_by = None;
                }
                false
            }
        }
    }

    /// Its window is its own again.
    pub(super) fn is_own_again(&mut self, now: Nanos) {
        if self.is_without_look_ahead() {
            self.given_back_at = Some(now);
        }
        self.copied_by = None;
        self.actual = WindowSetting::Own;
    }
}
