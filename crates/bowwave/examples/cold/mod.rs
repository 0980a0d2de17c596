//! A lab whose files are not cached.

use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lab::{LabGuard, Options};
use rustix::fs::{Advice, fadvise};

pub(crate) type Fallible<T> = Result<T, Box<dyn Error>>;

/// A lab with an ext4, served by that bowwave.
pub(crate) fn lab(
    purpose: &str,
    device: &str,
    size_bytes: u64,
    bowwave: &Path,
) -> Fallible<LabGuard> {
    Ok(LabGuard::up(&Options {
        name: format!("{purpose}-{}", std::process::id()),
        device: device.into(),
        size_bytes,
        fs_type: "ext4".into(),
        scheduler: None,
        server: Some(bowwave.to_owned()),
        inject_late_us: 0.0,
        faults: Vec::new(),
    })?)
}

/// Empties the cache of the lab's files, and of their directories and inodes if these shall be cold.
pub(crate) fn cool(lab: &LabGuard, is_metadata_cold: bool) -> Fallible<()> {
    lab.evict()?;
    if !is_metadata_cold {
        lab.set_fast(true)?;
        look_up(&lab.mount_point())?;
        lab.set_fast(false)?;
    }
    Ok(())
}

/// Has the directories and inodes below a folder cached.
fn look_up(folder: &Path) -> Fallible<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            look_up(&entry.path())?;
        } else if kind.is_file() {
            fadvise(File::open(entry.path())?, 0, None, Advice::DontNeed)?;
        }
    }
    Ok(())
}

/// Runs it to its end; what it says is only of interest if it fails.
pub(crate) fn shell(command: &mut Command) -> Fallible<()> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(said.lines().last().unwrap_or("it failed").to_owned().into())
}

/// The words of the command line: the bowwave to be tested, the others, and whether the last was `metadata`.
pub(crate) fn words() -> Fallible<(PathBuf, Vec<String>, bool)> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    if words.is_empty() {
        return Err("name the bowwave to be tested".into());
    }
    let bowwave = fs::canonicalize(words.remove(0))?;
    let is_metadata_cold = words.last().is_some_and(|word| word == "metadata");
    if is_metadata_cold {
        words.pop();
    }
    let cold = if is_metadata_cold { "data and metadata cold" } else { "data cold" };
    println!("{}, {}, {cold}", linux::provenance::kernel(), linux::provenance::date());
    Ok((bowwave, words, is_metadata_cold))
}
