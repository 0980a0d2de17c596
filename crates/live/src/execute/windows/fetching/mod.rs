//! Duplicating descriptors of other processes, in a process of its own.
//!
//! ```text
//!   this process                       bowwave fetch
//!   process, file  ------------------> which descriptor? duplicate it; is it that file?
//!                  <-- descriptor ----  yes
//!                  <-- "another" -----  no: close it and end
//! ```
//!
//! A program may put another file in place of one at any moment, also of a FUSE server of its own. Closing a duplicate
//! of that asks the server (`->flush`), may take for ever and cannot be interrupted. A program that hangs in `exec`
//! keeps others from looking at it. So nobody waits long for the process. Where it does not answer, it is set aside and
//! another one is started. Whoever has caused that is left alone until it has answered or ended, and so has one such
//! process on each disk at most; nobody else notices.

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
pub(super) use serve::is_gone;
pub use serve::main;
use serve::{Answer, FETCH, Finder};
use wire::{Found, Wanted};

/// An answer takes well below a millisecond, on a busy machine many. Nobody else's windows on the disk are set
/// meanwhile.
const PATIENCE: Duration = Duration::from_millis(200);

/// The same where all windows are given back: who answers later is asked again after all others.
const HURRY: Duration = Duration::from_millis(20);

/// Starting a process takes some milliseconds, on a busy machine more.
const MOST_STARTING: Duration = Duration::from_secs(3);

/// A process that was set aside may still answer for so long; then it is killed.
const MOST_WAITING: Duration = Duration::from_secs(3);

/// A process that is killed ends within a millisecond, on a busy machine within many. One that hangs does not end, and
/// is not waited for any longer.
const MOST_ENDING: Duration = Duration::from_millis(100);

/// A program of whose process nobody gets an answer is left alone for so long.
const AFTER_SILENCE: Duration = Duration::from_secs(60);

/// One that has put another file in place of one: programs that use numbers again do so, too. Each costs the start of a
/// process, some milliseconds.
const AFTER_ANOTHER: Duration = Duration::from_secs(1);

/// A duplicate of another process's descriptor.
pub(super) struct Fetched {
    pub(super) file: OwnedFd,
    /// The number of the descriptor that it was made of.
    pub(super) number: i32,
    /// When the process started, in ticks since boot.
    pub(super) started: u64,
}

/// Fetches descriptors.
pub(super) struct Fetcher {
    helper: Helper,
    /// Without a helper.
    finder: Finder,
    /// How long it waits for an answer.
    patience: Duration,
    idle: Option<Running>,
    aside: Vec<Aside>,
    left_alone: HashMap<Owner, Instant>,
}

/// A process that is ready.
struct Running {
    child: Child,
    /// Its number may be another's once somebody has waited for it.
    process: Process,
    socket: OwnedFd,
}

/// A process that hangs, or is about to end.
struct Aside {
    running: Running,
    /// Who has caused that, if it is known.
    culprit: Option<Owner>,
    /// It may still answer until then.
    answers_until: Option<Instant>,
}

/// What came of asking.
enum Answered {
    By(Found, Option<OwnedFd>),
    HasEnded,
    /// Not yet.
    Late,
}

impl Fetcher {
    pub(super) fn new(helper: Helper) -> Self {
        Fetcher {
            helper,
            finder: Finder::default(),
            patience: PATIENCE,
            idle: None,
            aside: Vec::new(),
            left_alone: HashMap::new(),
        }
    }

    /// From now on nobody is waited for: who does not answer soon is set aside.
    pub(super) fn hurry(&mut self) {
        self.patience = HURRY;
    }

    /// From now on all are waited for as long as usual.
    pub(super) fn take_time(&mut self) {
        self.patience = PATIENCE;
    }

    /// Whether it can ask without starting a process.
    pub(super) fn is_ready(&self) -> bool {
        self.idle.is_some() || matches!(self.helper, Helper::Thread)
    }

    /// The descriptor through which a process reads a file.
    ///
    /// # Errors
    /// If the reader has none any more, or several; or nobody can tell in time.
    pub(super) fn sole(&mut self, of: FileRef) -> io::Result<Fetched> {
        self.descriptor(of.tgid, &Wanted::Sole(of))
    }

    /// The same descriptor again, of the process that started at that time.
    ///
    /// # Errors
    /// As above; [`is_gone`] tells whether there is no such descriptor any more.
    pub(super) fn again(&mut self, of: FileRef, number: i32, started: u64) -> io::Result<Fetched> {
        self.descriptor(of.tgid, &Wanted::Again { of, number, started })
    }

    /// Whether this descriptor of a process still leads to that open file.
    ///
    /// # Errors
    /// If nobody can tell in time.
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
        if matches!(self.helper, Helper::Thread) {
            let Answer { found, file } = self.finder.find(wanted, along);
            return Ok((found, file));
        }
        self.look_at_aside();
        let culprit = Owner::of(tgid);
        if self.is_left_alone(culprit.as_ref()) {
            return Err(io::Error::other("who has it open keeps others from looking"));
        }
        let mut has_ended_once = false;
        loop {
            let running = match self.idle.take() {
                Some(running) => running,
                None => Running::start(&self.helper)?,
            };
            match running.ask(wanted, along, self.patience) {
                Answered::By(found, file) => {
                    if found == Found::Another {
                        self.leave_alone(culprit.as_ref(), AFTER_ANOTHER);
                        self.set_aside(running, culprit, None);
                    } else {
                        self.idle = Some(running);
                    }
                    return Ok((found, file));
                }
                // Somebody has killed it, perhaps.
                Answered::HasEnded if !has_ended_once => {
                    has_ended_once = true;
                    self.set_aside(running, None, None);
                }
                Answered::HasEnded => {
                    self.leave_alone(culprit.as_ref(), AFTER_ANOTHER);
                    self.set_aside(running, culprit, None);
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                Answered::Late => {
                    self.set_aside(running, culprit, Some(Instant::now() + MOST_WAITING));
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
        }
    }

    fn leave_alone(&mut self, culprit: Option<&Owner>, pause: Duration) {
        culprit.map(|it| self.left_alone.insert(it.clone(), Instant::now() + pause));
    }

    fn set_aside(&mut self, running: Running, culprit: Option<Owner>, until: Option<Instant>) {
        self.aside.push(Aside { running, culprit, answers_until: until });
    }

    fn is_left_alone(&self, culprit: Option<&Owner>) -> bool {
        let Some(culprit) = culprit else { return false };
        let hangs = |aside: &Aside| aside.culprit.as_ref() == Some(culprit);
        self.left_alone.contains_key(culprit) || self.aside.iter().any(hangs)
    }

    /// Whether nobody is left alone and no process hangs.
    pub(super) fn blames_nobody(&self) -> bool {
        self.aside.is_empty() && self.left_alone.is_empty()
    }

    /// Looks who has answered or ended meanwhile, and ends who does not answer.
    pub(super) fn look_at_aside(&mut self) {
        let now = Instant::now();
        self.left_alone.retain(|_, until| *until > now);
        for mut aside in std::mem::take(&mut self.aside) {
            if aside.running.has_ended() {
                continue;
            }
            match aside.answers_until.map(|until| (until, aside.running.answer_by(now))) {
                None => {}
                // Nobody wants it any more.
                Some((_, Answered::By(found, _))) if found != Found::Another => {
                    if self.idle.is_none() {
                        self.idle = Some(aside.running);
                        continue;
                    }
                    aside.running.kill();
                    (aside.culprit, aside.answers_until) = (None, None);
                }
                Some((_, Answered::By(..) | Answered::HasEnded)) => {
                    self.leave_alone(aside.culprit.as_ref(), AFTER_ANOTHER);
                    aside.answers_until = None;
                }
                Some((until, Answered::Late)) if until <= now => {
                    aside.running.kill();
                    self.leave_alone(aside.culprit.as_ref(), AFTER_SILENCE);
                    aside.answers_until = None;
                }
                Some((_, Answered::Late)) => {}
            }
            self.aside.push(aside);
        }
    }

    /// Waits until one that was set aside has answered, until then at most, and no longer than one may still answer;
    /// returns whether one has.
    pub(super) fn await_answer(&mut self, until: Instant) -> bool {
        while let Some(next) = self.aside.iter().filter_map(|aside| aside.answers_until).min() {
            let awaited = self.aside.iter().filter(|aside| aside.answers_until.is_some());
            let sockets: Vec<_> = awaited.map(|aside| aside.running.socket.as_fd()).collect();
            let has_answered = is_any_readable_by(&sockets, until.min(next));
            if has_answered || until <= next {
                if has_answered {
                    self.look_at_aside();
                }
                return has_answered;
            }
            // Ends who has not answered by now.
            self.look_at_aside();
        }
        false
    }
}

impl Drop for Fetcher {
    fn drop(&mut self) {
        let aside = std::mem::take(&mut self.aside).into_iter().map(|aside| aside.running);
        let mut all: Vec<Running> = self.idle.take().into_iter().chain(aside).collect();
        all.iter().for_each(Running::kill);
        let until = Instant::now() + MOST_ENDING;
        for running in &mut all {
            running.has_ended_by(until);
        }
    }
}

impl Running {
    /// Starts one, and waits until it is ready.
    ///
    /// # Errors
    /// If no process can be started. That says nothing about the descriptor that is wanted: [`is_gone`] is false.
    fn start(helper: &Helper) -> io::Result<Running> {
        Self::try_start(helper).map_err(|error| io::Error::other(format!("cannot start: {error}")))
    }

    fn try_start(helper: &Helper) -> io::Result<Running> {
        let mut command = helper.command(FETCH).ok_or(io::ErrorKind::Unsupported)?;
        let (socket, theirs) = pair()?;
        command.stdin(theirs).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn()?;
        let process = Process::open(child.id())?;
        let running = Running { child, process, socket };
        // So that the time of its start is not taken for that of an answer. If it has ended, asking it will tell.
        if let Answered::Late = running.answer_by(Instant::now() + MOST_STARTING) {
            running.kill();
        }
        Ok(running)
    }

    fn ask(&self, wanted: &Wanted, along: Option<&OwnedFd>, patience: Duration) -> Answered {
        if wire::send(&self.socket, wanted, along.map(AsFd::as_fd)).is_err() {
            return Answered::HasEnded;
        }
        self.answer_by(Instant::now() + patience)
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

    /// Waits until it has ended, at most until then; returns whether it has. It is then no zombie any more.
    fn has_ended_by(&mut self, until: Instant) -> bool {
        // `bowwave run` waits for all its children, and so may have come first.
        is_any_readable_by(&[self.process.as_fd()], until)
            && !matches!(self.child.try_wait(), Ok(None))
    }
}

/// Waits until one of these descriptors is readable, at most until then; returns whether one is.
fn is_any_readable_by(descriptors: &[BorrowedFd<'_>], until: Instant) -> bool {
    let readable = |one| PollFd::from_borrowed_fd(one, PollFlags::IN);
    let mut all: Vec<_> = descriptors.iter().copied().map(readable).collect();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut all, Some(&left)) {
            Err(Errno::INTR) => {}
            ready => return ready.is_ok_and(|ready| ready > 0),
        }
    }
}

/// Two ends of a socket that keeps messages apart.
fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;

    use readahead::{DeviceNumber, FileKey};
    use rustix::process::{Pid, WaitOptions, waitpid};

    use super::*;

    fn of(file: &std::fs::File) -> FileRef {
        let about = file.metadata().expect("metadata");
        let file = FileKey { dev: DeviceNumber::from_stat(about.dev()), ino: about.ino() };
        FileRef { file, generation: 0, tgid: std::process::id() }
    }

    #[test]
    fn what_a_process_has_open_is_found_and_found_again() {
        let file = tempfile::tempfile().expect("a file");
        let mut fetcher = Fetcher::new(Helper::Thread);
        let found = fetcher.sole(of(&file)).expect("it is open");
        let (own, number) = (std::process::id(), file.as_raw_fd());
        assert!(linux::sys::has_open_file(own, number, &found.file));
        assert!(fetcher.is_open(own, number, &found.file).expect("told"));
        fetcher.again(of(&file), number, found.started).expect("it is still open");
        let gone = fetcher.again(of(&file), number, found.started + 1).map(drop).unwrap_err();
        assert!(is_gone(&gone), "{gone}: another process of that number");
        let gone = fetcher.sole(of(&tempfile::tempfile().expect("a file"))).map(drop).unwrap_err();
        assert!(is_gone(&gone), "{gone}: it is closed");
    }

    fn shell(script: &str) -> Helper {
        let arguments = ["-c", script, "sh"].map(Into::into).into();
        Helper::Process { program: "sh".into(), arguments }
    }

    #[test]
    fn a_process_that_ends_without_an_answer_is_no_reason_to_wait() {
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
    fn where_no_process_can_be_started_a_descriptor_is_not_gone() {
        let program = "/no/such/program".into();
        let mut fetcher = Fetcher::new(Helper::Process { program, arguments: Vec::new() });
        let file = tempfile::tempfile().expect("a file");
        let error = fetcher.again(of(&file), file.as_raw_fd(), 0).map(drop).unwrap_err();
        assert!(!is_gone(&error), "{error}");
    }

    /// A helper that tells that it is ready, and then does as `script` says for each question.
    fn answering(script: &str) -> Helper {
        shell(&format!("printf '\"Ready\"' >&0; while :; do {script}; done"))
    }

    #[test]
    fn no_child_is_left_when_a_fetcher_is_dropped() {
        let mut fetcher = Fetcher::new(Helper::Thread);
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

    /// Who answers does so within that time, also on a busy machine.
    const GENEROUS: Duration = Duration::from_secs(60);

    /// Reads one question, and answers it with these words.
    fn says(words: &str) -> String {
        format!("dd bs=4096 count=1 status=none > /dev/null; printf '{words}' >&0")
    }

    #[test]
    fn who_makes_a_process_hang_is_left_alone_until_that_ends() {
        let file = tempfile::tempfile().expect("a file");
        let mut fetcher = Fetcher::new(answering(&says("\"Gone\"")));
        fetcher.patience = GENEROUS;
        let hung = Running::start(&answering("exec sleep 1000")).expect("a process");
        fetcher.set_aside(hung, Owner::of(std::process::id()), None);
        assert!(!is_gone(&fetcher.sole(of(&file)).map(drop).unwrap_err()));
        assert!(fetcher.idle.is_none(), "none was asked");
        assert!(!fetcher.blames_nobody());
        let Aside { running, .. } = &mut fetcher.aside[0];
        running.kill();
        while !running.has_ended() {
            std::thread::yield_now();
        }
        assert!(is_gone(&fetcher.sole(of(&file)).map(drop).unwrap_err()), "it was asked");
        assert!(fetcher.blames_nobody());
    }

    #[test]
    fn however_many_others_make_processes_hang_nobody_else_notices() {
        let file = tempfile::tempfile().expect("a file");
        let mut fetcher = Fetcher::new(answering(&says("\"Gone\"")));
        fetcher.patience = GENEROUS;
        for other in 70_001..=70_040 {
            let hung = Running::start(&answering("exec sleep 1000")).expect("a process");
            fetcher.set_aside(hung, Some(Owner::User(other)), None);
        }
        let asked = fetcher.sole(of(&file)).map(drop).unwrap_err();
        assert!(is_gone(&asked), "{asked}: it was not asked");
    }

    #[test]
    fn who_answers_late_is_left_alone_until_then_and_asked_again_after_that() {
        let folder = tempfile::tempdir().expect("a folder");
        let go = folder.path().join("go");
        let waits = format!("while ! [ -e '{}' ]; do sleep 0.01; done; ", go.display());
        let mut fetcher = Fetcher::new(answering(&(waits + &says("\"Gone\""))));
        fetcher.hurry();
        let file = tempfile::tempfile().expect("a file");
        let ask = |fetcher: &mut Fetcher| fetcher.sole(of(&file)).map(drop).unwrap_err();
        assert_eq!(ask(&mut fetcher).kind(), io::ErrorKind::TimedOut);
        assert_ne!(ask(&mut fetcher).kind(), io::ErrorKind::TimedOut, "it is left alone");
        assert!(!fetcher.await_answer(Instant::now()), "there is none yet");
        std::fs::write(go, "").expect("written");
        while !fetcher.await_answer(Instant::now() + GENEROUS) {}
        assert!(fetcher.idle.is_some() && fetcher.aside.is_empty());
        fetcher.patience = GENEROUS;
        assert!(is_gone(&ask(&mut fetcher)));
    }
}
