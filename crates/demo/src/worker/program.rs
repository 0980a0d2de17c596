//! Installed programs, timed from start to exit.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

use linux::waits;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::{Outcome, sum};
use crate::leftovers::memory_folder;

/// Bytes per read of a program's output. A pipe holds 64 KiB unless it is enlarged; larger reads save calls.
const BUFFER_BYTES: usize = 256 << 10;

/// Starts a walker in `folder`, after looking up its files, because look-ups do not depend on read-ahead.
pub(super) fn start_walker(words: &[&str], folder: &Path, files: &[PathBuf]) -> io::Result<Child> {
    look_up(files)?;
    let mut walker = Command::new(words[0]);
    walker.args(&words[1..]).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).spawn()
}

/// Runs a program in `folder` and reads its output, since GNU tar reads nothing if its output is discarded. Looks up
/// its files first, because look-ups do not depend on read-ahead.
pub(super) fn run(words: &[&str], folder: &Path, files: &[PathBuf]) -> io::Result<Outcome> {
    look_up(files)?;
    let started = Instant::now();
    let mut child = Command::new(words[0])
        .args(&words[1..])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let checksum = child.stdout.take().map_or(Ok(0), sum_up)?;
    let (status, waited_s) = wait(&mut child)?;
    // grep exits with 1 if it finds nothing, as it should here.
    let found_nothing = words[0] == "grep" && status.code() == Some(1);
    if !found_nothing {
        check(words[0], status)?;
    }
    Ok(Outcome { seconds: started.elapsed().as_secs_f64(), checksum, waited_s, beside: None })
}

/// `cp` into a file in memory, which is removed with this process.
pub(super) fn copy(path: &Path) -> io::Result<Outcome> {
    look_up(&[path.to_path_buf()])?;
    let mut copy = File::from(memfd_create("copy", MemfdFlags::CLOEXEC)?);
    let started = Instant::now();
    let mut program = Command::new("cp");
    let mut child = program.arg(path).arg("/dev/stdout").stdout(copy.try_clone()?).spawn()?;
    let (status, waited_s) = wait(&mut child)?;
    let seconds = started.elapsed().as_secs_f64();
    check("cp", status)?;
    copy.rewind()?;
    Ok(Outcome { seconds, checksum: sum_up(copy)?, waited_s, beside: None })
}

/// `cp -r` of the folder `tree` in `folder`, which contains `files`, into memory.
pub(super) fn copy_tree(tree: &str, folder: &Path, files: &[PathBuf]) -> io::Result<Outcome> {
    look_up(files)?;
    let copy = memory_folder()?;
    let started = Instant::now();
    let mut child = Command::new("cp").arg("-r").arg(folder.join(tree)).arg(copy.path()).spawn()?;
    let (status, waited_s) = wait(&mut child)?;
    let seconds = started.elapsed().as_secs_f64();
    check("cp", status)?;
    let copied = files.iter().filter_map(|file| file.strip_prefix(folder).ok());
    let checksum =
        copied.map(|file| sum_up(File::open(copy.path().join(file))?)).sum::<io::Result<u64>>()?;
    Ok(Outcome { seconds, checksum, waited_s, beside: None })
}

/// One `cat` for each file, all at once.
pub(super) fn cats(paths: &[PathBuf]) -> io::Result<Outcome> {
    look_up(paths)?;
    let started = Instant::now();
    let start = |path| Command::new("cat").arg(path).stdout(Stdio::null()).spawn();
    let children: Vec<Child> = paths.iter().map(start).collect::<io::Result<_>>()?;
    let mut longest_s: f64 = 0.0;
    for mut child in children {
        let (status, waited_s) = wait(&mut child)?;
        longest_s = waited_s.max(longest_s);
        check("cat", status)?;
    }
    let seconds = started.elapsed().as_secs_f64();
    Ok(Outcome { seconds, waited_s: longest_s, ..Outcome::default() })
}

/// Reads the directories and inodes on the way to the files.
fn look_up(files: &[PathBuf]) -> io::Result<()> {
    files.iter().try_for_each(|path| File::open(path).map(drop))
}

fn sum_up(mut stream: impl Read) -> io::Result<u64> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut total = 0;
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(total),
            count => total = sum::add(total, &buffer[..count]),
        }
    }
}

/// Waits for its end. Returns how long it waited for a processor, in seconds. The kernel tells this only before the
/// process is reaped.
fn wait(child: &mut Child) -> io::Result<(ExitStatus, f64)> {
    waitid(WaitId::Pid(Pid::from_child(child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    let waited_s = waits::process(child.id()).seconds();
    Ok((child.wait()?, waited_s))
}

fn check(program: &str, status: ExitStatus) -> io::Result<()> {
    if status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{program} ended with {status}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("one"), "some words\n").expect("room for a line");
        folder
    }

    #[test]
    fn a_copy_and_a_reader_see_the_same_bytes() {
        let folder = folder();
        let copied = copy(&folder.path().join("one")).expect("cp works");
        let printed = run(&["cat", "one"], folder.path(), &[]).expect("cat works");
        assert_eq!(copied.checksum, sum::add(0, b"some words\n"));
        assert_eq!(copied.checksum, printed.checksum);
    }

    #[test]
    fn a_copied_tree_holds_the_same_files() {
        let folder = folder();
        std::fs::create_dir(folder.path().join("tree")).expect("made");
        let file = folder.path().join("tree/one");
        std::fs::write(&file, "some words\n").expect("room for a line");
        let copied = copy_tree("tree", folder.path(), &[file]).expect("cp works");
        assert_eq!(copied.checksum, sum::add(0, b"some words\n"));
        assert!(copy_tree("none", folder.path(), &[]).is_err());
    }

    #[test]
    fn only_grep_may_find_nothing_and_everything_else_must_succeed() {
        let folder = folder();
        assert!(run(&["grep", "-r", "other", "one"], folder.path(), &[]).is_ok());
        assert!(run(&["grep", "-r", "other", "none"], folder.path(), &[]).is_err());
        assert!(run(&["false"], folder.path(), &[]).is_err());
        assert!(cats(&[folder.path().join("none")]).is_err());
    }
}
