//! Processes, held by a descriptor so that none is mistaken for another, and what `/proc` says
//! about them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use readahead::{DeviceNumber, FileKey};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::{sys, table};

/// A process, never a later one with the same number. To be sure that something below `/proc/PID`
/// belongs to it, read that after opening this and call a method afterwards: if the call succeeds,
/// it does.
#[derive(Debug)]
pub struct Process {
    number: u32,
    pidfd: OwnedFd,
}

impl Process {
    /// Opens the process with this number.
    ///
    /// # Errors
    /// `ESRCH` if there is no such process.
    pub fn open(number: u32) -> io::Result<Self> {
        let pid = i32::try_from(number).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
        Ok(Process { number, pidfd: pidfd_open(pid, PidfdFlags::empty())? })
    }

    /// What `read` finds below `/proc` under the number of this process, if that is still its own afterwards.
    ///
    /// # Errors
    /// What `read` reports, or `NotFound` if the process has ended.
    pub fn read<T>(&self, read: impl FnOnce(u32) -> io::Result<T>) -> io::Result<T> {
        let found = read(self.number)?;
        if self.has_ended() { Err(io::ErrorKind::NotFound.into()) } else { Ok(found) }
    }

    /// Duplicates its descriptor `fd`. The result is the same open file, not a new one.
    ///
    /// # Errors
    /// `ESRCH` if the process has ended, `EBADF` if it has no such descriptor, `EPERM` without the
    /// right to trace it.
    pub fn duplicate(&self, fd: i32) -> io::Result<OwnedFd> {
        Ok(pidfd_getfd(&self.pidfd, fd, PidfdGetfdFlags::empty())?)
    }

    /// Whether it has ended. It may not be reaped yet.
    pub fn has_ended(&self) -> bool {
        let mut ready = [PollFd::new(&self.pidfd, PollFlags::IN)];
        matches!(poll(&mut ready, Some(&Timespec::default())), Ok(1))
    }

    /// Removes these parts of its memory, `(address, bytes)`, from its page tables and reclaims the
    /// pages that no other process maps. The process faults in again what it needs.
    ///
    /// # Errors
    /// `ESRCH` if the process has ended, `EPERM` without CAP_SYS_NICE and the right to trace it.
    pub fn page_out(&self, parts: &[(u64, u64)]) -> io::Result<()> {
        sys::page_out(self.pidfd.as_fd(), parts)
    }
}

impl AsFd for Process {
    /// The pidfd, readable once the process has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// The numbers of all processes.
pub fn all() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// When the process started, in ticks since boot. Numbers are reused; a number with its start time
/// is unique.
///
/// # Errors
/// `NotFound` if no process has that number, `InvalidData` if `/proc` gives no time.
pub fn started(pid: u32) -> io::Result<u64> {
    let stat = table::read(format!("/proc/{pid}/stat"))?;
    stat_field(&stat, 22).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Whether a process has begun to exit, or has ended.
pub fn is_exiting(pid: u32) -> bool {
    /// `PF_EXITING` of the kernel's `sched.h`.
    const EXITING: u64 = 4;
    let stat = table::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat_field(&stat, 9).is_none_or(|flags| flags & EXITING != 0)
}

/// A number in `/proc/PID/stat`, by its position from 1 as in proc(5). The second field is a name that may contain
/// anything.
fn stat_field(stat: &str, position: usize) -> Option<u64> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    behind_name.split_ascii_whitespace().nth(position - 3)?.parse().ok()
}

/// Whether this process sees all processes by the numbers that the kernel's events give: it is in no PID namespace
/// of a container. Where `/proc` does not tell, it does.
pub fn sees_all() -> bool {
    // The initial namespace's number, PROC_PID_INIT_INO of the kernel's proc_ns.h.
    const INITIAL: u64 = 0xefff_fffc;
    std::fs::metadata("/proc/self/ns/pid").map_or(true, |about| about.ino() == INITIAL)
}

/// The parent of a process; `None` if it has ended.
pub fn parent(pid: u32) -> Option<u32> {
    number_in(&status(pid).ok()?, "PPid:")
}

/// Whether a process has started this one, or has started one that did.
pub fn is_ancestor(pid: u32) -> bool {
    let parent_of = |child: &u32| parent(*child).filter(|parent| *parent > 0);
    std::iter::successors(parent_of(&std::process::id()), parent_of).any(|ancestor| ancestor == pid)
}

/// Whether a process is still running. A zombie is not, unless other threads continue without the
/// first one.
pub fn is_alive(pid: u32) -> bool {
    status(pid).is_ok_and(|status| !has_ended(&status))
}

/// Reading this never waits. Reading `/proc/PID/stat` or most links waits while the process is in `exec`, which a user
/// can make last for ever: `exec` then closes a file of a FUSE server that does not answer.
pub(crate) fn status(pid: u32) -> io::Result<String> {
    table::read(format!("/proc/{pid}/status"))
}

/// The words behind a name in `/proc/PID/status`, where a line feed in the process's own name is escaped.
pub(crate) fn fields<'a>(status: &'a str, name: &str) -> Option<impl Iterator<Item = &'a str>> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_ascii_whitespace())
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    fields(status, name)?.next()
}

fn number_in(status: &str, name: &str) -> Option<u32> {
    field(status, name)?.parse().ok()
}

/// A zombie waits for its parent only.
fn has_ended(status: &str) -> bool {
    let threads = number_in(status, "Threads:").unwrap_or(1);
    matches!((field(status, "State:"), threads), (None | Some("X"), _) | (Some("Z"), ..=1))
}

/// A part of a process's memory that maps a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Its first address.
    pub address: u64,
    /// Its length.
    pub bytes: u64,
    /// Offset in the file of its first address, in bytes.
    pub offset: u64,
    /// The file.
    pub file: FileKey,
    /// The process may change its pages without changing the file.
    pub is_private_writable: bool,
    /// The process may execute its pages.
    pub is_executable: bool,
}

/// The files that a process has mapped; none if it has ended.
pub fn mappings(pid: u32) -> Vec<Mapping> {
    let table = table::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    table.lines().filter_map(mapping).collect()
}

/// Parses a line of `/proc/PID/maps`: `7f..-7f.. r--s 00010000 fe:00 131  /a/file`.
fn mapping(line: &str) -> Option<Mapping> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let rights = fields.next()?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end, offset) = (hex(start)?, hex(end)?, hex(fields.next()?)?);
    let (major, minor) = fields.next()?.split_once(':')?;
    let dev = DeviceNumber { major: hex(major)? as u32, minor: hex(minor)? as u32 };
    let ino = fields.next()?.parse().ok()?;
    Some(Mapping {
        address: start,
        bytes: end.checked_sub(start)?,
        offset,
        file: FileKey { dev, ino },
        is_private_writable: rights.contains('w') && !rights.ends_with('s'),
        is_executable: rights.contains('x'),
    })
}

#[cfg(any(test, fuzzing))]
pub(crate) fn read_any(text: &str) {
    stat_field(text, 22);
    has_ended(text);
    text.lines().filter_map(mapping).count();
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_start_time_is_found_behind_any_name() {
        let stat = "42 (a) b (c) R 1 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 987654 0 0";
        assert_eq!((stat_field(stat, 9), stat_field(stat, 22)), (Some(4), Some(987_654)));
        assert_eq!(stat_field("42 (cut", 22), None);
    }

    #[test]
    fn a_number_is_found_behind_its_field_and_not_in_a_name() {
        assert_eq!(number_in("Name:\tUid:\nUid:\t1000\t0\t0\t0\n", "Uid:"), Some(1000));
        assert_eq!(parent(std::process::id()), Some(std::os::unix::process::parent_id()));
    }

    #[test]
    fn a_mapping_tells_its_file_and_what_may_be_done_with_it() {
        let line = "7f0000000000-7f0000010000 r--s 00004000 fe:00 131  /a file";
        let shared = Mapping {
            address: 0x7f00_0000_0000,
            bytes: 0x10000,
            offset: 0x4000,
            file: FileKey { dev: DeviceNumber { major: 0xfe, minor: 0 }, ino: 131 },
            is_private_writable: false,
            is_executable: false,
        };
        assert_eq!(mapping(line), Some(shared));
        let private = Mapping { is_private_writable: true, ..shared };
        assert_eq!(mapping(&line.replace("r--s", "rw-p")), Some(private));
        assert_eq!(mapping(&line.replace("r--s", "rw-s")), Some(shared));
        let code = Mapping { is_executable: true, ..shared };
        assert_eq!(mapping(&line.replace("r--s", "r-xp")), Some(code));
        for line in ["7f00", "7f0000010000-7f0000000000 r--p 00000000 fe:00 131 /turned/round"] {
            assert_eq!(mapping(line), None, "{line}");
        }
    }

    #[test]
    fn a_process_that_is_not_there_cannot_be_opened() {
        for none in [0, u32::MAX] {
            let refused = Process::open(none).map(drop).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::ESRCH));
        }
        Process::open(std::process::id()).expect("this one is there");
    }

    #[test]
    fn a_zombie_has_ended_whatever_its_name() {
        assert!(has_ended("Name:\tState: R\nState:\tZ (zombie)\n"));
        assert!(has_ended("Name:\tx\nState:\tZ (zombie)\nThreads:\t1\n"));
        assert!(!has_ended("Name:\tState:\tZ\nState:\tS (sleeping)\nThreads:\t1\n"));
        assert!(has_ended(""));
    }

    #[test]
    fn a_process_is_alive_whatever_its_name() {
        let script = "printf 'n\\377me' > /proc/self/comm; echo ready; read line";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().expect("a shell");
        shell.stdout.take().expect("piped").read_exact(&mut [0; 6]).expect("it is ready");
        let name = fs::read(format!("/proc/{}/comm", shell.id())).expect("it is there");
        let is_there = is_alive(shell.id());
        drop(shell.stdin.take());
        shell.wait().expect("it ended");
        assert_eq!(name, b"n\xffme\n");
        assert!(is_there);
        assert!(!is_alive(shell.id()));
    }

    #[test]
    fn threads_without_the_first_one_are_still_a_process() {
        assert!(!has_ended("Name:\tx\nState:\tZ (zombie)\nThreads:\t3\n"));
        // The first thread ends while another sleeps.
        let script = "import ctypes,threading,time
threading.Thread(target=lambda: (print('there',flush=True),time.sleep(1000))).start()
ctypes.CDLL(None).pthread_exit(None)";
        let mut command = Command::new("python3");
        command.args(["-c", script]).stdout(Stdio::piped());
        let Ok(mut process) = command.spawn() else {
            eprintln!("skipped: python3 is not installed");
            return;
        };
        let stat = || {
            fs::read_to_string(format!("/proc/{}/stat", process.id())).expect("a child is there")
        };
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while !stat().contains(") Z ") && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        let (text, is_there) = (stat(), is_alive(process.id()));
        process.kill().expect("it sleeps");
        process.wait().expect("it ended");
        assert!(text.contains(") Z ") && is_there, "{text}");
    }
}
