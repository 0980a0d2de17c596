//! Who answers for a process: whoever does harm through it can do so to their own processes only.

use crate::cgroup::Place;
use crate::namespace::{Namespace, Sort};
use crate::process::user;

/// Who has started a process, in the end. Nobody can appear as several: not with the user ids that a user namespace
/// gives them, nor in containers or cgroups that they make.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// A user, with all their sessions and containers.
    User(u32),
    /// A service of root's, by its cgroup.
    Service(Place),
    /// All of a container that root has made, by the number of its PID namespace.
    Container(u64),
}

impl Owner {
    /// Of a process; `None` if it has ended.
    pub fn of(pid: u32) -> Option<Owner> {
        const ROOT: u32 = 0;
        let real = user(pid)?;
        let service = || Owner::Service(Place::of(&pid.to_string()));
        if let Some(container) = Namespace::outermost_of(pid, Sort::Pid) {
            let maker = container.made_within().and_then(|it| it.maker());
            return match maker.filter(|maker| *maker != ROOT) {
                Some(user) => Some(Owner::User(user)),
                None => Some(container.number().map_or_else(service, Owner::Container)),
            };
        }
        let within = Namespace::outermost_of(pid, Sort::User);
        Some(match within.map_or(Some(real), |it| it.maker()) {
            None | Some(ROOT) => service(),
            Some(user) => Owner::User(user),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A process that sleeps, below one that was started.
    struct Sleeper {
        started: Child,
        number: u32,
    }

    impl Sleeper {
        /// `None` where that cannot be.
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

    /// The last of a row of processes, each the only child of the one before.
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
    fn a_users_own_containers_are_the_users() {
        let user = ["setpriv", "--reuid=65534", "--clear-groups"];
        for more in [&["unshare", "--user"][..], &["unshare", "--user", "--pid", "--fork"], &[]] {
            let Some(sleeper) = Sleeper::started_by(&[&user, more].concat()) else { continue };
            assert_eq!(sleeper.owner(), Owner::User(65534), "{more:?}");
        }
    }

    #[test]
    fn what_is_in_a_container_of_roots_is_one_whoever_it_seems_to_be() {
        let container = ["unshare", "--pid", "--fork"];
        let Some(root) = Sleeper::started_by(&container) else { return };
        let Owner::Container(number) = root.owner() else { panic!("{:?}", root.owner()) };
        let inside = format!("--target={}", root.number);
        let enter = ["nsenter", &inside, "--pid", "setpriv", "--reuid=1000", "--clear-groups"];
        let more = ["unshare", "--user", "--pid", "--fork"];
        for words in [&enter[..], &[&enter[..], &more].concat()] {
            let Some(sleeper) = Sleeper::started_by(words) else { continue };
            assert_eq!(sleeper.owner(), Owner::Container(number), "{words:?}");
        }
        let other = Sleeper::started_by(&container).expect("as before");
        assert_ne!(other.owner(), Owner::Container(number), "another container");
    }
}
