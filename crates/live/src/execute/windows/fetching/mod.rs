//! Duplicates descriptors of other processes, in a helper process.
//!
//! ```text
//!   this process                       bowwave fetch
//!   process, file  ------------------> which descriptor? duplicate it; is it that file?
//!                  <-- descriptor ----  yes
//!                  <-- "another" -----  no: close it and end
//! ```
//!
//! The helper may hang. A program can replace its descriptor at any moment by one of a FUSE server of its own; closing
//! a duplicate of that asks the server (`->flush`), may take for ever and cannot be interrupted. And a program that
//! hangs in `exec` blocks everybody who looks at its descriptors. So this process waits only briefly. It sets a helper
//! that does not answer aside and starts another one. The program's owner, the culprit, is avoided until that helper
//! answers or ends. So a culprit has one hanging helper per disk at most, and nobody else notices.

mod serve;
mod wire;

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use linux::owner::Owner;
use linux::process::Process;
use readahead::FileRef;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Signal, pidfd_send_signal};

use crate::helper::Helper;
use serve::FETCH;
pub(super) use serve::is_gone;
pub use serve::main;
use wire::{Found, Wanted};

/// How long to wait for an answer. It takes well below 1 ms, more on a busy machine. Meanwhile, no other window on the
/// disk can be set.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(200);

/// The same while all windows are restored: later answers are collected after all others have been asked.
const SHORT_ANSWER_TIMEOUT: Duration = Duration::from_millis(20);

/// Starting a helper takes some milliseconds, more on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(3);

/// A helper that was set aside is killed if it has not answered after this time.
const ASIDE_TIMEOUT: Duration = Duration::from_secs(3);

/// A killed helper ends within 1 ms, later on a busy machine. One that hangs does not end.
const KILL_TIMEOUT: Duration = Duration::from_millis(100);

/// Avoid the owner of a program that made a helper hang until it was killed, for this time.
const AFTER_SILENCE: Duration = Duration::from_secs(60);

/// Avoid the owner of a program that replaced a descriptor, for this time. Harmless programs do that, too. Each case
/// costs the start of a helper, some milliseconds.
const AFTER_ANOTHER: Duration = Duration::from_secs(1);

/// A duplicate of another process's descriptor.
pub(super) struct Fetched {
    pub(super) file: OwnedFd,
    /// The number of the descriptor in that process.
    pub(super) number: i32,
    /// When that process started, in ticks since boot.
    pub(super) started: u64,
}

pub(super) struct Fetcher {
    helper: Helper,
    answer_timeout: Duration,
    idle: Option<Running>,
    aside: Vec<Aside>,
    /// Whom to avoid, and until when.
    avoided: HashMap<Owner, Instant>,
}

/// A running helper process.
struct Running {
    child: Child,
    /// A pidfd: its number may go to another process.
    process: Process,
    socket: OwnedFd,
}

/// A helper that was set aside: it hangs, or is about to end.
struct Aside {
    running: Running,
    /// Whose program has caused that, if known.
    culprit: Option<Owner>,
    /// Until when it may still answer; `None` if it will not.
    answers_until: Option<Instant>,
}

enum Answered {
    By(Found, Option<OwnedFd>),
    /// The helper has ended.
    HasEnded,
    /// There is no answer yet.
    Late,
}

impl Fetcher {
    pub(super) fn new(helper: Helper) -> Self {
        Fetcher {
            helper,
            answer_timeout: ANSWER_TIMEOUT,
            idle: None,
            aside: Vec::new(),
            avoided: HashMap::new(),
        }
    }

    /// From now on, quickly sets aside helpers that do not answer.
    pub(super) fn use_short_timeout(&mut self) {
        self.answer_timeout = SHORT_ANSWER_TIMEOUT;
    }

    pub(super) fn use_normal_timeout(&mut self) {
        self.answer_timeout = ANSWER_TIMEOUT;
    }

    /// Whether it can ask without starting a process.
    pub(super) fn is_ready(&self) -> bool {
        self.idle.is_some()
    }

    /// Duplicates the descriptor through which a process reads a file.
    ///
    /// # Errors
    /// If the process has none any more, or several open files of it; or if there is no answer in time.
    pub(super) fn sole(&mut self, of: FileRef) -> io::Result<Fetched> {
        self.descriptor(of.tgid, &Wanted::Sole(of))
    }

    /// Duplicates the same descriptor again, of the process that started at `started` (ticks since boot).
    ///
    /// # Errors
    /// As [`sole`](Self::sole). [`is_gone`] tells whether there is no such descriptor any more.
    pub(super) fn again(&mut self, of: FileRef, number: i32, started: u64) -> io::Result<Fetched> {
        self.descriptor(of.tgid, &Wanted::Again { of, number, started })
    }

    /// Whether this descriptor of a process still leads to that open file.
    ///
    /// # Errors
    /// If there is no answer in time.
    pub(super) fn is_open(&mut self, tgid: u32, number: i32, file: &OwnedFd) -> io::Result<bool> {
        match self.ask(tgid, &Wanted::IsOpen { tgid, number }, Some(file))? {
            (Found::IsOpen(is_open), _) => Ok(is_open),
            (other, _) => Err(io::Error::other(format!("{other:?}"))),
        }
    }

    fn descriptor(&mut self, tgid: u32, wanted: &Wanted) -> io::Result<Fetched> {
        match self.ask(tgid, wanted, None)? {
            (Found::Descriptor { number, started }, Some(file)) => {
                Ok(Fetched { file, number, started })
            }
            (Found::Gone | Found::Another, _) => Err(io::ErrorKind::NotFound.into()),
            (other, _) => Err(io::Error::other(format!("{other:?}"))),
        }
    }

    fn ask(
        &mut self,
        tgid: u32,
        wanted: &Wanted,
        along: Option<&OwnedFd>,
    ) -> io::Result<(Found, Option<OwnedFd>)> {
        self.check_aside();
        let culprit = Owner::of(tgid);
        if self.is_avoided(culprit.as_ref()) {
            return Err(io::Error::other("a program of its owner has blocked bowwave's helper"));
        }
        let mut has_ended_once = false;
        loop {
            let running = match self.idle.take() {
                Some(running) => running,
                None => Running::start(&self.helper)?,
            };
            match running.ask(wanted, along, self.answer_timeout) {
                Answered::By(found, file) => {
                    if found == Found::Another {
                        self.avoid(culprit.as_ref(), AFTER_ANOTHER);
                        self.set_aside(running, culprit, None);
                    } else {
                        self.idle = Some(running);
                    }
                    return Ok((found, file));
                }
                // Perhaps somebody has killed it: try once more.
                Answered::HasEnded if !has_ended_once => {
                    has_ended_once = true;
                    self.set_aside(running, None, None);
                }
                Answered::HasEnded => {
                    self.avoid(culprit.as_ref(), AFTER_ANOTHER);
                    self.set_aside(running, culprit, None);
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                Answered::Late => {
                    self.set_aside(running, culprit, Some(Instant::now() + ASIDE_TIMEOUT));
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
        }
    }

    fn avoid(&mut self, culprit: Option<&Owner>, time: Duration) {
        culprit.map(|it| self.avoided.insert(it.clone(), Instant::now() + time));
    }

    fn set_aside(&mut self, running: Running, culprit: Option<Owner>, until: Option<Instant>) {
        self.aside.push(Aside { running, culprit, answers_until: until });
    }

    fn is_avoided(&self, owner: Option<&Owner>) -> bool {
        let Some(owner) = owner else { return false };
        let is_culprit = |aside: &Aside| aside.culprit.as_ref() == Some(owner);
        self.avoided.contains_key(owner) || self.aside.iter().any(is_culprit)
    }

    /// Whether it avoids nobody, and no helper hangs.
    pub(super) fn avoids_nobody(&self) -> bool {
        self.aside.is_empty() && self.avoided.is_empty()
    }

    /// Checks which helpers have answered or ended meanwhile, and kills those that are too late.
    pub(super) fn check_aside(&mut self) {
        let now = Instant::now();
        self.avoided.retain(|_, until| *until > now);
        for mut aside in std::mem::take(&mut self.aside) {
            if aside.running.has_ended() {
                continue;
            }
            match aside.answers_until.map(|until| (until, aside.running.answer_by(now))) {
                None => {}
                // Nobody wants the answer any more, but the helper works.
                Some((_, Answered::By(found, _))) if found != Found::Another => {
                    if self.idle.is_none() {
                        self.idle = Some(aside.running);
                        continue;
                    }
                    aside.running.kill();
                    (aside.culprit, aside.answers_until) = (None, None);
                }
                Some((_, Answered::By(..) | Answered::HasEnded)) => {
                    self.avoid(aside.culprit.as_ref(), AFTER_ANOTHER);
                    aside.answers_until = None;
                }
                Some((until, Answered::Late)) if until <= now => {
                    aside.running.kill();
                    self.avoid(aside.culprit.as_ref(), AFTER_SILENCE);
                    aside.answers_until = None;
                }
                Some((_, Answered::Late)) => {}
            }
            self.aside.push(aside);
        }
    }

    /// Waits until `until` for an answer of a helper that was set aside. Returns whether one has answered; `false` at
    /// once if none may answer any more.
    pub(super) fn await_answer(&mut self, until: Instant) -> bool {
        while let Some(next) = self.aside.iter().filter_map(|aside| aside.answers_until).min() {
            let awaited = self.aside.iter().filter(|aside| aside.answers_until.is_some());
            let sockets: Vec<_> = awaited.map(|aside| aside.running.socket.as_fd()).collect();
            let has_answered = is_any_readable_by(&sockets, until.min(next));
            if has_answered || until <= next {
                if has_answered {
                    self.check_aside();
                }
                return has_answered;
            }
            // Kills the helper that should have answered by now.
            self.check_aside();
        }
        false
    }
}

impl Drop for Fetcher {
    fn drop(&mut self) {
        let aside = std::mem::take(&mut self.aside).into_iter().map(|aside| aside.running);
        let mut all: Vec<Running> = self.idle.take().into_iter().chain(aside).collect();
        all.iter().for_each(Running::kill);
        let until = Instant::now() + KILL_TIMEOUT;
        for running in &mut all {
            running.has_ended_by(until);
        }
    }
}

impl Running {
    /// Starts a helper, and waits until it is ready.
    ///
    /// # Errors
    /// If it cannot be started. [`is_gone`] is false then, as this says nothing about the wanted descriptor.
    fn start(helper: &Helper) -> io::Result<Running> {
        Self::try_start(helper).map_err(|error| io::Error::other(format!("cannot start: {error}")))
    }

    fn try_start(helper: &Helper) -> io::Result<Running> {
        let mut command = helper.command(FETCH);
        let (socket, theirs) = pair()?;
        command.stdin(theirs).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let process = Process::open(child.id()).inspect_err(|_| {
            // It has done nothing yet, so it ends at once.
            let _ = child.kill().and_then(|()| child.wait());
        })?;
        let running = Running { child, process, socket };
        // Wait for its first message, so that the answer's timeout does not include the start. If it has ended, the
        // next question will show that.
        if let Answered::Late = running.answer_by(Instant::now() + START_TIMEOUT) {
            running.kill();
        }
        Ok(running)
    }

    fn ask(&self, wanted: &Wanted, along: Option<&OwnedFd>, timeout: Duration) -> Answered {
        if wire::send(&self.socket, wanted, along.map(AsFd::as_fd)).is_err() {
            return Answered::HasEnded;
        }
        self.answer_by(Instant::now() + timeout)
    }

    fn answer_by(&self, until: Instant) -> Answered {
        if !is_any_readable_by(&[self.socket.as_fd()], until) {
            return Answered::Late;
        }
        match wire::receive(&self.socket) {
            Ok(Some((found, file))) => Answered::By(found, file),
            Ok(None) | Err(_) => Answered::HasEnded,
        }
    }

    fn kill(&self) {
        let _ = pidfd_send_signal(&self.process, Signal::KILL);
    }

    fn has_ended(&mut self) -> bool {
        self.has_ended_by(Instant::now())
    }

    /// Waits until `until` for its end, and reaps it. Returns whether it has ended.
    fn has_ended_by(&mut self, until: Instant) -> bool {
        // An error counts as its end: `bowwave run` waits for all its children and may have reaped it.
        is_any_readable_by(&[self.process.as_fd()], until)
            && !matches!(self.child.try_wait(), Ok(None))
    }
}

/// Waits until `until` for one of these descriptors to become readable. Returns whether one is.
fn is_any_readable_by(descriptors: &[BorrowedFd<'_>], until: Instant) -> bool {
    let readable = |one| PollFd::from_borrowed_fd(one, PollFlags::IN);
    let mut all: Vec<_> = descriptors.iter().copied().map(readable).collect();
    loop {
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
        match poll(&mut all, left.as_ref()) {
            Err(Errno::INTR) => {}
            ready => return ready.is_ok_and(|ready| ready > 0),
        }
    }
}

/// A socket pair that keeps messages apart.
fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;

    use readahead::{DeviceNumber, FileKey};
    use rustix::process::{Pid, WaitOptions, waitpid};

    use super::serve::Finder;
    use super::*;

    fn of(file: &std::fs::File) -> FileRef {
        let about = file.metadata().expect("metadata");
        let file = FileKey { dev: DeviceNumber::from_stat(about.dev()), ino: about.ino() };
        FileRef { file, generation: 0, tgid: std::process::id() }
    }

    #[test]
    fn an_open_file_is_found_and_found_again() {
        let (file, mut finder) = (tempfile::tempfile().expect("a file"), Finder::default());
        let found = finder.find(&Wanted::Sole(of(&file)), None);
        let Found::Descriptor { started, .. } = found.found else { panic!("it is open") };
        let (tgid, number, duplicate) = (std::process::id(), file.as_raw_fd(), found.file);
        assert!(linux::sys::has_open_file(tgid, number, duplicate.as_ref().expect("sent along")));
        let is_open = finder.find(&Wanted::IsOpen { tgid, number }, duplicate.as_ref());
        assert_eq!(is_open.found, Found::IsOpen(true));
        let mut again =
            |started| finder.find(&Wanted::Again { of: of(&file), number, started }, None).found;
        assert_eq!(again(started), Found::Descriptor { number, started });
        assert_eq!(again(started + 1), Found::Gone, "another process of that number");
        let closed = of(&tempfile::tempfile().expect("a file"));
        assert_eq!(finder.find(&Wanted::Sole(closed), None).found, Found::Gone);
    }

    fn shell(script: &str) -> Helper {
        let arguments = ["-c", script, "sh"].map(Into::into).into();
        Helper { program: "sh".into(), arguments }
    }

    #[test]
    fn a_helper_that_ends_without_an_answer_is_started_once_more_and_then_not_at_once() {
        let file = tempfile::tempfile().expect("a file");
        let folder = tempfile::tempdir().expect("a folder");
        let starts = folder.path().join("starts");
        let mut fetcher = Fetcher::new(shell(&format!("echo >> '{}'; exit 1", starts.display())));
        for _ in 0..3 {
            assert!(fetcher.sole(of(&file)).is_err());
        }
        let starts = std::fs::read_to_string(starts).expect("it was started");
        assert_eq!(starts.lines().count(), 2, "once more, and then not again at once");
    }

    #[test]
    fn a_helper_that_cannot_be_started_does_not_mean_that_the_descriptor_is_gone() {
        let program = "/no/such/program".into();
        let mut fetcher = Fetcher::new(Helper { program, arguments: Vec::new() });
        let file = tempfile::tempfile().expect("a file");
        let error = fetcher.again(of(&file), file.as_raw_fd(), 0).map(drop).unwrap_err();
        assert!(!is_gone(&error), "{error}");
    }

    /// A helper that reports that it is ready, and then runs `script` for each question.
    fn answering(script: &str) -> Helper {
        shell(&format!("printf '\"Ready\"' >&0; while :; do {script}; done"))
    }

    #[test]
    fn no_child_is_left_when_a_fetcher_is_dropped() {
        let mut fetcher = Fetcher::new(shell("exit"));
        let start = || Running::start(&answering("exec sleep 1000")).expect("a process");
        let (idle, hung) = (start(), start());
        let children = [idle.child.id(), hung.child.id()];
        fetcher.idle = Some(idle);
        fetcher.set_aside(hung, None, None);
        drop(fetcher);
        for child in children {
            let child = Pid::from_raw(child as i32);
            assert_eq!(waitpid(child, WaitOptions::NOHANG).unwrap_err(), Errno::CHILD);
        }
    }

    /// Enough for any answer, even on a busy machine.
    const GENEROUS: Duration = Duration::from_secs(60);

    /// A script that reads one question, and answers it with these words.
    fn says(words: &str) -> String {
        format!("dd bs=4096 count=1 status=none > /dev/null; printf '{words}' >&0")
    }

    #[test]
    fn the_culprit_of_a_hanging_helper_is_avoided_until_that_ends() {
        let file = tempfile::tempfile().expect("a file");
        let mut fetcher = Fetcher::new(answering(&says("\"Gone\"")));
        fetcher.answer_timeout = GENEROUS;
        let hung = Running::start(&answering("exec sleep 1000")).expect("a process");
        fetcher.set_aside(hung, Owner::of(std::process::id()), None);
        assert!(!is_gone(&fetcher.sole(of(&file)).map(drop).unwrap_err()));
        assert!(fetcher.idle.is_none(), "none was asked");
        assert!(!fetcher.avoids_nobody());
        let Aside { running, .. } = &mut fetcher.aside[0];
        running.kill();
        while !running.has_ended() {
            std::thread::yield_now();
        }
        assert!(is_gone(&fetcher.sole(of(&file)).map(drop).unwrap_err()), "it was asked");
        assert!(fetcher.avoids_nobody());
    }

    #[test]
    fn however_many_helpers_others_make_hang_nobody_else_notices() {
        let file = tempfile::tempfile().expect("a file");
        let mut fetcher = Fetcher::new(answering(&says("\"Gone\"")));
        fetcher.answer_timeout = GENEROUS;
        for other in 70_001..=70_040 {
            let hung = Running::start(&answering("exec sleep 1000")).expect("a process");
            fetcher.set_aside(hung, Some(Owner::User(other)), None);
        }
        let asked = fetcher.sole(of(&file)).map(drop).unwrap_err();
        assert!(is_gone(&asked), "{asked}: it was not asked");
    }

    #[test]
    fn after_a_late_answer_the_helper_and_the_owner_are_used_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let go = folder.path().join("go");
        let waits = format!("while ! [ -e '{}' ]; do sleep 0.01; done; ", go.display());
        let mut fetcher = Fetcher::new(answering(&(waits + &says("\"Gone\""))));
        fetcher.use_short_timeout();
        let file = tempfile::tempfile().expect("a file");
        let ask = |fetcher: &mut Fetcher| fetcher.sole(of(&file)).map(drop).unwrap_err();
        assert_eq!(ask(&mut fetcher).kind(), io::ErrorKind::TimedOut);
        assert_ne!(ask(&mut fetcher).kind(), io::ErrorKind::TimedOut, "it is left alone");
        assert!(!fetcher.await_answer(Instant::now()), "there is none yet");
        std::fs::write(go, "").expect("written");
        while !fetcher.await_answer(Instant::now() + GENEROUS) {}
        assert!(fetcher.idle.is_some() && fetcher.aside.is_empty());
        fetcher.answer_timeout = GENEROUS;
        assert!(is_gone(&ask(&mut fetcher)));
    }
}
