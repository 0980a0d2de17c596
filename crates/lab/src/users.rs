//! Finds the programs that keep a file system from being unmounted.

use std::fs;
use std::path::{Path, PathBuf};

/// Programs other than this one that use something at or below one of `places`: an open or mapped file, or the current
/// folder. Each as `name (process id)`, or as `name (process id, its current folder)` if that is all it uses. Only root
/// sees those of other users.
pub(crate) fn users_of(places: &[&Path]) -> Vec<String> {
    let mut users: Vec<(u32, Use)> = linux::process::all()
        .filter(|pid| *pid != std::process::id())
        .filter_map(|pid| Some((pid, use_of(pid, places)?)))
        .collect();
    users.sort_unstable_by_key(|(pid, _)| *pid);
    users.into_iter().map(|(pid, what)| described(pid, what)).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// A file is open or mapped, or it is the root folder.
    Files,
    /// It is the current folder, and nothing else is in use.
    CurrentFolder,
}

fn use_of(pid: u32, places: &[&Path]) -> Option<Use> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    // Every path begins with the empty path, which stands for a missing block device.
    let is_below = |path: &PathBuf| {
        places.iter().any(|place| !place.as_os_str().is_empty() && path.starts_with(place))
    };
    let has_files =
        links_of(&process).iter().any(is_below) || maps_of(&process).iter().any(is_below);
    let works_there = || fs::read_link(process.join("cwd")).is_ok_and(|folder| is_below(&folder));
    if has_files {
        return Some(Use::Files);
    }
    works_there().then_some(Use::CurrentFolder)
}

fn described(pid: u32, what: Use) -> String {
    let name = linux::table::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    let why = if what == Use::CurrentFolder { ", its current folder" } else { "" };
    format!("{} ({pid}{why})", name.trim())
}

/// Where the root folder and the open files of a process are.
fn links_of(process: &Path) -> Vec<PathBuf> {
    let open = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    let open = open.map(|entry| entry.path());
    let links = std::iter::once(process.join("root")).chain(open);
    links.filter_map(|link| fs::read_link(link).ok()).collect()
}

fn maps_of(process: &Path) -> Vec<PathBuf> {
    paths_in(&linux::table::read(process.join("maps")).unwrap_or_default()).collect()
}

/// The last field of each line of `/proc/PID/maps`, where it is a path.
pub(crate) fn paths_in(maps: &str) -> impl Iterator<Item = PathBuf> {
    maps.lines().filter_map(|line| line.find('/').map(|at| PathBuf::from(&line[at..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_a_file_open_or_works_there_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = fs::File::create(folder.path().join("file")).expect("a file");
        assert_eq!(users_of(&[folder.path(), Path::new("")]), [""; 0], "not whoever asks");
        let reader = std::process::Command::new("sleep").arg("1000").stdin(file).spawn();
        let mut reader = reader.expect("sleep is there");
        let users = users_of(&[folder.path()]);
        reader.kill().expect("it sleeps");
        reader.wait().expect("it ends");
        assert_eq!(users, [format!("sleep ({})", reader.id())]);
        let mut worker = std::process::Command::new("sleep")
            .arg("1000")
            .current_dir(folder.path())
            .spawn()
            .expect("sleep is there");
        let users = users_of(&[Path::new("/nowhere"), folder.path()]);
        worker.kill().expect("it sleeps");
        worker.wait().expect("it ends");
        assert_eq!(users, [format!("sleep ({}, its current folder)", worker.id())]);
    }
}
