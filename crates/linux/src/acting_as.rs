//! Acts with the rights of another process: the calling thread takes over its user and groups for file access, and
//! then gives them back.
//!
//! Other threads keep theirs (`setfsuid(2)`, `setfsgid(2)`, `capset(2)`, the system call behind `setgroups(2)`). Acting
//! for a user other than root, the thread also lacks the capabilities that override permissions of files. The kernel
//! takes them from a thread of root's only, so they are also taken explicitly: bowwave may run as another user that has
//! them.
#![allow(unsafe_code)]

use std::io;

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use crate::owner;
use crate::privilege::Privilege;
use crate::process::{self, Process};

/// The user and the groups with which a process accesses files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    user: u32,
    group: u32,
    groups: Vec<u32>,
    overrides: bool,
}

impl Rights {
    /// The rights of a process.
    ///
    /// # Errors
    /// If it has ended.
    pub fn of(process: &Process) -> io::Result<Self> {
        process.read(|number| {
            let mut rights = parse(&process::status(number)?).ok_or(io::ErrorKind::InvalidData)?;
            // In a user namespace, capabilities count only for files of the users and groups that it maps.
            rights.overrides &= owner::maps_all_ids(number);
            Ok(rights)
        })
    }

    /// Does `work` with these rights.
    ///
    /// # Errors
    /// If they cannot be taken over; then `work` is not done.
    pub fn act<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        if self.user == 0 {
            // A superuser without the power to override permissions cannot be imitated this way.
            return if self.overrides {
                Ok(work())
            } else {
                Err(io::ErrorKind::PermissionDenied.into())
            };
        }
        let _taken = Taken::over(self)?;
        Ok(work())
    }
}

fn parse(status: &str) -> Option<Rights> {
    // Real, effective, saved, and that for file access.
    let last = |name| process::fields(status, name)?.nth(3)?.parse().ok();
    let groups = process::fields(status, "Groups:")?.map(str::parse);
    Some(Rights {
        user: last("Uid:")?,
        group: last("Gid:")?,
        groups: groups.collect::<Result<_, _>>().ok()?,
        overrides: Privilege::in_status(status).overrides_permissions(),
    })
}

/// The capabilities that override permissions of files: those that the kernel takes from a thread of root's
/// (`CAP_FS_SET` in linux/capability.h).
const OVERRIDING: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::LINUX_IMMUTABLE)
    .union(CapabilitySet::MKNOD)
    .union(CapabilitySet::MAC_OVERRIDE);

/// Gives the thread its own rights back when dropped.
struct Taken {
    groups: Vec<u32>,
    user: u32,
    group: u32,
    capabilities: CapabilitySets,
}

impl Taken {
    fn over(rights: &Rights) -> io::Result<Self> {
        let own = groups()?;
        let capabilities = capabilities(None)?;
        set_groups(&rights.groups)?;
        let (user, group) = (set_user(u32::MAX), set_group(u32::MAX));
        let taken = Taken { groups: own, user, group, capabilities };
        set_group(rights.group);
        set_user(rights.user);
        let effective = capabilities.effective - OVERRIDING;
        set_capabilities(None, CapabilitySets { effective, ..capabilities })?;
        // Neither call says whether it has failed.
        if set_user(u32::MAX) != rights.user || set_group(u32::MAX) != rights.group {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(taken)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        set_user(self.user);
        set_group(self.group);
        // These are allowed as before: the thread still has the capability for the first, and may always use those that
        // it is permitted.
        let _ = set_groups(&self.groups);
        let _ = set_capabilities(None, self.capabilities);
    }
}

/// Sets the thread's user for file access. Returns the previous one; `u32::MAX` changes nothing.
fn set_user(user: u32) -> u32 {
    // SAFETY: the call takes only a number, and affects only the calling thread.
    unsafe { libc::setfsuid(user) as u32 }
}

/// The same for its group.
fn set_group(group: u32) -> u32 {
    // SAFETY: as above.
    unsafe { libc::setfsgid(group) as u32 }
}

fn groups() -> io::Result<Vec<u32>> {
    let count = rustix::process::getgroups()?;
    Ok(count.into_iter().map(|group| group.as_raw()).collect())
}

/// Calls the kernel directly: the C library's function sets the groups of all threads.
fn set_groups(groups: &[u32]) -> io::Result<()> {
    // SAFETY: the slice is live, and the length is its own.
    let result = unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Somebody without any rights of their own.
#[cfg(test)]
pub(crate) const NOBODY: Rights =
    Rights { user: 65534, group: 65534, groups: Vec::new(), overrides: false };

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    use super::*;

    const STATUS: &str = "Name:\tx\nUid:\t1\t2\t3\t65534\nGid:\t4\t5\t6\t7\nGroups:\t8 9 \n\
                          CapEff:\t000001ffffffffff\n";

    #[test]
    fn rights_are_read_from_the_status_of_a_process() {
        let expected = Rights { user: 65534, group: 7, groups: vec![8, 9], overrides: true };
        assert_eq!(parse(STATUS), Some(expected));
        assert_eq!(parse("Uid:\t1\n"), None);
    }

    #[test]
    fn who_has_ended_has_no_rights() {
        let mut child = Command::new("true").spawn().expect("it runs");
        let process = Process::open(child.id()).expect("it is not reaped");
        let status = || process::status(child.id()).expect("it is not reaped");
        while !status().contains("(zombie)") {
            std::thread::yield_now();
        }
        assert!(parse(&status()).is_some() && Rights::of(&process).is_err());
        child.wait().expect("it ends");
    }

    #[test]
    fn a_superuser_of_a_user_namespace_overrides_no_permissions() {
        let overrides = |words: &[&str]| {
            let mut command = Command::new(words[0]);
            command.args(&words[1..]).args(["sh", "-c", "echo; read line"]);
            let mut child =
                command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
            let is_there = child.stdout.take().expect("piped").read_exact(&mut [0]).is_ok();
            let rights = Process::open(child.id()).and_then(|process| Rights::of(&process));
            drop(child.stdin.take());
            child.wait().expect("it ends");
            is_there.then(|| rights.expect("it waited").overrides)
        };
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: needs root");
        }
        assert_eq!(overrides(&["env"]), Some(true));
        let Some(inside) = overrides(&["unshare", "--user", "--map-root-user"]) else {
            return eprintln!("skipped: no user namespaces");
        };
        assert!(!inside);
    }

    /// A file that only root may read, and its folder; `None` without root.
    fn file_of_roots() -> Option<(tempfile::TempDir, PathBuf)> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
        let file = folder.path().join("file");
        fs::write(&file, "x").expect("it can be written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("it is ours");
        Some((folder, file))
    }

    #[test]
    fn another_user_sees_what_that_user_may_see_and_afterwards_the_thread_has_its_own_rights_again()
    {
        let Some((_folder, file)) = file_of_roots() else { return };
        let nobody = NOBODY;
        let before = groups().expect("it has some");
        assert!(nobody.act(|| fs::read(&file)).expect("root may do that").is_err());
        assert!(nobody.act(overriding).expect("root may do that").is_empty());
        chown(&file, Some(65534), None).expect("root may do that");
        assert!(nobody.act(|| fs::read(&file)).expect("root may do that").is_ok());
        chown(&file, Some(1234), None).expect("root may do that");
        assert!(fs::read(&file).is_ok(), "the thread is root again");
        assert!(!overriding().is_empty());
        assert_eq!(groups().expect("it has some"), before);
    }

    #[test]
    fn a_service_that_overrides_permissions_without_being_root_sees_no_more_than_the_other_user() {
        let Some((_folder, file)) = file_of_roots() else { return };
        let as_a_service = || {
            become_a_service();
            assert!(fs::read(&file).is_ok(), "its capabilities override permissions");
            assert!(NOBODY.act(|| fs::read(&file)).expect("it may do that").is_err());
            assert!(fs::read(&file).is_ok(), "it has its capabilities again");
        };
        std::thread::scope(|scope| scope.spawn(as_a_service).join()).expect("as asserted");
    }

    /// What this thread has of these capabilities.
    fn overriding() -> CapabilitySet {
        capabilities(None).expect("a thread has some").effective & OVERRIDING
    }

    /// Makes this thread that of another user, with all of root's capabilities.
    fn become_a_service() {
        let user = rustix::thread::Uid::from_raw(1234);
        let permitted = capabilities(None).expect("it has some").permitted;
        rustix::thread::set_keep_capabilities(true).expect("a flag of the thread");
        rustix::thread::set_thread_res_uid(user, user, user).expect("root may do that");
        let sets =
            CapabilitySets { effective: permitted, permitted, inheritable: CapabilitySet::empty() };
        set_capabilities(None, sets).expect("it may use what it is permitted");
    }
}
