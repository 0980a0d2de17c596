//! From the kernel's events to the file.

use std::fs::File;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use blocks::Draft;
use ebpf::observe::Scope;
use ebpf::tracing::{Lost, Paths, Scribe, Tracing};
use indicatif::HumanBytes;
use linux::mount_points::MountPoints;
use linux::{provenance, sys};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use trace::recorded::{Header, KIND, Totals};

use crate::print;

/// How often to look for events: the kernel half wakes nobody for a single one.
const LOOK: Duration = Duration::from_millis(100);

/// How often to write what there is, so that a kill loses less than a second.
const WRITE: Duration = Duration::from_millis(500);

pub(super) struct Session {
    path: PathBuf,
    /// The file that `scribe` writes, and whether it is in its place yet.
    draft: Draft,
    tracing: Tracing,
    scribe: Scribe<File>,
    /// The losses that the file tells of so far; [`Tracing::lost`] counts all.
    told_lost: Lost,
    /// When `scribe` last wrote what it had.
    written: Instant,
}

impl Session {
    /// Begins to record, into a draft until [`put_in_place`](Self::put_in_place).
    pub(super) fn begin(path: &Path, is_anonymous: bool, scope: &Scope) -> anyhow::Result<Self> {
        let began = sys::monotonic_ns();
        let tracing = Tracing::open(scope)?;
        let draft = Draft::create(path, &KIND)?;
        let file = draft.file.try_clone().with_context(|| cannot_write(path))?;
        let header = Header {
            bowwave: env!("CARGO_PKG_VERSION").into(),
            kernel: provenance::kernel(),
            date: provenance::date(),
        };
        let paths = Paths::new(MountPoints::now(), is_anonymous);
        let scribe =
            Scribe::begin(file, &header, paths, began).with_context(|| cannot_write(path))?;
        let (path, written) = (path.into(), Instant::now());
        Ok(Session { path, draft, tracing, scribe, told_lost: Lost::default(), written })
    }

    /// Replaces an older trace, now that there will be a new one.
    pub(super) fn put_in_place(&mut self) -> anyhow::Result<()> {
        Ok(self.draft.put()?)
    }

    /// Records until the descriptor is readable or the time has come.
    pub(super) fn record_until(
        &mut self,
        ended: BorrowedFd<'_>,
        until: Option<Instant>,
    ) -> anyhow::Result<()> {
        loop {
            let left = until.map_or(LOOK, |until| until.saturating_duration_since(Instant::now()));
            let has_ended = self.wait(ended, left.min(LOOK))? || left.is_zero();
            self.take()?;
            if has_ended {
                return Ok(());
            }
        }
    }

    /// Returns whether the descriptor is readable.
    fn wait(&self, ended: BorrowedFd<'_>, most: Duration) -> anyhow::Result<bool> {
        let ring = self.tracing.readiness();
        let mut ready = [PollFd::new(&ended, PollFlags::IN), PollFd::new(&ring, PollFlags::IN)];
        match poll(&mut ready, Some(&Timespec::try_from(most)?)) {
            Ok(_) | Err(Errno::INTR) => Ok(!ready[0].revents().is_empty()),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the events that have come.
    fn take(&mut self) -> anyhow::Result<()> {
        let events = self.tracing.take()?;
        self.write(|scribe| events.iter().try_for_each(|event| scribe.note(event)))?;
        let lost = self.tracing.lost();
        let told = std::mem::replace(&mut self.told_lost, lost);
        let more = Lost {
            calls: lost.calls - told.calls,
            pages: lost.pages - told.pages,
            requests: lost.requests - told.requests,
        };
        self.write(|scribe| scribe.lose(more))?;
        if self.written.elapsed() >= WRITE {
            self.write(Scribe::flush)?;
            self.written = Instant::now();
        }
        Ok(())
    }

    fn write(
        &mut self,
        write: impl FnOnce(&mut Scribe<File>) -> std::io::Result<()>,
    ) -> anyhow::Result<()> {
        write(&mut self.scribe).with_context(|| cannot_write(&self.path))
    }

    /// Completes the file. Returns what it holds, in a sentence.
    pub(super) fn finish(mut self) -> anyhow::Result<String> {
        self.take()?;
        let totals = self.scribe.finish().with_context(|| cannot_write(&self.path))?;
        ensure!(
            self.draft.is_in_place(),
            "the trace {} was removed or replaced by somebody while it was recorded; record again, into a file of its own",
            self.path.display()
        );
        Ok(contents(&self.path, &totals))
    }
}

/// What the trace holds, in a sentence.
fn contents(path: &Path, totals: &Totals) -> String {
    let path = path.display();
    let of_reads = [totals.operations, totals.lost, totals.windows, totals.lost_pages];
    if of_reads == [0; 4] {
        let lost = lost(totals);
        return format!("no program read a file meanwhile, so {path} holds no operation; {lost}");
    }
    // Before Linux 6.18 the kernel does not tell which pages it brings in.
    let brought = match totals.pages {
        0 => String::new(),
        pages => format!(", for which the kernel brought in {} pages,", print::thousands(pages)),
    };
    format!(
        "{} of {} on {}{brought} are in {path} ({}); {}",
        print::counted(totals.operations, "operation", "operations"),
        print::counted(totals.processes.into(), "process", "processes"),
        print::counted(totals.files.into(), "file", "files"),
        HumanBytes(totals.bytes),
        lost(totals),
    )
}

/// What was lost, in words.
fn lost(totals: &Totals) -> String {
    let all = [
        (totals.lost, "operations"),
        (totals.lost_pages, "pages that the kernel brought in"),
        (totals.lost_requests, "requests of devices"),
    ];
    let all = all.iter().filter(|(count, _)| *count > 0);
    let all = all.map(|(count, what)| format!("{} {what}", print::thousands(*count)));
    match all.collect::<Vec<_>>().join(" and ") {
        all if all.is_empty() => "nothing was lost".into(),
        all => format!("{all} were lost"),
    }
}

fn cannot_write(path: &Path) -> String {
    format!("the trace {} ends early", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_without_operations_says_so_unless_some_were_lost() {
        let said = contents(Path::new("t"), &Totals::default());
        assert_eq!(
            said,
            "no program read a file meanwhile, so t holds no operation; nothing was lost"
        );
        let said = contents(Path::new("t"), &Totals { lost: 4, ..Totals::default() });
        assert!(said.starts_with("0 operations") && said.ends_with("; 4 operations were lost"));
        let totals = Totals { operations: 3, processes: 1, files: 2, lost: 4, ..Totals::default() };
        let said = contents(Path::new("t"), &totals);
        assert_eq!(
            said,
            "3 operations of 1 process on 2 files are in t (0 B); 4 operations were lost"
        );
    }
}
