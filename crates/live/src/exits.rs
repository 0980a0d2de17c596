//! Notices when the processes that the controller watches end.
//!
//! An epoll instance holds a pidfd for each. Processes without one, since there are too many, are looked up once a
//! second.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use controller::ids::Tgid;
use linux::process::{self, Process};
use rustix::event::epoll;

/// Leaves descriptors for everything else: the usual limit is 1024.
const MOST_DESCRIPTORS: usize = 512;

/// Events taken from the kernel by one call.
const BATCH: usize = 64;

pub(crate) struct Exits {
    epoll: OwnedFd,
    /// Each process's pidfd, if it has one.
    watched: HashMap<Tgid, Option<Process>>,
    /// Processes that ended before they could be watched.
    gone: Vec<Tgid>,
}

impl Exits {
    pub(crate) fn new() -> rustix::io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Exits { epoll, watched: HashMap::new(), gone: Vec::new() })
    }

    /// Readable when a process with a pidfd has ended.
    pub(crate) fn readiness(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Starts or stops watching a process.
    pub(crate) fn watch(&mut self, tgid: Tgid, is_watched: bool) {
        if !is_watched {
            // Closing the pidfd removes it from the epoll instance.
            self.watched.remove(&tgid);
            return;
        }
        let descriptors = self.watched.values().flatten().count();
        let pidfd = if descriptors < MOST_DESCRIPTORS { Process::open(tgid).ok() } else { None };
        let pidfd = pidfd.filter(|pidfd| {
            let data = epoll::EventData::new_u64(u64::from(tgid));
            epoll::add(&self.epoll, pidfd, data, epoll::EventFlags::IN).is_ok()
        });
        if pidfd.is_none() && !process::is_alive(tgid) {
            self.gone.push(tgid);
        }
        self.watched.insert(tgid, pidfd);
    }

    /// The processes that have ended since the last call; with `scans_all`, also those without a pidfd.
    pub(crate) fn take(&mut self, scans_all: bool) -> Vec<Tgid> {
        let mut events = Vec::with_capacity(BATCH);
        let no_wait = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        let buffer = rustix::buffer::spare_capacity(&mut events);
        let _ = epoll::wait(&self.epoll, buffer, Some(&no_wait));
        let mut ended: Vec<Tgid> = events.iter().map(|event| event.data.u64() as Tgid).collect();
        ended.append(&mut self.gone);
        if scans_all {
            let without = self.watched.iter().filter(|(_, pidfd)| pidfd.is_none());
            ended.extend(without.map(|(tgid, _)| *tgid).filter(|tgid| !process::is_alive(*tgid)));
        }
        // A fork may still hold a copy of a pidfd that was closed here, and then epoll reports it once more.
        ended.retain(|tgid| self.watched.remove(tgid).is_some());
        ended
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn an_ended_process_is_reported_once() {
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
    fn a_process_that_ended_before_is_reported_at_once() {
        let mut exits = Exits::new().expect("epoll");
        let mut child = Command::new("true").spawn().expect("it runs");
        child.wait().expect("it ends");
        exits.watch(child.id(), true);
        assert_eq!(exits.take(false), [child.id()]);
    }

    #[test]
    fn a_process_no_longer_watched_is_not_reported() {
        let mut exits = Exits::new().expect("epoll");
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("it runs");
        exits.watch(child.id(), true);
        exits.watch(child.id(), false);
        drop(child.stdin.take());
        child.wait().expect("it ends");
        assert!(exits.take(true).is_empty());
    }
}
