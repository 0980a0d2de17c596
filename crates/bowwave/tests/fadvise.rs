//! What a program advises for an open file stays when bowwave gives the open file's window back, also if it advised
//! that after its last read.
//!
//! The judge is the disk: how many requests a reader of that open file makes. Skipped where labs or eBPF do not work,
//! unless BOWWAVE_REQUIRE_LIVE=1 makes that a failure.

mod managed;
mod own;
mod stage;
mod windows;

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::Duration;

use managed::{Bench, Daemon};
use rustix::fs::{Advice, fadvise};
use stage::wait_until;

const FILE_BYTES: u64 = 24 << 20;

/// What comes sooner or later comes within that time, also on a busy machine.
const MOST_WAITING: Duration = Duration::from_secs(60);

impl Bench {
    /// A lab with one file; `None` where labs or eBPF do not work.
    fn new() -> Option<Self> {
        let bench = Bench::of("advice", 128 << 20)?;
        let lab = &bench.lab;
        lab.set_fast(true).expect("fast");
        fs::write(lab.mount_point().join("file"), vec![5; FILE_BYTES as usize]).expect("the file");
        lab.evict().expect("evicted");
        Some(bench)
    }

    fn open(&self) -> File {
        File::open(self.lab.mount_point().join("file")).expect("it was written")
    }

    /// A daemon that has the kernel read ahead in larger windows.
    fn daemon(&self) -> Daemon {
        let options = ["--charge", "reader"];
        Daemon::begin(&mut managed::daemon(&self.lab, self.state.path(), &options))
    }

    /// Reads until the daemon has set the window of this open file.
    fn read_until_set(&self, file: &File) {
        let ino = file.metadata().expect("metadata").ino();
        let mut part = vec![0; 64 << 10];
        wait_until("its window is set", MOST_WAITING, || {
            fadvise(file, 0, None, Advice::DontNeed).expect("advised");
            for offset in (0..FILE_BYTES).step_by(part.len()) {
                file.read_exact_at(&mut part, offset).expect("it is read");
            }
            // It is noted before it is changed.
            windows::noted(self.state.path()).contains(&ino) && self.changed_windows() > 0
        });
    }

    /// How many windows the daemon says it has changed.
    fn changed_windows(&self) -> u64 {
        managed::status(self.state.path())["changed_windows"].as_u64().unwrap_or(0)
    }

    /// Requests of a reader of an open file that was advised so, without bowwave.
    fn requests_after(&self, advice: Advice) -> u64 {
        let file = self.open();
        fadvise(&file, 0, None, advice).expect("advised");
        self.requests(&file)
    }

    fn requests(&self, file: &File) -> u64 {
        windows::requests(&self.lab, file)
    }
}

#[test]
fn advice_given_after_the_last_read_stays_when_the_window_is_given_back() {
    let Some(bench) = Bench::new() else { return };
    let own = bench.requests_after(Advice::Normal);
    for advice in [Advice::Random, Advice::Sequential] {
        let expected = bench.requests_after(advice);
        assert!(expected.abs_diff(own) > own / 4, "{advice:?}: {expected} requests, {own} without");
        for is_killed in [false, true] {
            let (daemon, file) = (bench.daemon(), bench.open());
            bench.read_until_set(&file);
            fadvise(&file, 0, None, advice).expect("advised");
            if is_killed {
                // Not in order; the next start gives windows back.
                drop(daemon);
                bench.daemon().end();
            } else {
                daemon.end();
            }
            let requests = bench.requests(&file);
            let is_kept = requests.abs_diff(expected) < requests.abs_diff(own);
            // A later start does not know which window the killed one had set, so only random advice is told from it.
            let is_to_be_kept = !is_killed || advice == Advice::Random;
            let when = format!("{advice:?}, killed: {is_killed}");
            assert!(is_kept || !is_to_be_kept, "{when}: {requests}, {expected} advised, {own} not");
            assert_eq!(windows::left_over(&bench.lab, bench.state.path()), 0, "{when}: left over");
        }
    }
}
