//! Whose budget of events a program uses: nobody can use those of several users or containers.
//!
//! `spender.bpf.c` notes that of each program of a test that gives itself a name. Needs root; elsewhere a test says why
//! it is skipped, unless BOWWAVE_REQUIRE_LIVE=1 makes that a failure.
#![cfg(feature = "bpf")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder};

const NOBODY: u32 = 65534;

fn skipped<T>(reason: &str) -> Option<T> {
    assert!(std::env::var_os("BOWWAVE_REQUIRE_LIVE").is_none(), "{reason}");
    eprintln!("skipped: {reason}");
    None
}

/// As in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spender {
    cgroup: u64,
    user: u32,
    is_container: bool,
}

/// The program, attached.
struct Noting {
    object: Object,
    _link: Link,
}

impl Noting {
    fn new() -> Option<Self> {
        let path = concat!(env!("OUT_DIR"), "/spender.bpf.o");
        let loaded = ObjectBuilder::default().open_file(path).and_then(|mut open| {
            for mut program in open.progs_mut() {
                let is_it = program.name() == "on_rename";
                program.set_autoload(is_it);
            }
            let object = open.load()?;
            let link = object
                .progs_mut()
                .find(|it| it.name() == "on_rename")
                .expect("it is there")
                .attach()?;
            Ok(Noting { object, _link: link })
        });
        loaded.map_or_else(|error| skipped(&format!("{error:#}")), Some)
    }

    /// Of the program that has given itself this name.
    fn of(&self, name: &str) -> Spender {
        let mut key = [0; 16];
        key[..name.len()].copy_from_slice(name.as_bytes());
        let spenders =
            self.object.maps().find(|map| map.name() == "spenders").expect("it is there");
        let found = spenders.lookup(&key, MapFlags::ANY).expect("it is a table");
        let bytes = found.unwrap_or_else(|| panic!("{name} was not noted"));
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let cgroup = u64::from_ne_bytes(bytes[..8].try_into().expect("8 bytes"));
        Spender { cgroup, user: word(8), is_container: word(12) != 0 }
    }
}

/// Gives itself that name.
fn named(name: &str) -> String {
    format!("printf {name} > /proc/self/comm")
}

/// Runs a shell, begun by these words, which gives itself that name; `false` if it cannot.
fn run(words: &[&str], name: &str) -> bool {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).args(["sh", "-c", &named(name)]);
    command.status().is_ok_and(|status| status.success())
}

/// Is `nobody`, makes a user namespace, and is the user that it is told.
const MANY_IDS: &str = "
import ctypes, os, sys
libc = ctypes.CDLL(None)
PR_SET_NAME, CLONE_NEWUSER = 15, 0x10000000
os.setgroups([]); os.setresgid(*[65534] * 3); os.setresuid(*[65534] * 3)
libc.prctl(PR_SET_NAME, b'bw-before')
assert libc.unshare(CLONE_NEWUSER) == 0
print('made', flush=True)
input()
user = int(sys.argv[1])
os.setresgid(user, user, user); os.setresuid(user, user, user)
libc.prctl(PR_SET_NAME, b'bw-id%d' % user)
assert libc.unshare(CLONE_NEWUSER) == 0
libc.prctl(PR_SET_NAME, b'bw-nested%d' % user)
";

#[test]
fn a_user_with_many_user_ids_is_one() {
    let Some(noting) = Noting::new() else { return };
    let begin = |user: u32| {
        let mut command = Command::new("python3");
        command
            .args(["-c", MANY_IDS, &user.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("python3");
        let mut said = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut said).expect("a line");
        if said != "made\n" {
            assert!(!child.wait().expect("it ends").success());
            return skipped("no user namespaces");
        }
        // As newuidmap does for a user with an entry in /etc/subuid.
        for map in ["gid_map", "uid_map"] {
            fs::write(format!("/proc/{}/{map}", child.id()), "0 100000 65536").expect("root may");
        }
        child.stdin.take().expect("piped").write_all(b"\n").expect("it listens");
        assert!(child.wait().expect("it ends").success());
        Some(())
    };
    for user in [1, 2] {
        if begin(user).is_none() {
            return;
        }
    }
    let own = noting.of("bw-before");
    assert_eq!((own.user, own.is_container), (NOBODY, false));
    for name in ["bw-id1", "bw-id2", "bw-nested1", "bw-nested2"] {
        assert_eq!(noting.of(name), own, "{name}");
    }
}

#[test]
fn root_is_another_one_than_a_user() {
    let Some(noting) = Noting::new() else { return };
    assert!(run(&["env"], "bw-root"));
    assert!(run(&["setpriv", "--reuid=1000", "--clear-groups"], "bw-user"));
    assert_eq!(noting.of("bw-root").user, 0);
    assert_eq!(noting.of("bw-user"), Spender { user: 1000, ..noting.of("bw-root") });
}

/// Cgroups of version 2, as those of pods: the containers' are two levels below the class's.
struct Pods(Vec<PathBuf>);

impl Pods {
    fn new() -> Option<Self> {
        let roots = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].map(Path::new);
        let root = roots.into_iter().find(|root| root.join("cgroup.procs").exists());
        let Some(root) = root else { return skipped("no cgroups of version 2") };
        let top = root.join(format!("bowwave-test-pods-{}", std::process::id()));
        let class = top.join("class");
        let [one, other] = ["one", "other"].map(|name| class.join(name));
        let users = one.join("users");
        let mut pods = Pods(Vec::new());
        for folder in [top, class, one, other, users.clone(), users.join("below")] {
            if let Err(error) = fs::create_dir(&folder) {
                return skipped(&format!("no cgroup can be made: {error}"));
            }
            pods.0.push(folder);
        }
        // What root leaves to a user.
        for folder in [users.clone(), users.join("below")] {
            chown(folder, Some(NOBODY), Some(NOBODY)).expect("root may");
        }
        Some(pods)
    }

    /// Runs a shell there, begun by these words, which gives itself that name.
    fn run(&self, folder: usize, words: &[&str], name: &str) -> bool {
        let members = self.0[folder].join("cgroup.procs");
        let go = format!("echo $$ > {} && exec \"$@\"", members.display());
        run(&[&["sh", "-c", &go, "sh"], words].concat(), name)
    }
}

impl Drop for Pods {
    fn drop(&mut self) {
        for folder in self.0.iter().rev() {
            if let Err(error) = fs::remove_dir(folder) {
                eprintln!("{} could not be removed: {error}", folder.display());
            }
        }
    }
}

#[test]
fn each_container_of_roots_is_one_whoever_it_seems_to_be_and_whatever_cgroups_it_has_made() {
    let (one, other, below) = (2, 3, 5);
    let Some(noting) = Noting::new() else { return };
    let Some(pods) = Pods::new() else { return };
    let container = ["unshare", "--pid", "--fork"];
    if !pods.run(one, &container, "bw-one") {
        return skipped("no PID namespaces").unwrap_or_default();
    }
    assert!(pods.run(other, &container, "bw-other"));
    let user = [&container[..], &["setpriv", "--reuid=1000", "--clear-groups"]].concat();
    assert!(pods.run(one, &user, "bw-oneuser"));
    if !pods.run(one, &["unshare", "--user", "--map-root-user"], "bw-oneids") {
        return skipped("no user namespaces").unwrap_or_default();
    }
    assert!(pods.run(below, &container, "bw-below"));
    let container = noting.of("bw-one");
    assert!(container.is_container && container.user == 0, "{container:?}");
    let beside = noting.of("bw-other");
    assert!(beside.is_container && beside != container, "{beside:?}");
    for name in ["bw-oneuser", "bw-oneids", "bw-below"] {
        assert_eq!(noting.of(name), container, "{name}");
    }
}
