//! Finds the descendants of a process that existed before the eBPF programs were attached.
//!
//! The programs follow every fork from then on. Call [`follow_all`] after attaching them: each child is then either
//! forked by a followed process, which the programs see, or already in `/proc`.

use std::collections::HashSet;

use linux::process;

use crate::error::ObserveError;

/// The set of followed processes. An eBPF program removes those that exit.
pub(super) trait FollowedTasks {
    fn add(&self, pid: u32) -> Result<(), ObserveError>;

    fn remove(&self, pid: u32);
}

/// Adds all living descendants of `root`, which must be followed itself already.
///
/// This misses processes whose parents have exited and that init has adopted, unless `root` is a subreaper
/// (`PR_SET_CHILD_SUBREAPER`) and adopts them itself.
///
/// # Errors
/// Those of `followed`.
pub(super) fn follow_all(root: u32, followed: &impl FollowedTasks) -> Result<(), ObserveError> {
    let mut known = HashSet::from([root]);
    // A pass sees all children forked before it. Once a pass finds no new one, all parents were followed when it began,
    // so none is missing.
    while follow_children(&mut known, followed)? {}
    Ok(())
}

/// Adds the children of `known` processes. Returns whether there was a new one.
fn follow_children(
    known: &mut HashSet<u32>,
    followed: &impl FollowedTasks,
) -> Result<bool, ObserveError> {
    let before = known.len();
    for pid in process::all() {
        let is_child = || process::parent(pid).is_some_and(|parent| known.contains(&parent));
        if known.contains(&pid) || !is_child() {
            continue;
        }
        known.insert(pid);
        followed.add(pid)?;
        // If it began to exit before it was added, the eBPF program will not remove it, and its number may go to
        // another process. The kernel marks it as exiting before the eBPF program sees the exit.
        if process::is_exiting(pid) {
            followed.remove(pid);
        }
    }
    Ok(known.len() > before)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    use super::*;

    #[derive(Default)]
    struct Pids(RefCell<HashSet<u32>>);

    impl FollowedTasks for Pids {
        fn add(&self, pid: u32) -> Result<(), ObserveError> {
            self.0.borrow_mut().insert(pid);
            Ok(())
        }

        fn remove(&self, pid: u32) {
            self.0.borrow_mut().remove(&pid);
        }
    }

    /// Starts a shell whose script prints `count` process ids. They end with its input.
    fn shell(script: &str, count: usize) -> (Child, Vec<u32>) {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = command.spawn().expect("it runs");
        let output = BufReader::new(shell.stdout.take().expect("piped"));
        let pids = output.lines().take(count).map(|line| line.expect("a line").parse());
        let pids = pids.collect::<Result<_, _>>().expect("process ids");
        (shell, pids)
    }

    #[test]
    fn children_and_their_children_are_followed_and_their_parent_is_not() {
        // Background commands get no input by themselves.
        let script = "exec 3<&0; sh -c 'cat <&3 & echo $! $$ | tr \" \" \"\\n\"; cat <&3' & wait";
        let (mut parent, pids) = shell(script, 2);
        let followed = Pids::default();
        follow_all(parent.id(), &followed).expect("nothing fails");
        let found = followed.0.into_inner();
        assert!(pids.iter().all(|pid| found.contains(pid)), "{pids:?} in {found:?}");
        assert!(!found.contains(&parent.id()) && !found.contains(&std::process::id()));
        drop(parent.stdin.take());
        parent.wait().expect("it ends");
    }

    #[test]
    fn a_process_that_has_ended_is_not_followed() {
        let mut ended = Command::new("true").stdout(Stdio::piped()).spawn().expect("it runs");
        // Its output closes after it began to exit, and before it is a zombie.
        let mut output = ended.stdout.take().expect("piped");
        std::io::copy(&mut output, &mut std::io::sink()).expect("it ends");
        let followed = Pids::default();
        follow_all(std::process::id(), &followed).expect("nothing fails");
        assert!(!followed.0.borrow().contains(&ended.id()));
        ended.wait().expect("it ended");
    }
}
