//! Which processes have ended, of those that the controller asks about.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use controller::ids::Tgid;
use linux::process;
use rustix::event::epoll;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// More are not waited for by descriptor, but looked at in turn.
const MOST_DESCRIPTORS: usize = 512;

/// Events taken from the kernel at once.
const AT_ONCE: usize = 64;

/// The processes.
pub(crate) struct Exits {
    epoll: OwnedFd,
    /// By descriptor; `None` where none could be had.
    watched: HashMap<Tgid, Option<OwnedFd>>,
    /// Those that had ended before they were watched.
    gone: Vec<Tgid>,
}

impl Exits {
    pub(crate) fn new() -> rustix::io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Exits { epoll, watched: HashMap::new(), gone: Vec::new() })
    }

    /// Readable when one has ended.
    pub(crate) fn readiness(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Watches a process, or no more.
    pub(crate) fn watch(&mut self, tgid: Tgid, is_watched: bool) {
        if !is_watched {
            // Closing its descriptor takes it off.
            self.watched.remove(&tgid);
            return;
        }
        let descriptors = self.watched.values().flatten().count();
        let pid = Pid::from_raw(tgid as i32).filter(|_| descriptors < MOST_DESCRIPTORS);
        let ended = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let ended = ended.filter(|ended| {
            let data = epoll::EventData::new_u64(u64::from(tgid));
            epoll::add(&self.epoll, ended, data, epoll::EventFlags::IN).is_ok()
        });
        if ended.is_none() && !process::is_alive(tgid) {
            self.gone.push(tgid);
        }
        self.watched.insert(tgid, ended);
    }

    /// Those that have ended since; `looks` at those without a descriptor, too.
    pub(crate) fn take(&mut self, looks: bool) -> Vec<Tgid> {
        let mut events = Vec::with_capacity(AT_ONCE);
        let no_wait = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        let buffer = rustix::buffer::spare_capacity(&mut events);
        let _ = epoll::wait(&self.epoll, buffer, Some(&no_wait));
        let mut ended: Vec<Tgid> = events.iter().map(|event| event.data.u64() as Tgid).collect();
        ended.append(&mut self.gone);
        if looks {
            let unwatched = self.watched.iter().filter(|(_, descriptor)| descriptor.is_none());
            let gone = unwatched.map(|(tgid, _)| *tgid).filter(|tgid| !process::is_alive(*tgid));
            ended.extend(gone.collect::<Vec<_>>());
        }
        // A process that was just forked may still have a descriptor that is closed here, so that it is told of again.
        ended.retain(|tgid| self.watched.remove(tgid).is_some());
        ended
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn who_has_ended_is_told_once() {
        let mut exits = Exits::new().expect("epoll");
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("it runs");
        exits.watch(child.id(), true);
        exits.watch(std::process::id(), true);
        assert!(exits.take(true).is_empty());
        drop(child.stdin.take());
        child.wait().expect("it ends");
        assert_eq!(exits.take(false), [child.id()]);
        assert!(exits.take(true).is_empty());
    }

    #[test]
    fn who_had_ended_before_is_told_at_once() {
        let mut exits = Exits::new().expect("epoll");
        let mut child = Command::new("true").spawn().expect("it runs");
        child.wait().expect("it ends");
        exits.watch(child.id(), true);
        assert_eq!(exits.take(false), [child.id()]);
    }

    #[test]
    fn who_is_watched_no_more_is_not_told() {
        let mut exits = Exits::new().expect("epoll");
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("it runs");
        exits.watch(child.id(), true);
        exits.watch(child.id(), false);
        drop(child.stdin.take());
        child.wait().expect("it ends");
        assert!(exits.take(true).is_empty());
    }
}
