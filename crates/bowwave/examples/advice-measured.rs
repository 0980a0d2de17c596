//! Is what `bowwave advise` predicts what is then measured?
//!
//! ```text
//! cargo build --release && cargo run --release -p bowwave --example advice-measured -- target/release/bowwave
//! ```
//!
//! Runs programs on lab disks, cold: under `bowwave record` for the trace, as they are, and with the remedy that
//! `bowwave advise` puts first. Prints what that saves, predicted and measured, for the last process to end. Needs root,
//! FUSE and eBPF.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lab::{LabGuard, Options};
use linux::knob::{Borrowed, Knob};
use linux::mounts;
use serde_json::Value;

type Fallible<T> = Result<T, Box<dyn Error>>;

const LAB_BYTES: u64 = 1 << 30;

/// A device, today's window in KiB, how to make files in the working directory, and a program that reads them.
const LOADS: [(&str, u64, &str, &str); 5] = [
    ("net", 128, "head -c 60M /dev/urandom > data", "dd if=data of=/dev/null bs=64k"),
    (
        "hdd",
        128,
        "for n in 0 1 2 3 4 5 6 7 8 9; do head -c 12M /dev/urandom > data$n; done",
        "for n in 0 1 2 3 4 5 6 7 8 9; do cat data$n > /dev/null & done; wait",
    ),
    (
        "net",
        128,
        "for d in 0 1 2 3 4 5 6 7 8 9; do mkdir $d; for n in $(seq 60); do head -c 12k /dev/urandom > $d/file$n; done; done",
        "grep -r 'no such words here' . || true",
    ),
    (
        "hdd",
        4096,
        "head -c 500M /dev/zero > data",
        "/usr/bin/python3 -c 'import mmap, random; f = open(\"data\", \"rb\"); r = random.Random(1); \
         m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); [m[r.randrange(500 << 20)] for _ in range(100)]'",
    ),
    ("ssd", 128, "head -c 60M /dev/urandom > data", "dd if=data of=/dev/null bs=64k"),
];

fn main() -> Fallible<()> {
    let Some(bowwave) = std::env::args().nth(1) else {
        return Err("name the bowwave to be tested".into());
    };
    let bowwave = fs::canonicalize(bowwave)?;
    println!("{}, {}", linux::provenance::kernel(), linux::provenance::date());
    println!(
        "device  remedy        today s  predicted  with it s  predicted  saved s  predicted  program"
    );
    for (device, window_kb, make, program) in LOADS {
        let bench = Bench::up(&bowwave, device)?;
        bench.lab.set_read_ahead_kb(window_kb)?;
        bench.shell(make)?;
        bench.measure(device, program)?;
    }
    Ok(())
}

struct Bench<'a> {
    bowwave: &'a Path,
    lab: LabGuard,
    work: tempfile::TempDir,
}

impl<'a> Bench<'a> {
    fn up(bowwave: &'a Path, device: &str) -> Fallible<Self> {
        let lab = LabGuard::up(&Options {
            name: format!("advice-{}", std::process::id()),
            device: device.into(),
            size_bytes: LAB_BYTES,
            fs_type: "ext4".into(),
            scheduler: None,
            server: Some(bowwave.to_owned()),
            inject_late_us: 0.0,
            faults: Vec::new(),
        })?;
        lab.set_fast(true)?;
        let bench = Bench { bowwave, lab, work: tempfile::tempdir()? };
        fs::create_dir(bench.folder())?;
        Ok(bench)
    }

    fn folder(&self) -> PathBuf {
        self.lab.mount_point().join("load")
    }

    fn measure(&self, device: &str, program: &str) -> Fallible<()> {
        let trace = self.trace(program)?;
        let advice = self.advise(&trace, device)?;
        let first = &advice["remedies"][0];
        let today = self.timed(program, &[])?;
        let with_it = self.with_remedy(first, program)?;
        let ends = |remedy: &Value| remedy["ends_s"].as_f64().unwrap_or(f64::NAN);
        let all = advice["remedies"].as_array().ok_or("no remedies")?;
        let left = all.iter().find(|it| it["remedy"] == "leave").map_or(f64::NAN, ends);
        let remedy = first["remedy"].as_str().unwrap_or("?");
        println!(
            "{device:<7} {remedy:<12} {today:>8.3} {left:>10.3} {with_it:>10.3} {:>10.3} {:>8.3} {:>10.3}  {program}",
            ends(first),
            today - with_it,
            left - ends(first)
        );
        Ok(())
    }

    /// A trace of the program, cold.
    fn trace(&self, program: &str) -> Fallible<PathBuf> {
        let trace = self.work.path().join("trace");
        self.cool()?;
        let mut record = Command::new(self.bowwave);
        record.args(["record", "-o"]).arg(&trace).args(["--", "sh", "-c", program]);
        done(record.current_dir(self.folder()))?;
        Ok(trace)
    }

    fn advise(&self, trace: &Path, device: &str) -> Fallible<Value> {
        let mut advise = Command::new(self.bowwave);
        let output =
            advise.arg("advise").arg(trace).args(["--json", "--device", device]).output()?;
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Seconds of the program with a remedy.
    fn with_remedy(&self, remedy: &Value, program: &str) -> Fallible<f64> {
        let run = self.bowwave.to_string_lossy();
        match (remedy["remedy"].as_str(), remedy["readahead_kb"].as_u64()) {
            (Some("window"), Some(kib)) => {
                let mount = mounts::of_path(&self.lab.mount_point())?;
                let knob = Knob::at(&mounts::read_ahead_knob(&mount)).ok_or("no window")?;
                let borrowed = Borrowed::take(knob)?;
                borrowed.set(kib)?;
                self.timed(program, &[])
            }
            (Some("bowwave"), _) => self.timed(program, &[&run, "run", "--strict", "--"]),
            (Some("drop-behind"), _) => self.timed(program, &[&run, "run", "--drop-behind", "--"]),
            _ => self.timed(program, &[]),
        }
    }

    /// Seconds of the program, cold, after these words. Its own shell takes them: bowwave needs time to start.
    fn timed(&self, program: &str, before: &[&str]) -> Fallible<f64> {
        let timed = format!(
            "begun=$(date +%s%N); ({program}) > /dev/null; echo $(($(date +%s%N) - begun))"
        );
        let words: Vec<&str> = before.iter().copied().chain(["sh", "-c", &timed]).collect();
        self.cool()?;
        let told = done(Command::new(words[0]).args(&words[1..]).current_dir(self.folder()))?;
        Ok(told.trim().parse::<f64>()? * 1e-9)
    }

    fn shell(&self, text: &str) -> Fallible<()> {
        done(Command::new("sh").args(["-c", text]).current_dir(self.folder())).map(drop)
    }

    /// Empties the cache of data; directories and inodes are cached, as in the simulator.
    fn cool(&self) -> Fallible<()> {
        self.lab.evict()?;
        self.lab.set_fast(true)?;
        self.shell("find . -size +0 > /dev/null")?;
        self.lab.set_fast(false)?;
        Ok(())
    }
}

/// Runs it to its end; gives what it has printed.
fn done(command: &mut Command) -> Fallible<String> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout)?);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(said.lines().last().unwrap_or("it failed").to_owned().into())
}
