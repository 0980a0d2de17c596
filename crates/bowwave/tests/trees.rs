//! Programs that walk through trees of small files, on the running kernel: a lab volume and the daemon beside it.
//!
//! What is asserted is counted, never timed. Needs root, FUSE and eBPF; elsewhere a test says why it is skipped,
//! unless BOWWAVE_REQUIRE_LIVE=1 makes that a failure.

mod managed;
mod own;
mod stage;

use std::ffi::CString;
use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};

use managed::Bench;
use own::Own;

const FOLDERS: u64 = 20;
const FILES: u64 = 40;
const FILE_BYTES: u64 = 12 << 10;

impl Bench {
    /// A network volume with a tree of 800 files, cold; `None` where labs or eBPF do not work.
    fn new() -> Option<Self> {
        let bench = Bench::of("trees", 512 << 20)?;
        let lab = &bench.lab;
        lab.set_fast(true).expect("fast");
        for folder in 0..FOLDERS {
            let path = lab.mount_point().join(format!("tree/{folder}"));
            fs::create_dir_all(&path).expect("a folder");
            for file in 0..FILES {
                let words = format!("{folder} {file} ").repeat(FILE_BYTES as usize);
                let bytes = &words.as_bytes()[..FILE_BYTES as usize];
                fs::write(path.join(format!("file{file}")), bytes).expect("a file");
            }
        }
        Some(bench)
    }

    fn tree(&self) -> PathBuf {
        self.lab.mount_point().join("tree")
    }

    /// From now on nothing is cached, and the device takes its time.
    fn cool(&self) {
        self.lab.evict().expect("evicted");
        self.lab.set_fast(false).expect("slow");
    }

    fn daemon(&self) -> (Own, BufReader<ChildStdout>) {
        managed::begin(&mut managed::daemon(&self.lab, self.state.path(), &[]))
    }

    fn bytes_read(&self) -> u64 {
        self.lab.status().expect("counters").bytes_read
    }
}

/// Ends a daemon; gives what it says it did.
fn stop((mut daemon, mut output): (Own, BufReader<ChildStdout>)) -> serde_json::Value {
    let pid = rustix::process::Pid::from_child(&daemon);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    let mut said = String::new();
    output.read_to_string(&mut said).expect("its last words");
    assert!(daemon.wait().expect("it ends").success(), "{said}");
    serde_json::from_str(said.lines().last().unwrap_or_default()).expect("its summary")
}

/// `grep -r` over a folder, by root or by nobody; gives what it found. Nobody begins in the folder, as labs are mounted
/// where only root gets to.
fn grep(folder: &Path, by: By) -> Vec<u8> {
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let words = ["grep", "-rlD", "skip", "7 3", "."];
    let words: Vec<&str> = match by {
        By::Root => words.to_vec(),
        By::Nobody => nobody.into_iter().chain(words).collect(),
    };
    let mut grep = Command::new(words[0]);
    grep.args(&words[1..]).current_dir(folder).stderr(Stdio::null());
    grep.output().expect("it is there").stdout
}

#[derive(Clone, Copy)]
enum By {
    Root,
    Nobody,
}

fn is_cached(path: &Path) -> bool {
    let file = File::open(path).expect("it is there");
    demo::resident(&file).expect("the kernel tells").contains(&true)
}

#[test]
fn a_walk_through_a_tree_has_its_next_files_read_ahead_and_nothing_else() {
    let Some(bench) = Bench::new() else { return };
    let expected = grep(&bench.tree(), By::Root);
    bench.cool();
    let daemon = bench.daemon();
    let before = bench.bytes_read();
    let found = grep(&bench.tree(), By::Root);
    let read = bench.bytes_read() - before;
    let done = stop(daemon);
    assert_eq!(found, expected, "the program reads what it has always read");
    let files = done["walk_files"].as_u64().expect("a number");
    assert!(files > FOLDERS * FILES / 2, "{done}");
    // Directories, inodes and a block of each are read as well.
    let needed = FOLDERS * FILES * FILE_BYTES + (4 << 20);
    assert!(read <= needed * 11 / 10, "{read} bytes read, {needed} needed: {done}");
}

#[test]
fn what_the_walker_may_not_read_and_what_is_no_file_of_the_tree_is_left_alone() {
    let Some(bench) = Bench::new() else { return };
    let tree = bench.tree();
    let outside = bench.lab.mount_point().join("outside");
    fs::write(&outside, vec![7; FILE_BYTES as usize]).expect("a file");
    let (shut, secret) = (tree.join("11"), tree.join("12/file5"));
    for folder in 0..FOLDERS {
        let folder = tree.join(folder.to_string());
        let fifo =
            CString::new(folder.join("fifo").as_os_str().as_encoded_bytes()).expect("a path");
        rustix::fs::mkfifoat(rustix::fs::CWD, fifo, rustix::fs::Mode::from_raw_mode(0o666))
            .expect("a FIFO");
        symlink(&outside, folder.join("link")).expect("a link");
    }
    fs::set_permissions(&shut, Permissions::from_mode(0o700)).expect("ours");
    fs::set_permissions(&secret, Permissions::from_mode(0o600)).expect("ours");
    bench.cool();
    let daemon = bench.daemon();
    grep(&tree, By::Nobody);
    let done = stop(daemon);
    assert!(done["walk_files"].as_u64().expect("a number") > FOLDERS * FILES / 2, "{done}");
    assert!(!is_cached(&secret), "a file that the walker may not read");
    assert!(!is_cached(&outside), "where a link leads");
    for file in 0..FILES {
        let file = shut.join(format!("file{file}"));
        assert!(!is_cached(&file), "a folder that the walker may not enter");
    }
}

/// Takes write leases on files, says "held", and prints a line for each that the kernel wants back.
const HOLD_LEASES: &str = "\
import fcntl, signal, sys
signal.signal(signal.SIGIO, lambda *_: print('broken', flush=True))
held = [open(path, 'r+b') for path in sys.argv[1:]]
for file in held:
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print('held', flush=True)
while True:
    signal.pause()";

#[test]
fn a_file_under_a_lease_is_not_opened_ahead_of_a_walker_that_passes_it_over() {
    let Some(bench) = Bench::new() else { return };
    let tree = bench.tree();
    let path = |file: u64| tree.join(format!("{}/file{}", file / FILES, file % FILES));
    let is_leased = |file: &u64| file % 10 == 5;
    bench.cool();
    let mut python = Command::new("python3");
    python.args(["-c", HOLD_LEASES]).args((0..FOLDERS * FILES).filter(is_leased).map(path));
    let mut holder = Own::start(python.stdout(Stdio::piped()));
    let mut said = BufReader::new(holder.stdout.take().expect("piped"));
    let mut word = String::new();
    said.read_line(&mut word).expect("a line");
    assert_eq!(word, "held\n", "leases can be taken on ext4");
    let daemon = bench.daemon();
    let mut walker = Command::new("cat");
    walker.args((0..FOLDERS * FILES).filter(|file| !is_leased(file)).map(path));
    assert!(walker.stdout(Stdio::null()).status().expect("it runs").success());
    let done = stop(daemon);
    assert!(done["walk_files"].as_u64().expect("a number") > FOLDERS * FILES / 4, "{done}");
    holder.kill().expect("it waits");
    holder.wait().expect("it ends");
    let mut words = String::new();
    said.read_to_string(&mut words).expect("what it said");
    assert!(!words.contains("broken"), "{words}");
}

#[test]
fn files_that_are_replaced_and_removed_while_they_are_walked_do_no_harm() {
    let Some(bench) = Bench::new() else { return };
    let tree = bench.tree();
    bench.cool();
    let daemon = bench.daemon();
    let mut walker = Own::start(
        Command::new("grep").arg("-r").arg("no such words").arg(&tree).stderr(Stdio::null()),
    );
    for folder in (0..FOLDERS).rev() {
        let folder = tree.join(folder.to_string());
        for file in (0..FILES).step_by(3) {
            let path = folder.join(format!("file{file}"));
            fs::remove_file(&path).expect("it was there");
            if file % 2 == 0 {
                fs::create_dir(&path).expect("it is gone");
            }
        }
    }
    walker.wait().expect("it ends");
    assert!(stop(daemon)["walk_files"].as_u64().is_some());
}
