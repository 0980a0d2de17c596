//! Who keeps a file system from being unmounted.

use std::fs;
use std::path::{Path, PathBuf};

/// Programs that work in, have open or have mapped something at or below one of `places`, as
/// `name (process id)`. Those of other users are seen by root only.
pub(crate) fn users_of(places: &[&Path]) -> Vec<String> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    // Every path begins with the empty one, which is that of a block device that is not there.
    let is_below = |path: &Path| {
        places.iter().any(|place| !place.as_os_str().is_empty() && path.starts_with(place))
    };
    let uses = |process: &Path| {
        links_of(process).iter().any(|path| is_below(path))
            || maps_of(process).iter().any(|path| is_below(path))
    };
    let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut users: Vec<u32> =
        pids.filter(|pid: &u32| uses(&PathBuf::from(format!("/proc/{pid}")))).collect();
    users.sort_unstable();
    users.into_iter().map(name_of).collect()
}

fn name_of(pid: u32) -> String {
    let name = linux::table::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    format!("{} ({pid})", name.trim())
}

fn links_of(process: &Path) -> Vec<PathBuf> {
    let open = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    let open = open.map(|entry| entry.path());
    let links = ["cwd", "root"].map(|name| process.join(name)).into_iter().chain(open);
    links.filter_map(|link| fs::read_link(link).ok()).collect()
}

fn maps_of(process: &Path) -> Vec<PathBuf> {
    paths_in(&linux::table::read(process.join("maps")).unwrap_or_default()).collect()
}

/// The last field of each line, where it is a path.
pub(crate) fn paths_in(maps: &str) -> impl Iterator<Item = PathBuf> {
    maps.lines().filter_map(|line| line.find('/').map(|at| PathBuf::from(&line[at..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_a_file_open_or_works_there_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = format!("({})", std::process::id());
        assert_eq!(users_of(&[folder.path(), Path::new("")]), Vec::<String>::new());
        let file = fs::File::create(folder.path().join("file")).expect("a file");
        assert!(users_of(&[folder.path()])[0].ends_with(&own));
        drop(file);
        let mut worker = std::process::Command::new("sleep")
            .arg("1000")
            .current_dir(folder.path())
            .spawn()
            .expect("sleep is there");
        let users = users_of(&[Path::new("/nowhere"), folder.path()]);
        worker.kill().expect("it sleeps");
        worker.wait().expect("it ends");
        assert_eq!(users, [format!("sleep ({})", worker.id())]);
    }
}
