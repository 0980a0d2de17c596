//! Measures how much processor time the demonstration's programs take. `bowwave reproduce demo` needs that to simulate
//! them.
//!
//! ```text
//! cargo run --release -p bowwave-demo --example program-times > experiments/demo-programs.csv
//! ```
//!
//! Each runs over its file in memory, and over one of a single page. Run it on the machine on which, and when, the
//! example `record` measures the rest.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use patterns::{PAGE_BYTES, PATTERNS, Pattern, Work};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// Patterns with one program each.
const PROGRAMS: [&str; 7] = ["tac", "grep", "tar", "cp", "cats-10", "sha256sum", "python-mmap"];

/// Times are medians of this many runs.
const RUNS: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    println!("program,start_us,ns_per_kib");
    for pattern in PATTERNS.iter().filter(|pattern| PROGRAMS.contains(&pattern.name)) {
        let bytes = pattern.files[0].bytes;
        let (start_ns, all_ns) =
            (processor_ns(pattern, PAGE_BYTES)?, processor_ns(pattern, bytes)?);
        let ns_per_kib = (all_ns - start_ns).max(0.0) / (bytes as f64 / 1024.0);
        println!(
            "{},{:.0},{ns_per_kib:.0}",
            pattern.program().unwrap_or_default(),
            start_ns / 1000.0
        );
    }
    Ok(())
}

/// Nanoseconds of processor time of a pattern's program, for a file of this many bytes in memory.
fn processor_ns(pattern: &Pattern, bytes: u64) -> Result<f64, Box<dyn Error>> {
    let folder = tempfile::tempdir_in("/dev/shm")?;
    let file = pattern.files[0].names().swap_remove(0);
    let path = folder.path().join(&file);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    // Lines, as `tac` needs some.
    let line = b"sixty-four bytes of a text that no pattern of grep's will match\n";
    fs::write(&path, line.repeat(bytes as usize / line.len()))?;
    let runs: Result<Vec<f64>, _> = (0..RUNS).map(|_| run(pattern, folder.path(), &file)).collect();
    linux::median(runs?).ok_or_else(|| "nothing was measured".into())
}

fn run(pattern: &Pattern, folder: &Path, file: &str) -> Result<f64, Box<dyn Error>> {
    let copy = folder.join("copy");
    let words: Vec<&str> = match pattern.work {
        Work::Program(words) => words.to_vec(),
        Work::Copy => vec!["cp", file, "copy"],
        Work::Cats => vec!["cat", file],
        _ => return Err(format!("{} runs no program", pattern.name).into()),
    };
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(folder).stdin(Stdio::null());
    // GNU tar reads nothing if its output is discarded.
    let is_thrown_away = !matches!(pattern.work, Work::Program(_));
    command.stdout(if is_thrown_away { Stdio::null() } else { Stdio::piped() });
    let mut child = command.spawn()?;
    if let Some(mut output) = child.stdout.take() {
        std::io::copy(&mut output, &mut std::io::sink())?;
    }
    // The kernel tells its time only until it is reaped.
    waitid(WaitId::Pid(Pid::from_child(&child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    let told = fs::read_to_string(format!("/proc/{}/schedstat", child.id()))?;
    child.wait()?;
    let _ = fs::remove_file(copy);
    Ok(told.split(' ').next().unwrap_or_default().parse()?)
}
