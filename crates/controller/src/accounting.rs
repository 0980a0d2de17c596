//! Records what was done about an access in the file table, the metrics and the eBPF programs.

use readahead::{Action, Mark, PAGE_BYTES};

use crate::Nanos;
use crate::access::Decided;
use crate::command::{Command, Interest, Listening};
use crate::controller::Controller;
use crate::files::Tolerance;
use crate::ids::Ticket;
use crate::input::{Access, Failure, Kind};
use crate::metrics::Reason;

impl Controller {
    /// A batch of reads was submitted, or has failed. A file whose reads keep failing is muted. A refusal says nothing
    /// about the file.
    pub(crate) fn on_read(
        &mut self,
        now: Nanos,
        ticket: Ticket,
        failed: Option<Failure>,
        out: &mut Vec<Command>,
    ) {
        let Some(file) = self.backings.answered(ticket) else { return };
        self.metrics.failed_reads += u64::from(failed.is_some());
        let Some(notes) = self.files.get_mut(file) else { return };
        match failed {
            None => notes.served(),
            Some(Failure::Refused) => {}
            Some(Failure::NotOpened | Failure::Errno(_)) => {
                if let Some(until) = notes.failed(now) {
                    self.metrics.muted += 1;
                    out.push(Command::Listen(file, notes.listening(until)));
                }
            }
        }
    }

    /// Sets the plan's marks, counts the decision, and mutes a file whose events lead to nothing.
    pub(crate) fn account(
        &mut self,
        now: Nanos,
        access: &Access,
        interest: Interest,
        decided: Decided,
        out: &mut Vec<Command>,
    ) {
        let file = access.of.file;
        let forget = |other| out.push(Command::Listen(other, Listening::default()));
        self.files.make_room(file, forget);
        let notes = self.files.notes(file, access.cgroup, now);
        let is_news = self.plan.is_recognised() && notes.recognised(access.file_bytes);
        if let Some((first, last)) = access.mark {
            notes.mark_taken(Mark { first, last });
        }
        for action in self.plan.actions() {
            if let Action::Mark(mark) = action {
                out.push(Command::Mark(file, *mark));
                notes.mark_set(*mark);
            }
        }
        let mut muted_until = 0;
        match decided {
            Decided::Nothing(reason) => {
                self.metrics.not_read.count(reason);
                if access.kind != Kind::Mark {
                    if self.windows.window_of(access) < access.kernel_window {
                        notes.listen_closely();
                    }
                    let until = (!self.windows.is_without_look_ahead(access))
                        .then(|| notes.unproductive(now, Tolerance::with(interest)));
                    muted_until = until.flatten().unwrap_or(0);
                    self.metrics.muted += u64::from(muted_until > 0);
                }
            }
            Decided::Read | Decided::LeftToKernel => {
                notes.recognised(access.file_bytes);
                let bytes = self.plan.pages() * PAGE_BYTES;
                notes.read_ahead(bytes);
                self.metrics.reads += 1;
                self.metrics.read_ahead_bytes += bytes;
                if decided == Decided::LeftToKernel {
                    notes.served();
                    self.metrics.not_read.count(Reason::LargerWindow);
                }
            }
        }
        let is_served = !matches!(decided, Decided::Nothing(_));
        let has_new_marks = access.mark.is_some() || !self.plan.actions().is_empty();
        if is_served || is_news || muted_until > 0 || has_new_marks {
            out.push(Command::Listen(file, notes.listening(muted_until)));
        }
    }
}
