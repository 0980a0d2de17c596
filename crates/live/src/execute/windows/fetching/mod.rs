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
//! keeps others from looking at it. So nobody waits long for the process; where it does not answer, another one is
//! started, and whoever caused that is left alone for a while.

mod serve;
mod wire;

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use linux::cgroup::Place;
use linux::process::{Process, user};
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
const MOST_WAITING: Duration = Duration::from_secs(3);

/// A process that is killed ends within a millisecond, on a busy machine within many. One that hangs does not end, and
/// is not waited for any longer.
const MOST_ENDING: Duration = Duration::from_millis(100);

/// A program of whose process nobody gets an answer is left alone for so long.
const AFTER_SILENCE: Duration = Duration::from_secs(60);

/// One that has put another file in place of one: programs that use numbers again do so, too. Each costs the start of a
/// process, some milliseconds.
const AFTER_ANOTHER: Duration = Duration::from_secs(1);

/// So many processes may hang at once on one disk.
const MOST_HUNG: usize = 16;

/// A duplicate of another process's descriptor.
pub(super) struct Fetched {
    pub(super) file: OwnedFd,
    /// The number of the descriptor that it was made of.
    pub(super) number: i32,
    /// When the process started, in ticks since boot.
    pub(super) started: u64,
}

/// Who does not let us look: all programs of one user in one cgroup.
type Culprit = (Option<u32>, Place);

/// Fetches descriptors.
pub(super) struct Fetcher {
    helper: Helper,
    /// Without a helper.
    finder: Finder,
    idle: Option<Running>,
    /// Those that hang, or are about to end, and who caused it, if that is known.
    hung: Vec<(Running, Option<Culprit>)>,
    left_alone: HashMap<Culprit, Instant>,
}

struct Running {
    child: Child,
    /// Its number may be another's once somebody has waited for it.
    process: Process,
    socket: OwnedFd,
}

/// What came of asking.
enum Answered {
    By(Found, Option<OwnedFd>),
    HasEnded,
    /// Not in time.
    Never,
}

impl Fetcher {
    pub(super) fn new(helper: Helper) -> Self {
        let (finder, left_alone) = (Finder::default(), HashMap::new());
        Fetcher { helper, finder, idle: None, hung: Vec::new(), left_alone }
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
        let culprit = (user(tgid), Place::of(&tgid.to_string()));
        self.forget_what_is_over();
        if self.is_left_alone(&culprit) {
            return Err(io::Error::other("who has it open keeps others from looking"));
        }
        let mut has_ended_once = false;
        loop {
            let running = match self.idle.take() {
                Some(running) => running,
                None => Running::start(&self.helper)?,
            };
            match running.ask(wanted, along) {
                Answered::By(found, file) => {
                    if found == Found::Another {
                        self.give_up(running, culprit, AFTER_ANOTHER);
                    } else {
                        self.idle = Some(running);
                    }
                    return Ok((found, file));
                }
                // Somebody has killed it, perhaps.
                Answered::HasEnded if !has_ended_once => {
                    has_ended_once = true;
                    self.hung.push((running, None));
                }
                Answered::HasEnded => {
                    self.give_up(running, culprit, AFTER_ANOTHER);
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                Answered::Never => {
                    running.kill();
                    self.give_up(running, culprit, AFTER_SILENCE);
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
        }
    }

    fn give_up(&mut self, running: Running, culprit: Culprit, pause: Duration) {
        self.left_alone.insert(culprit.clone(), Instant::now() + pause);
        self.hung.push((running, Some(culprit)));
    }

    fn forget_what_is_over(&mut self) {
        self.hung.retain_mut(|(running, _)| !running.has_ended());
        let now = Instant::now();
        self.left_alone.retain(|_, until| *until > now);
    }

    fn is_left_alone(&self, culprit: &Culprit) -> bool {
        self.hung.len() >= MOST_HUNG
            || self.left_alone.contains_key(culprit)
            || self.hung.iter().any(|(_, other)| other.as_ref() == Some(culprit))
    }
}

impl Drop for Fetcher {
    fn drop(&mut self) {
        let hung = std::mem::take(&mut self.hung).into_iter().map(|(hung, _)| hung);
        let mut all: Vec<Running> = self.idle.take().into_iter().chain(hung).collect();
        all.iter().for_each(Running::kill);
        let until = Instant::now() + MOST_ENDING;
        for running in &mut all {
            running.has_ended_by(until);
        }
    }
}

impl Running {
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
        Ok(Running { child, process, socket })
    }

    fn ask(&self, wanted: &Wanted, along: Option<&OwnedFd>) -> Answered {
        if wire::send(&self.socket, wanted, along.map(AsFd::as_fd)).is_err() {
            return Answered::HasEnded;
        }
        if !is_readable_by(&self.socket, Instant::now() + MOST_WAITING) {
            return Answered::Never;
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
        is_readable_by(&self.process, until) && !matches!(self.child.try_wait(), Ok(None))
    }
}

/// Waits until a descriptor is readable, at most until then; returns whether it is.
fn is_readable_by(descriptor: impl AsFd, until: Instant) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&left)) {
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

    #[test]
    fn no_child_is_left_when_a_fetcher_is_dropped() {
        let mut fetcher = Fetcher::new(Helper::Thread);
        let start = || Running::start(&shell("exec sleep 1000")).expect("a process");
        let (idle, hung) = (start(), start());
        let children = [idle.child.id(), hung.child.id()];
        fetcher.idle = Some(idle);
        fetcher.hung.push((hung, None));
        drop(fetcher);
        for child in children {
            let child = Pid::from_raw(child as i32);
            assert_eq!(waitpid(child, WaitOptions::NOHANG).unwrap_err(), Errno::CHILD);
        }
    }

    #[test]
    fn who_makes_a_process_hang_is_left_alone_until_that_ends() {
        let file = tempfile::tempfile().expect("a file");
        let mut fetcher = Fetcher::new(shell("read forever <&1"));
        let culprit: Culprit = (user(std::process::id()), Place::of("self"));
        let (socket, theirs) = pair().expect("a pair of sockets");
        let child = std::process::Command::new("cat").stdin(theirs).spawn().expect("cat");
        let process = Process::open(child.id()).expect("it runs");
        fetcher.hung.push((Running { child, process, socket }, Some(culprit)));
        assert!(fetcher.sole(of(&file)).is_err());
        assert!(fetcher.idle.is_none(), "none was asked");
        let (cat, _) = &mut fetcher.hung[0];
        cat.kill();
        while !cat.has_ended() {
            std::thread::yield_now();
        }
        fetcher.forget_what_is_over();
        assert!(fetcher.hung.is_empty());
    }
}
