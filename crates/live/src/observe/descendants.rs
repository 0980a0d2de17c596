//! The processes below one that were there before the eBPF programs were attached.
//!
//! From then on an eBPF program follows every fork. Call [`follow_all`] after that: a child is either
//! forked by a process that is followed already, which the eBPF program sees, or in `/proc` by now.

use std::collections::HashSet;
use std::fs;

use linux::process::parent;

use super::ObserveError;

/// Where processes to be followed are noted. An eBPF program takes out those that exit.
pub(super) trait Followed {
    /// Follows a process from now on.
    fn add(&self, pid: u32) -> Result<(), ObserveError>;

    /// Follows it no more.
    fn remove(&self, pid: u32);
}

/// Follows the descendants of `root` that live now, once `root` itself is followed.
///
/// Not found are those whose parents have exited and that init has adopted; if `root` is a subreaper
/// (`PR_SET_CHILD_SUBREAPER`), it adopts them itself.
///
/// # Errors
/// Those of `followed`.
pub(super) fn follow_all(root: u32, followed: &impl Followed) -> Result<(), ObserveError> {
    let mut known = HashSet::from([root]);
    // A pass sees all children that were forked before it. When all of their parents were followed by
    // then, and no child is new, none is missing.
    while follow_children(&mut known, followed)? {}
    Ok(())
}

/// Follows the children of those `known`; tells whether there was a new one.
fn follow_children(
    known: &mut HashSet<u32>,
    followed: &impl Followed,
) -> Result<bool, ObserveError> {
    let before = known.len();
    for pid in pids() {
        let is_child = || parent(pid).is_some_and(|parent| known.contains(&parent));
        if known.contains(&pid) || !is_child() {
            continue;
        }
        known.insert(pid);
        followed.add(pid)?;
        // If it began to exit before it was added, the eBPF program has not taken it out, and its number
        // may be given to another process.
        if is_exiting(pid) {
            followed.remove(pid);
        }
    }
    Ok(known.len() > before)
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Whether a process has begun to exit, which is set before the eBPF program sees it.
fn is_exiting(pid: u32) -> bool {
    // A name may hold any bytes.
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    flags(&String::from_utf8_lossy(&stat)).is_none_or(|flags| flags & EXITING != 0)
}

/// `PF_EXITING` of the kernel's `sched.h`.
const EXITING: u64 = 4;

/// Of `pid (name) state parent group session terminal foreground flags ...`; the name may hold anything.
fn flags(stat: &str) -> Option<u64> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    behind_name.split_ascii_whitespace().nth(6)?.parse().ok()
}

#[cfg(any(test, fuzzing))]
pub(super) fn read_any(stat: &str) {
    flags(stat);
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    use super::*;

    #[derive(Default)]
    struct Noted(RefCell<HashSet<u32>>);

    impl Followed for Noted {
        fn add(&self, pid: u32) -> Result<(), ObserveError> {
            self.0.borrow_mut().insert(pid);
            Ok(())
        }

        fn remove(&self, pid: u32) {
            self.0.borrow_mut().remove(&pid);
        }
    }

    /// A shell with this script, which has written the process ids it was to tell; they end with its input.
    fn shell(script: &str, told: usize) -> (Child, Vec<u32>) {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = command.spawn().expect("it runs");
        let output = BufReader::new(shell.stdout.take().expect("piped"));
        let pids = output.lines().take(told).map(|line| line.expect("a line").parse());
        let pids = pids.collect::<Result<_, _>>().expect("process ids");
        (shell, pids)
    }

    #[test]
    fn children_and_their_children_are_followed_and_their_parent_is_not() {
        // What runs in the background has no input of its own.
        let script = "exec 3<&0; sh -c 'cat <&3 & echo $! $$ | tr \" \" \"\\n\"; cat <&3' & wait";
        let (mut parent, pids) = shell(script, 2);
        let noted = Noted::default();
        follow_all(parent.id(), &noted).expect("nothing fails");
        let found = noted.0.into_inner();
        assert!(pids.iter().all(|pid| found.contains(pid)), "{pids:?} in {found:?}");
        assert!(!found.contains(&parent.id()) && !found.contains(&std::process::id()));
        drop(parent.stdin.take());
        parent.wait().expect("it ends");
    }

    #[test]
    fn a_process_that_has_ended_is_not_followed() {
        let mut ended = Command::new("true").stdout(Stdio::piped()).spawn().expect("it runs");
        // Its output closes before it is a zombie, and after it began to exit.
        let mut output = ended.stdout.take().expect("piped");
        std::io::copy(&mut output, &mut std::io::sink()).expect("it ends");
        let noted = Noted::default();
        follow_all(std::process::id(), &noted).expect("nothing fails");
        assert!(!noted.0.borrow().contains(&ended.id()));
        ended.wait().expect("it ended");
    }

    #[test]
    fn a_name_may_look_like_fields() {
        let stat = |name: &str, flags: u64| format!("7 ({name}) S 5 1 1 0 -1 {flags} 0 0\n");
        assert_eq!(flags(&stat("sh", 4_194_560)), Some(4_194_560));
        assert_eq!(flags(&stat("a) S 1 (b", 0)), Some(0));
        assert_eq!(flags("7 (sh) S 5"), None);
        assert_eq!(flags(""), None);
    }
}
