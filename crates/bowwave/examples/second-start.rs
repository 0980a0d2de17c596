//! How much sooner programs start when bowwave remembers their last start.
//!
//! ```text
//! cargo build --release && cargo run --release -p bowwave --example second-start -- target/release/bowwave
//! ```
//!
//! Copies programs of this machine to a lab disk and starts them there: from the cache, and with their files not cached
//! by themselves, under `bowwave run`, with `--remember` for the first and for the second time, and with the list of
//! another program. Medians of 3 rounds, each of which starts every way once. Directories and inodes are cached, unless
//! the last argument is `metadata`. Further arguments name the devices (`net` and `hdd` by default). Needs root, FUSE
//! and eBPF.

mod cold;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use cold::{Fallible, shell};
use lab::LabGuard;

const ROUNDS: usize = 3;

/// The ways to start a program, each of which is a column in seconds.
const WAYS: usize = 6;

/// Room for the largest compilers.
const LAB_BYTES: u64 = 1 << 30;

/// Imports Python's whole library, but for what opens windows, runs programs or prints poems.
const IMPORT: &str = "
import importlib, pkgutil, sys
sys.path[:] = ['library', 'library/lib-dynload']
left_out = ('__main__', 'antigravity', 'idlelib', 'this', 'tkinter', 'turtle', 'test')
for module in pkgutil.walk_packages(['library'], onerror=lambda name: None):
    if not any(word in module.name for word in left_out):
        try:
            importlib.import_module(module.name)
        except ImportError:
            pass  # Of another system.
";

/// A program and how to get it on another disk: shell commands.
struct Program {
    name: &'static str,
    /// Copies it to the folder `$1`; fails if it is not installed.
    copy: &'static str,
    /// Starts it there: its folder is the working directory.
    start: &'static str,
}

const PROGRAMS: [Program; 3] = [
    Program {
        name: "import",
        copy: "library=$(python3 -c 'import sysconfig; print(sysconfig.get_path(\"stdlib\"))') && \
               cp -a \"$library\" \"$1\" && cd \"$1\" && rm -rf */test */site-packages */dist-packages && \
               mv * library",
        start: "python3 -c \"$IMPORT\"",
    },
    Program {
        name: "perl",
        copy: "for part in privlib archlib; do folder=$(perl -MConfig -e \"print \\$Config{$part}\") && \
               mkdir \"$1/$part\" && cp -RL \"$folder/.\" \"$1/$part\" || exit; done",
        start: "perl -Iprivlib -Iarchlib -MCPAN -MPod::Man -MPod::Perldoc -MPod::Usage -MTest::More \
                -MModule::CoreList -MIO::Socket::IP -MEncode -MUnicode::UCD -MStorable -MTime::Piece \
                -MArchive::Tar -MHTTP::Tiny -MMath::BigFloat -e 1",
    },
    Program {
        name: "clang",
        copy: "program=$(readlink -f \"$(command -v clang)\") && cp \"$program\" \"$1/clang\" && \
               ldd \"$program\" | grep -o '/[^ ]*\\(LLVM\\|clang\\|stdc\\|z3\\)[^ ]*' | \
               while read -r library; do cp -L \"$library\" \"$1\"; done",
        start: "LD_LIBRARY_PATH=. ./clang -fsyntax-only -xc /dev/null",
    },
];

fn main() -> Fallible<()> {
    let (bowwave, mut words, is_metadata_cold) = cold::words()?;
    if words.is_empty() {
        words = ["net", "hdd"].map(String::from).into();
    }
    println!(
        "device  program  cached s  alone s   run s  first s  second s  stale s  alone/second  run/first  run/stale"
    );
    for device in words {
        let bench = Bench::up(&bowwave, &device, is_metadata_cold)?;
        let copied = PROGRAMS.iter().filter(|program| bench.has(program)).collect::<Vec<_>>();
        for (index, program) in copied.iter().enumerate() {
            let other = copied[(index + 1) % copied.len()];
            let rounds: Vec<_> =
                (0..ROUNDS).map(|_| bench.round(program, other)).collect::<Fallible<_>>()?;
            show(&device, program.name, &rounds);
        }
    }
    Ok(())
}

fn show(device: &str, program: &str, rounds: &[[f64; WAYS]]) {
    let median = |figure: &dyn Fn(&[f64; WAYS]) -> f64| {
        linux::median(rounds.iter().map(figure).collect::<Vec<_>>()).unwrap_or(f64::NAN)
    };
    let seconds: [f64; WAYS] = std::array::from_fn(|way| median(&|times| times[way]));
    let [cached, alone, run, first, second, stale] = seconds;
    let ratios = [(1, 4), (2, 3), (2, 5)].map(|(way, by)| median(&|times| times[way] / times[by]));
    let [faster, of_first, of_stale] = ratios;
    println!(
        "{device:<7} {program:<8} {cached:>8.2} {alone:>8.2} {run:>7.2} {first:>8.2} {second:>9.2} {stale:>8.2} \
         {faster:>13.1} {of_first:>10.2} {of_stale:>10.2}"
    );
}

/// A lab with the programs on it, and a folder for bowwave's state.
struct Bench<'a> {
    bowwave: &'a Path,
    lab: LabGuard,
    state: tempfile::TempDir,
    is_metadata_cold: bool,
}

impl<'a> Bench<'a> {
    fn up(bowwave: &'a Path, device: &str, is_metadata_cold: bool) -> Fallible<Self> {
        let lab = cold::lab("second-start", device, LAB_BYTES, bowwave)?;
        lab.set_fast(true)?;
        Ok(Bench { bowwave, lab, state: tempfile::tempdir()?, is_metadata_cold })
    }

    fn folder(&self, program: &Program) -> PathBuf {
        self.lab.mount_point().join(program.name)
    }

    /// Copies it; if that is not possible, says so.
    fn has(&self, program: &Program) -> bool {
        let folder = self.folder(program);
        let copy = || -> Fallible<()> {
            fs::create_dir(&folder)?;
            shell(Command::new("sh").args(["-c", program.copy, "sh"]).arg(&folder))?;
            // Writes what it writes at its first start, and measures the disk.
            self.start(program, &["--"])?;
            Ok(())
        };
        let copied = copy();
        if let Err(error) = &copied {
            eprintln!("{}: left out ({error})", program.name);
        }
        copied.is_ok()
    }

    /// Seconds of all ways to start it.
    fn round(&self, program: &Program, other: &Program) -> Fallible<[f64; WAYS]> {
        let lists = self.state.path().join("lists");
        if lists.exists() {
            fs::remove_dir_all(&lists)?;
        }
        let lists = lists.to_string_lossy();
        let remember = |name| ["--lists", &lists, "--remember", name, "--"];
        let alone = self.start(program, &[])?;
        let cached = self.timed(program, &[])?;
        let run = self.start(program, &["--"])?;
        let first = self.start(program, &remember("own"))?;
        let second = self.start(program, &remember("own"))?;
        self.start(other, &remember("others"))?;
        let stale = self.start(program, &remember("others"))?;
        Ok([cached, alone, run, first, second, stale])
    }

    /// Starts it cold, with these options of `bowwave run` unless there are none; gives the seconds until its end.
    fn start(&self, program: &Program, options: &[&str]) -> Fallible<f64> {
        cold::cool(&self.lab, self.is_metadata_cold)?;
        self.timed(program, options)
    }

    fn timed(&self, program: &Program, options: &[&str]) -> Fallible<f64> {
        let mut command = if options.is_empty() {
            Command::new("sh")
        } else {
            let mut run = Command::new(self.bowwave);
            run.arg("run").arg("--state").arg(self.state.path()).args(options).arg("sh");
            run
        };
        command.args(["-c", program.start]).current_dir(self.folder(program));
        command.env("IMPORT", IMPORT).env("PYTHONDONTWRITEBYTECODE", "1");
        let begun = Instant::now();
        shell(&mut command)?;
        Ok(begun.elapsed().as_secs_f64())
    }
}
