//! The owner of a process: somebody who does harm through it can harm only their own processes.

use std::fs;

use crate::cgroup::Place;
use crate::process::{fields, status};

/// The owner of a process, as far as the kernel tells at once; it does not tell namespaces while a process hangs in
/// `exec`. Nobody can pass for several owners: not with the user ids of a user namespace, nor in containers or cgroups
/// that they create.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// A user, outside of containers.
    User(u32),
    /// A service of root's, by its cgroup.
    Service(Place),
    /// Everything in one cgroup of root's that is in separate user or PID namespaces: a container of root's, or all
    /// containers of a user.
    Contained(Place),
}

impl Owner {
    /// The owner of a process; `None` if it has ended.
    pub fn of(pid: u32) -> Option<Owner> {
        const ROOT: u32 = 0;
        let status = status(pid).ok()?;
        let user = fields(&status, "Uid:")?.next()?.parse().ok()?;
        let place = || Place::of(&pid.to_string());
        // It has a number in each of its PID namespaces.
        let is_contained = fields(&status, "NSpid:").is_some_and(|numbers| numbers.count() > 1);
        Some(match user {
            _ if is_contained || has_other_user_ids(pid) => Owner::Contained(place()),
            ROOT => Owner::Service(place()),
            user => Owner::User(user),
        })
    }
}

/// Whether the process is in another user namespace, where user ids differ from those here.
fn has_other_user_ids(pid: u32) -> bool {
    differs_in(pid, "uid_map") == Some(true)
}

/// Whether the process is in a user namespace that maps all the users and groups that there are here. False if it has
/// ended.
pub(crate) fn maps_all_ids(pid: u32) -> bool {
    ["uid_map", "gid_map"].iter().all(|map| differs_in(pid, map) == Some(false))
}

/// `None` if the process has ended.
fn differs_in(pid: u32, map: &str) -> Option<bool> {
    let read = |pid: &str| fs::read_to_string(format!("/proc/{pid}/{map}")).ok();
    let its = read(&pid.to_string())?;
    Some(Some(its) != read("self"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A sleeping process, a descendant of a started one.
    struct Sleeper {
        started: Child,
        number: u32,
    }

    impl Sleeper {
        /// `None` if that is not possible here.
        fn started_by(words: &[&str]) -> Option<Sleeper> {
            let (program, words) = words.split_first()?;
            let mut command = Command::new(program);
            command.args(words).args(["sleep", "1000"]).stderr(Stdio::null());
            let mut sleeper = Sleeper { started: command.spawn().ok()?, number: 0 };
            while sleeper.started.try_wait().ok()?.is_none() {
                sleeper.number = innermost(sleeper.started.id());
                let name = fs::read_to_string(format!("/proc/{}/comm", sleeper.number));
                if name.is_ok_and(|name| name == "sleep\n") {
                    return Some(sleeper);
                }
                std::thread::yield_now();
            }
            eprintln!("skipped: {command:?} is not possible here");
            None
        }

        fn owner(&self) -> Owner {
            Owner::of(self.number).expect("it sleeps")
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let number = rustix::process::Pid::from_raw(self.number as i32);
            let kill = |it| rustix::process::kill_process(it, rustix::process::Signal::KILL);
            let _ = number.map(kill);
            let _ = self.started.kill();
            let _ = self.started.wait();
        }
    }

    /// The last of a chain of processes, each the only child of the one before.
    fn innermost(pid: u32) -> u32 {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let child = children.ok().and_then(|text| text.split(' ').next()?.parse().ok());
        child.map_or(pid, innermost)
    }

    #[test]
    fn a_process_is_its_users_or_of_a_service() {
        let own = Owner::of(std::process::id()).expect("it runs");
        match rustix::process::getuid().as_raw() {
            0 => assert!(!matches!(own, Owner::User(_)), "{own:?}"),
            user => assert_eq!(own, Owner::User(user)),
        }
        assert_eq!(Owner::of(u32::MAX), None);
    }

    #[test]
    fn a_users_own_containers_are_one() {
        let as_user = ["setpriv", "--reuid=65534", "--clear-groups"];
        if let Some(sleeper) = Sleeper::started_by(&as_user) {
            assert_eq!(sleeper.owner(), Owner::User(65534));
        }
        for more in [&["unshare", "--user"][..], &["unshare", "--user", "--pid", "--fork"]] {
            let Some(sleeper) = Sleeper::started_by(&[&as_user, more].concat()) else { continue };
            let place = Place::of("self");
            assert_eq!(sleeper.owner(), Owner::Contained(place), "{more:?}");
        }
    }

    #[test]
    fn what_is_in_a_container_of_roots_is_one_whoever_it_seems_to_be() {
        let container = ["unshare", "--pid", "--fork"];
        let Some(root) = Sleeper::started_by(&container) else { return };
        let inside = format!("--target={}", root.number);
        let enter = ["nsenter", &inside, "--pid", "setpriv", "--reuid=1000", "--clear-groups"];
        let more = ["unshare", "--user", "--pid", "--fork"];
        for words in [&enter[..], &[&enter[..], &more].concat()] {
            let Some(sleeper) = Sleeper::started_by(words) else { continue };
            assert_eq!(sleeper.owner(), root.owner(), "{words:?}");
        }
        assert!(matches!(root.owner(), Owner::Contained(_)), "{:?}", root.owner());
    }
}
