//! Namespaces of other processes, as far as they tell who has made them.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

/// A sort of namespace that lies within another one of its sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    User,
    Pid,
}

impl Sort {
    fn name(self) -> &'static str {
        match self {
            Sort::User => "user",
            Sort::Pid => "pid",
        }
    }

    /// Inode number of the one that the kernel has begun with (`PROC_USER_INIT_INO`, `PROC_PID_INIT_INO` of its
    /// proc_ns.h).
    fn initial(self) -> u64 {
        match self {
            Sort::User => 0xefff_fffd,
            Sort::Pid => 0xefff_fffc,
        }
    }
}

/// A namespace that is not the initial one.
pub(crate) struct Namespace(File);

impl Namespace {
    /// Of all namespaces that a process is in, the outermost one below the initial one. Whoever is in it can leave it by
    /// no means. `None` if the process is in the initial one only, or has ended.
    ///
    /// The kernel tells this at once, also of a process that hangs in `exec`.
    pub(crate) fn outermost_of(pid: u32, sort: Sort) -> Option<Namespace> {
        let innermost = File::open(format!("/proc/{pid}/ns/{}", sort.name())).ok()?;
        Self::outermost(innermost, sort)
    }

    fn outermost(innermost: File, sort: Sort) -> Option<Namespace> {
        let is_initial = |one: &File| one.metadata().is_ok_and(|it| it.ino() == sort.initial());
        if is_initial(&innermost) {
            return None;
        }
        let mut one = innermost;
        loop {
            match related(&one, libc::NS_GET_PARENT) {
                Ok(parent) if !is_initial(&parent) => one = parent,
                _ => return Some(Namespace(one)),
            }
        }
    }

    /// Its inode number, which no other namespace has at the same time.
    pub(crate) fn number(&self) -> Option<u64> {
        Some(self.0.metadata().ok()?.ino())
    }

    /// The outermost user namespace that had to be made to make this PID namespace; `None` if there is none, so that
    /// root has made it.
    pub(crate) fn made_within(&self) -> Option<Namespace> {
        Self::outermost(related(&self.0, libc::NS_GET_USERNS).ok()?, Sort::User)
    }

    /// Who has made this user namespace, by user id.
    pub(crate) fn maker(&self) -> Option<u32> {
        let mut user: libc::uid_t = 0;
        // SAFETY: the kernel writes a user id there, and nothing else.
        let told =
            unsafe { libc::ioctl(self.0.as_raw_fd(), libc::NS_GET_OWNER_UID, &raw mut user) };
        (told == 0).then_some(user)
    }
}

/// The namespace that a question leads to.
fn related(namespace: &File, question: libc::Ioctl) -> io::Result<File> {
    // SAFETY: it takes no argument, and gives a new descriptor that nobody else has.
    let told = unsafe { libc::ioctl(namespace.as_raw_fd(), question) };
    if told < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: see above.
    Ok(unsafe { OwnedFd::from_raw_fd(told) }.into())
}
