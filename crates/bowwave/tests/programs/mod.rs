//! Programs that know nothing of bowwave and check what they read, over and over: `cp`, fio and SQLite.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rustix::fs::{Advice, fadvise};

use crate::stage::skipped;
use crate::trial::Random;

const COPIED_BYTES: usize = 12 << 20;
const FIO_MIB: u64 = 6;

/// Writes and replaces rows, reads them back cold, and has the database checked.
const SQLITE: &str = "
import os, random, sqlite3, sys
path = sys.argv[1]
random.seed(int(sys.argv[2]))
if os.path.exists(path):
    os.remove(path)
db = sqlite3.connect(path)
db.execute('pragma cache_size = 32')
db.execute('create table rows (number integer primary key, seed integer, content blob)')
content = lambda seed: random.Random(seed).randbytes(200 + seed % 3000)
rows = {}
for _ in range(8):
    with db:
        for _ in range(60):
            number, seed = random.randrange(1000), random.randrange(1 << 30)
            db.execute('insert or replace into rows values (?, ?, ?)', (number, seed, content(seed)))
            rows[number] = seed
    # No transaction is open: closing the descriptor gives up no lock.
    f = os.open(path, os.O_RDONLY)
    os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(f)
    for number, seed in random.sample(sorted(rows.items()), 20):
        found = db.execute('select seed, content from rows where number = ?', (number,)).fetchone()
        assert found == (seed, content(seed)), number
assert dict(db.execute('select number, seed from rows')) == rows
answer = db.execute('pragma integrity_check').fetchall()
assert answer == [('ok',)], answer
";

/// Each in a loop of its own, until [`end`](Programs::end).
pub(crate) struct Programs {
    is_over: Arc<AtomicBool>,
    loops: Vec<(&'static str, JoinHandle<u64>)>,
}

impl Programs {
    /// Begins in that folder; `None` where one of them is not installed.
    pub(crate) fn begin(folder: &Path, seed: u64) -> Option<Programs> {
        installed("fio")?;
        installed("python3")?;
        let mut programs = Programs { is_over: Arc::default(), loops: Vec::new() };
        let (original, copy) = (folder.join("original"), folder.join("copy"));
        let content = Random(seed).noise(COPIED_BYTES);
        fs::write(&original, &content).expect("room on the lab");
        programs.repeat("cp", move |_| copies(&original, &copy, &content));
        let place = folder.to_owned();
        programs.repeat("fio", move |round| succeeds(&mut fio(&place, FIO_MIB, seed + round, &[])));
        let database = folder.join("database");
        programs.repeat("SQLite", move |round| {
            let mut python = Command::new("python3");
            python.args(["-c", SQLITE]).arg(&database).arg((seed + round).to_string());
            succeeds(&mut python);
        });
        Some(programs)
    }

    /// Does this, too, over and over; it is told how often it was done before.
    pub(crate) fn repeat(
        &mut self,
        name: &'static str,
        mut work: impl FnMut(u64) + Send + 'static,
    ) {
        let is_over = Arc::clone(&self.is_over);
        let work = move || {
            let mut rounds = 0;
            while rounds == 0 || !is_over.load(Ordering::Relaxed) {
                work(rounds);
                rounds += 1;
            }
            rounds
        };
        self.loops.push((name, thread::spawn(work)));
    }

    /// Ends them, each after its round; tells how many rounds each has made. Fails if one of them did.
    pub(crate) fn end(mut self) -> String {
        self.is_over.store(true, Ordering::Relaxed);
        let ends = std::mem::take(&mut self.loops).into_iter().map(|(name, work)| {
            let rounds = work.join().unwrap_or_else(|_| panic!("{name} failed"));
            format!("{rounds} x {name}")
        });
        ends.collect::<Vec<_>>().join(", ")
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for (_, work) in self.loops.drain(..) {
            // Its panic was printed.
            let _ = work.join();
        }
    }
}

fn copies(original: &Path, copy: &PathBuf, content: &[u8]) {
    evict(original);
    succeeds(Command::new("cp").arg(original).arg(copy));
    evict(copy);
    assert!(fs::read(copy).expect("it is there") == content, "the copy is another one");
}

/// `None` where a program is not installed.
pub(crate) fn installed(program: &str) -> Option<()> {
    match Command::new(program).arg("--version").output() {
        Ok(_) => Some(()),
        Err(_) => skipped(&format!("no {program}; `scripts/setup tests` installs it")),
    }
}

/// Writes two files of that size, one in random order. Before it verifies, fio writes everything to the disk, and asks
/// for its eviction.
pub(crate) fn fio(folder: &Path, mib: u64, seed: u64, options: &[&str]) -> Command {
    let mut fio = Command::new("fio");
    fio.args(["--output-format=terse", "--ioengine=psync", "--fallocate=none"]).args(options);
    fio.arg(format!("--size={mib}M"));
    fio.args(["--verify=crc32c", "--verify_fatal=1", "--verify_state_save=0"])
        .arg(format!("--randseed={seed}"));
    fio.arg(format!("--directory={}", folder.display()));
    fio.args(["--name=random", "--rw=randwrite", "--bsrange=4k-64k"]);
    fio.args(["--name=in-order", "--rw=write", "--bs=64k"]);
    fio
}

pub(crate) fn succeeds(command: &mut Command) {
    let output = command.output().expect("it is installed");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&said));
}

/// Has the file written to the disk, and its pages dropped.
fn evict(path: &Path) {
    let file = File::open(path).expect("it is there");
    file.sync_all().expect("written");
    fadvise(&file, 0, None, Advice::DontNeed).expect("advised");
}
