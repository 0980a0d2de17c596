//! Is what `bowwave advise` predicts what is then measured?
//!
//! ```text
//! cargo build --release && cargo run --release -p bowwave --example advice-measured -- target/release/bowwave [WORD]
//! ```
//!
//! Runs programs on lab disks, cold: under `bowwave record` for the trace, as they are, and with the remedy that
//! `bowwave advise` puts first; if that is to remember a start, a second time. Prints what that saves, predicted and
//! measured, until the last process ends. With WORD, only the programs that contain it. Needs root, FUSE and eBPF.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use demo::MemoryCgroup;
use lab::{LabGuard, Options};
use linux::knob::{Borrowed, Knob};
use linux::mounts;
use serde_json::Value;

type Fallible<T> = Result<T, Box<dyn Error>>;

const LAB_BYTES: u64 = 1 << 30;

/// What programs need besides pages of files, in a memory cgroup; bowwave is one of them.
const OTHER_BYTES: u64 = 48 << 20;

struct Load {
    device: &'static str,
    /// The device's `read_ahead_kb` today.
    window_kb: u64,
    /// Memory for pages of files; `None`: the machine's.
    memory_mb: Option<u64>,
    /// Makes files in the working directory.
    make: &'static str,
    /// Reads them. `$behind` stands before a program that may be told to drop pages behind itself.
    program: &'static str,
}

const LOADS: [Load; 7] = [
    Load {
        device: "net",
        window_kb: 128,
        memory_mb: None,
        make: "head -c 60M /dev/urandom > data",
        program: "dd if=data of=/dev/null bs=64k",
    },
    Load {
        device: "hdd",
        window_kb: 128,
        memory_mb: None,
        make: "for n in 0 1 2 3 4 5 6 7 8 9; do head -c 12M /dev/urandom > data$n; done",
        program: "for n in 0 1 2 3 4 5 6 7 8 9; do cat data$n > /dev/null & done; wait",
    },
    Load {
        device: "net",
        window_kb: 128,
        memory_mb: None,
        make: "for d in 0 1 2 3 4 5 6 7 8 9; do mkdir $d; for n in $(seq 60); do head -c 12k /dev/urandom > $d/file$n; done; done",
        program: "grep -r 'no such words here' . || true",
    },
    Load {
        device: "hdd",
        window_kb: 4096,
        memory_mb: None,
        make: "head -c 500M /dev/zero > data",
        program: "/usr/bin/python3 -c 'import mmap, random; f = open(\"data\", \"rb\"); r = random.Random(1); \
                  m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); [m[r.randrange(500 << 20)] for _ in range(100)]'",
    },
    Load {
        device: "hdd",
        window_kb: 128,
        memory_mb: Some(384),
        make: "head -c 80M /dev/urandom > base; mkdir saved; for n in $(seq 60); do head -c 8M /dev/urandom > saved/file$n; done",
        program: "/usr/bin/python3 -c 'import os, random, time; f = os.open(\"base\", os.O_RDONLY); r = random.Random(1); \
                  [os.pread(f, 131072, n << 17) for n in range(640)]; time.sleep(10); \
                  [os.pread(f, 16384, r.randrange(5120) << 14) for _ in range(2000)]' & \
                  sleep 3; $behind tar cf - saved | cat > /dev/null; wait",
    },
    Load {
        device: "net",
        window_kb: 128,
        memory_mb: None,
        make: "/usr/bin/python3 -c 'import os, random; r = random.Random(1)
for n in range(900):
    os.makedirs(f\"package{n % 40}\", exist_ok=True)
    open(f\"package{n % 40}/module{n}.py\", \"w\").write(f\"text = {r.randbytes(r.randrange(1000, 8000))}\")' && \
               /usr/bin/python3 -m compileall -q .",
        program: "PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -c 'import importlib, random; \
                  modules = [n for n in range(900) if n // 40 % 3 == 0]; random.Random(2).shuffle(modules); \
                  [importlib.import_module(f\"package{n % 40}.module{n}\") for n in modules]'",
    },
    Load {
        device: "ssd",
        window_kb: 128,
        memory_mb: None,
        make: "head -c 60M /dev/urandom > data",
        program: "dd if=data of=/dev/null bs=64k",
    },
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
    let only = std::env::args().nth(2).unwrap_or_default();
    for load in LOADS.iter().filter(|load| load.program.contains(&only)) {
        let bench = Bench::up(&bowwave, load)?;
        bench.lab.set_read_ahead_kb(load.window_kb)?;
        bench.shell(load.make)?;
        bench.measure()?;
    }
    Ok(())
}

struct Bench<'a> {
    bowwave: &'a Path,
    load: &'a Load,
    memory: Option<MemoryCgroup>,
    lab: LabGuard,
    work: tempfile::TempDir,
}

impl<'a> Bench<'a> {
    fn up(bowwave: &'a Path, load: &'a Load) -> Fallible<Self> {
        let lab = LabGuard::up(&Options {
            name: format!("advice-{}", std::process::id()),
            device: load.device.into(),
            size_bytes: LAB_BYTES,
            fs_type: "ext4".into(),
            scheduler: None,
            server: Some(bowwave.to_owned()),
            inject_late_us: 0.0,
            faults: Vec::new(),
        })?;
        lab.set_fast(true)?;
        let memory =
            load.memory_mb.map(|mb| MemoryCgroup::new((mb << 20) + OTHER_BYTES)).transpose()?;
        let bench = Bench { bowwave, load, memory, lab, work: tempfile::tempdir()? };
        fs::create_dir(bench.folder())?;
        Ok(bench)
    }

    fn folder(&self) -> PathBuf {
        self.lab.mount_point().join("load")
    }

    fn measure(&self) -> Fallible<()> {
        let Load { device, program, .. } = self.load;
        let trace = self.trace()?;
        let advice = self.advise(&trace)?;
        let first = &advice["remedies"][0];
        let today = self.timed("", &[])?;
        let with_it = self.with_remedy(first)?;
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
    fn trace(&self) -> Fallible<PathBuf> {
        let trace = self.work.path().join("trace");
        self.cool()?;
        let mut record = Command::new(self.bowwave);
        record.args(["record", "-o"]).arg(&trace).args([
            "--",
            "sh",
            "-c",
            &self.script("PROGRAM", ""),
        ]);
        done(record.current_dir(self.folder()))?;
        Ok(trace)
    }

    /// What a shell runs: this text, with the program in place of `PROGRAM`, in the program's memory cgroup. `behind`
    /// stands before the program that may drop pages behind itself.
    fn script(&self, text: &str, behind: &str) -> String {
        let text = text.replace("PROGRAM", self.load.program);
        format!("{}behind='{behind}'; {text}", self.enter())
    }

    /// Has a shell enter the program's memory cgroup.
    fn enter(&self) -> String {
        let memory = self.memory.as_ref();
        memory.map_or(String::new(), |it| format!("echo $$ > {}; ", it.members().display()))
    }

    fn advise(&self, trace: &Path) -> Fallible<Value> {
        let mut advise = Command::new(self.bowwave);
        advise.arg("advise").arg(trace).args(["--json", "--device", self.load.device]);
        if let Some(mb) = self.load.memory_mb {
            advise.args(["--memory", &format!("{mb}M")]);
        }
        Ok(serde_json::from_slice(&advise.output()?.stdout)?)
    }

    /// Seconds of the program with a remedy.
    fn with_remedy(&self, remedy: &Value) -> Fallible<f64> {
        let run = self.bowwave.to_string_lossy();
        match (remedy["remedy"].as_str(), remedy["readahead_kb"].as_u64()) {
            (Some("window"), Some(kib)) => {
                let mount = mounts::of_path(&self.lab.mount_point())?;
                let knob = Knob::at(&mounts::read_ahead_knob(&mount)).ok_or("no window")?;
                let borrowed = Borrowed::take(knob)?;
                borrowed.set(kib)?;
                self.timed("", &[])
            }
            (Some("bowwave"), _) => self.timed("", &[&run, "run", "--strict", "--"]),
            (Some("drop-behind"), _) => {
                self.timed(&format!("{run} run --strict --drop-behind --"), &[])
            }
            (Some("remember"), _) => {
                let lists = self.work.path().join("lists");
                let lists = lists.to_string_lossy();
                let start = [&run, "run", "--strict", "--lists", &lists, "--remember", "it", "--"];
                self.timed("", &start)?;
                self.timed("", &start)
            }
            _ => self.timed("", &[]),
        }
    }

    /// Seconds that the program takes, cold, if the words `before` start its shell. The shell itself takes the time, so
    /// that the start of bowwave does not count.
    fn timed(&self, behind: &str, before: &[&str]) -> Fallible<f64> {
        let timed = "begun=$(date +%s%N); (PROGRAM) > /dev/null; echo $(($(date +%s%N) - begun))";
        let timed = self.script(timed, behind);
        // What bowwave reads is charged to where it is.
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{}exec \"$@\"", self.enter()), "sh"]).args(before);
        self.cool()?;
        let told = done(shell.args(["sh", "-c", &timed]).current_dir(self.folder()))?;
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
