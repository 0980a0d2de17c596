//! Counts, interval by interval.

use std::collections::HashSet;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ebpf::count::Counting;
use linux::mount_points::MountPoints;
use linux::signals::{ENDING, not_ignored};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use top::{History, Key, Names, Rhythm, Use};

use super::managers::managers;
use super::naming::name_file_systems;
use super::terminal::Terminal;
use crate::signals::Signals;

/// What one interval has brought.
#[derive(Default)]
pub(super) struct Interval {
    pub(super) uses: Vec<Use>,
    pub(super) length: Duration,
    /// The share of it in which accesses to cached pages were seen.
    pub(super) seen: f64,
    /// Accesses for which the tables had no room, since the start.
    pub(super) uncounted: u64,
}

/// Why [`Session::wait`] returns.
pub(super) enum Happened {
    /// The interval is over.
    Due,
    /// The user has typed this.
    Typed(String),
    /// The terminal has another size.
    Resized,
    /// A signal or the end of standard input asks to end, or nobody reads standard output any more.
    Ended,
}

pub(super) struct Session {
    counting: Counting,
    /// When to see accesses to cached pages; `None`: always.
    rhythm: Option<Rhythm>,
    history: History,
    names: Names,
    mounts: MountPoints,
    /// Whose names have been looked up.
    described: HashSet<Key>,
    signals: Signals,
    state: PathBuf,
    begun: Instant,
    length: Duration,
    /// When this interval began, and when it ends; counted from `begun`.
    from: Duration,
    due: Duration,
}

impl Session {
    /// Begins to count. If `is_exact`, each access to cached pages is seen, whatever that costs.
    pub(super) fn begin(
        length: Duration,
        state: PathBuf,
        is_interactive: bool,
        is_exact: bool,
    ) -> anyhow::Result<Self> {
        let mut caught = ENDING.to_vec();
        if is_interactive {
            // Otherwise SIGQUIT and SIGTSTP would leave the terminal as it is drawn on.
            caught.extend([libc::SIGQUIT, libc::SIGTSTP, libc::SIGWINCH]);
        }
        let signals = Signals::catch(not_ignored(caught))?;
        let mut counting = Counting::open()?;
        counting.see_cached(true)?;
        let history = History::new(counting.sees().missing);
        let rhythm = (!is_exact).then(|| Rhythm::new(Duration::ZERO, &counting.seen()));
        Ok(Session {
            counting,
            rhythm,
            history,
            names: Names::default(),
            mounts: MountPoints::now(),
            described: HashSet::new(),
            signals,
            state,
            begun: Instant::now(),
            length,
            from: Duration::ZERO,
            due: length,
        })
    }

    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    /// Seconds since the start, at the end of the last interval.
    pub(super) fn uptime_s(&self) -> f64 {
        self.from.as_secs_f64()
    }

    /// Waits until something happens. Meanwhile, switches the programs for cached pages on and off.
    pub(super) fn wait(&mut self, terminal: Option<&Terminal>) -> anyhow::Result<Happened> {
        loop {
            let now = self.begun.elapsed();
            if now >= self.due {
                return Ok(Happened::Due);
            }
            let mut until = self.due;
            if let Some(rhythm) = &mut self.rhythm {
                let step = rhythm.step(now, &self.counting.seen());
                self.counting.see_cached(step.is_on)?;
                until = until.min(step.until);
            }
            let most = until.saturating_sub(now);
            let most = Timespec::try_from(most)?;
            let signals = self.signals.readiness();
            let output = rustix::stdio::stdout();
            // Of standard output, `poll` reports errors and the end only.
            let mut ready = vec![
                PollFd::new(&signals, PollFlags::IN),
                PollFd::new(&output, PollFlags::empty()),
            ];
            let input = terminal.map(AsFd::as_fd);
            ready.extend(input.iter().map(|input| PollFd::new(input, PollFlags::IN)));
            match poll(&mut ready, Some(&most)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let is_output_closed = !ready[1].revents().is_empty();
            let has_input = ready.get(2).is_some_and(|input| !input.revents().is_empty());
            drop(ready);
            if is_output_closed {
                return Ok(Happened::Ended);
            }
            let caught: Vec<i32> = self.signals.take().collect();
            if caught.iter().any(|signal| *signal != libc::SIGWINCH) {
                return Ok(Happened::Ended);
            }
            if !caught.is_empty() {
                return Ok(Happened::Resized);
            }
            if let Some(terminal) = terminal.filter(|_| has_input) {
                let typed = terminal.typed();
                return Ok(typed.map_or(Happened::Ended, Happened::Typed));
            }
        }
    }

    /// What has happened since the last call. The next interval begins.
    pub(super) fn next(&mut self) -> anyhow::Result<Interval> {
        let now = self.begun.elapsed();
        let length = now - self.from;
        let seen = self.rhythm.as_mut().map_or(length, |rhythm| rhythm.take_seen(now));
        let seen = seen.as_secs_f64() / length.as_secs_f64();
        self.from = now;
        // Keep to the rhythm, unless a stopped process is far behind.
        self.due = (self.due + self.length).max(now + self.length / 2);
        let sample = self.counting.sample()?;
        let uncounted = sample.uncounted;
        let keys: HashSet<Key> = sample.keys().copied().collect();
        for key in &keys {
            if self.described.insert(*key) {
                self.counting.describe(*key, &mut self.names, &mut self.mounts);
            }
        }
        let (uses, idle) = self.history.advance(&sample, seen);
        // What is idle makes room in the kernel's tables, if these are filling up.
        if self.counting.forget(&idle, &sample) {
            self.history.forget(&idle);
            let idle: HashSet<Key> = idle.into_iter().collect();
            let kept: Vec<Key> = keys.into_iter().filter(|key| !idle.contains(key)).collect();
            self.names.retain(&kept);
            self.described = kept.into_iter().collect();
        }
        name_file_systems(&uses, &mut self.names, &mut self.mounts);
        self.names.managers = managers(&self.state);
        Ok(Interval { uses, length, seen: seen.min(1.0), uncounted })
    }

    /// What is not known, one sentence each.
    pub(super) fn notes(&self, interval: &Interval) -> Vec<String> {
        let sees = self.counting.sees();
        let mut notes = Vec::new();
        if !sees.reads {
            notes.push(
                "Linux before 6.12 does not report reads: only new pages and waits count".into(),
            );
        } else if !sees.missing {
            notes.push(
                "Linux before 6.18 does not report what reads miss: HIT% is of faults".into(),
            );
        }
        if interval.uncounted > 0 {
            notes.push(format!("{} accesses had no room in the tables", interval.uncounted));
        }
        notes
    }
}
