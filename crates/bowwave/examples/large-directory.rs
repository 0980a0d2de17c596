//! What a walk through one directory of very many files costs the daemon: its memory, and how long other events wait.
//!
//! ```text
//! cargo build --release && cargo run --release -p bowwave --example large-directory -- target/release/bowwave 1000000
//! ```
//!
//! For each number of files of one block each, on a lab disk that answers at once, `tar` walks through a directory of
//! so many: first with the stock kernel alone, then beside a daemon. Needs root, FUSE, eBPF, and 5 GB of memory for a
//! million files.

mod cold;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use cold::{Fallible, shell};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// ext4 makes an inode for each 16 KiB.
const BYTES_PER_FILE: u64 = 16 << 10;

const LEAST_LAB_BYTES: u64 = 256 << 20;

fn main() -> Fallible<()> {
    let (bowwave, words, is_metadata_cold) = cold::words()?;
    println!("    files  stock s  bowwave s  read ahead  RSS MiB  longest wait ms  lost events");
    for files in words {
        let files: u64 = files.parse()?;
        let lab_bytes = LEAST_LAB_BYTES + files * BYTES_PER_FILE * 5 / 4;
        let lab = cold::lab("large-directory", "net", lab_bytes, &bowwave)?;
        lab.set_fast(true)?;
        let folder = lab.mount_point().join("large");
        fs::create_dir(&folder)?;
        for number in 0..files {
            File::create(folder.join(format!("{number:07}.txt")))?.write_all(b"one block")?;
        }
        let cool = || cold::cool(&lab, is_metadata_cold).and_then(|()| Ok(lab.set_fast(true)?));
        cool()?;
        let stock_s = walk(&folder)?;
        cool()?;
        let state = tempfile::tempdir()?;
        let daemon = Daemon::begin(&bowwave, &lab.mount_point(), state.path())?;
        let ours_s = walk(&folder)?;
        let resident_mib = daemon.most_resident_mib()?;
        let did = daemon.end()?;
        let number = |name: &str| did[name].as_f64().unwrap_or(f64::NAN);
        println!(
            "{files:>9} {stock_s:>8.2} {ours_s:>10.2} {:>11} {resident_mib:>8.1} {:>16.2} {:>12}",
            number("walk_files"),
            1e3 * number("longest_turn_s"),
            number("lost_events")
        );
    }
    Ok(())
}

/// How many seconds `tar` takes.
fn walk(folder: &Path) -> Fallible<f64> {
    let begun = Instant::now();
    shell(
        Command::new("sh")
            .args(["-c", "{ tar cf - . || kill $$; } | cat > /dev/null"])
            .current_dir(folder),
    )?;
    Ok(begun.elapsed().as_secs_f64())
}

/// A daemon for the lab's files. Killed if this is dropped before it has ended.
struct Daemon(Child);

impl Daemon {
    fn begin(bowwave: &Path, mount: &Path, state: &Path) -> Fallible<Self> {
        let mut daemon = Command::new(bowwave);
        daemon.args(["daemon", "--json", "--path"]).arg(mount).arg("--state").arg(state);
        let mut daemon = Daemon(daemon.stdout(Stdio::piped()).spawn()?);
        let mut line = String::new();
        // One line, and no byte of the next one.
        let output = daemon.0.stdout.as_mut().ok_or("it is piped")?;
        BufReader::with_capacity(1, output).read_line(&mut line)?;
        if !line.contains("\"ready\":true") {
            return Err(line.into());
        }
        Ok(daemon)
    }

    /// The most memory that it has had.
    fn most_resident_mib(&self) -> Fallible<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
        Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
    }

    /// Ends it; gives what it says it did.
    fn end(mut self) -> Fallible<Value> {
        kill_process(Pid::from_child(&self.0), Signal::TERM)?;
        let mut said = String::new();
        self.0.stdout.as_mut().ok_or("it is piped")?.read_to_string(&mut said)?;
        self.0.wait()?;
        Ok(serde_json::from_str(said.lines().last().ok_or("it says nothing")?)?)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
