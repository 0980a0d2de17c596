//! Removes what killed demonstrations have left: labs, memory cgroups, small folders. All their names contain the
//! process id. So a demonstration removes only those whose process is gone.

use std::fmt::Display;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use lab::LabError;
use tempfile::TempDir;

use crate::cgroup;
use crate::target::DEFAULT_FOLDER;

const FOLDER_PREFIX: &str = "bowwave-demo-";
const LAB_PREFIX: &str = "demo-";

/// A file system in memory, on every Linux.
const MEMORY: &str = "/dev/shm";

/// The name of this demonstration's lab of a device.
pub(crate) fn lab_name(device: &str) -> String {
    format!("{LAB_PREFIX}{}-{}", lab::name_for(device), std::process::id())
}

/// A temporary folder of a demonstration.
pub(crate) fn temporary_folder() -> io::Result<TempDir> {
    folder_in(&std::env::temp_dir())
}

/// A folder in memory.
pub(crate) fn memory_folder() -> io::Result<TempDir> {
    folder_in(Path::new(MEMORY))
}

/// A folder in `parent` that bears the process id.
pub(crate) fn folder_in(parent: &Path) -> io::Result<TempDir> {
    let prefix = format!("{FOLDER_PREFIX}{}-", std::process::id());
    tempfile::Builder::new().prefix(&prefix).tempdir_in(parent)
}

/// Removes them, also those in `folders`. Calls `tell` with a sentence for each: it was removed, or how to remove it.
pub(crate) fn clear(folders: &[&Path], tell: impl Fn(&str)) {
    let report = |what: &dyn Display, removed: Result<(), String>| match removed {
        Ok(()) => tell(&format!("removed {what}, which a demonstration that was killed had left")),
        Err(error) => {
            tell(&format!("{what}, which a demonstration that was killed has left, stays: {error}"))
        }
    };
    for name in lab::list().into_iter().filter(|name| is_left(process_of_lab(name))) {
        match lab::remove(&name) {
            Err(LabError::AtWork(_) | LabError::Unknown(_)) => {}
            removed => report(
                &format_args!("the lab {name}"),
                removed.map_err(|error| format!("{error} (`bowwave lab down {name}`)")),
            ),
        }
    }
    for (_, folder) in cgroup::all().into_iter().filter(|(process, _)| is_left(Some(*process))) {
        let removed = fs::remove_dir(&folder);
        report(
            &format_args!("the cgroup {}", folder.display()),
            removed.map_err(|e| e.to_string()),
        );
    }
    let parents = [&std::env::temp_dir(), Path::new(MEMORY), Path::new(DEFAULT_FOLDER)];
    for folder in parents.iter().chain(folders).flat_map(|parent| left_folders(parent)) {
        let removed = fs::remove_dir_all(&folder);
        report(
            &format_args!("the folder {}", folder.display()),
            removed.map_err(|e| e.to_string()),
        );
    }
}

/// Leftover folders in `parent`. Everybody may write there, so only our own count.
fn left_folders(parent: &Path) -> Vec<PathBuf> {
    let own = rustix::process::geteuid().as_raw();
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let left = entries.filter(|entry| {
        let is_ours = entry.metadata().is_ok_and(|about| about.is_dir() && about.uid() == own);
        is_ours && is_left(entry.file_name().to_str().and_then(process_of_folder))
    });
    left.map(|entry| entry.path()).collect()
}

/// Whether this is the id of a process that is gone.
fn is_left(process: Option<u32>) -> bool {
    process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists())
}

/// `demo-hdd-17`
fn process_of_lab(name: &str) -> Option<u32> {
    name.strip_prefix(LAB_PREFIX)?.rsplit_once('-')?.1.parse().ok()
}

/// `bowwave-demo-17-a8Xb3c`
fn process_of_folder(name: &str) -> Option<u32> {
    name.strip_prefix(FOLDER_PREFIX)?.split_once('-')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The id of a process that has ended.
    fn gone() -> u32 {
        let mut child = std::process::Command::new("true").spawn().expect("it is there");
        child.wait().expect("it ends");
        child.id()
    }

    #[test]
    fn only_what_bears_the_id_of_a_process_that_is_gone_is_left() {
        let (gone, here) = (gone(), std::process::id());
        assert!(is_left(process_of_lab(&format!("demo-my-stick-{gone}"))));
        assert!(!is_left(process_of_lab(&lab_name("hdd"))));
        for name in
            ["hdd".to_owned(), format!("hdd-{gone}"), "demo-hdd".into(), "demo-hdd-x".into()]
        {
            assert!(!is_left(process_of_lab(&name)), "{name}");
        }
        let parent = tempfile::tempdir().expect("a folder");
        let mut expected = Vec::new();
        for (name, is_left) in [
            (format!("bowwave-demo-{gone}-abc"), true),
            (format!("bowwave-demo-{here}-abc"), false),
            ("bowwave-demo-abc".into(), false),
            (format!("other-{gone}-abc"), false),
        ] {
            fs::create_dir(parent.path().join(&name)).expect("made");
            expected.extend(is_left.then(|| parent.path().join(name)));
        }
        assert_eq!(left_folders(parent.path()), expected);
        let own = temporary_folder().expect("made");
        let name = own.path().file_name().and_then(|name| name.to_str()).expect("text");
        assert_eq!(process_of_folder(name), Some(here));
    }

    #[test]
    fn what_a_killed_demonstration_left_on_a_disk_of_the_machine_is_removed() {
        let disk = tempfile::tempdir().expect("a folder");
        let own = folder_in(disk.path()).expect("made");
        let name = own.path().file_name().and_then(|name| name.to_str()).expect("text");
        let left = name.replace(&std::process::id().to_string(), &gone().to_string());
        fs::create_dir(disk.path().join(&left)).expect("made");
        fs::write(disk.path().join(&left).join("file"), "files of a pattern").expect("written");
        clear(&[disk.path()], |_| {});
        assert!(own.path().exists(), "its process lives");
        assert!(!disk.path().join(left).exists());
    }

    #[test]
    fn the_cgroup_of_a_killed_demonstration_is_removed_and_others_stay() {
        let Ok(own) = cgroup::MemoryCgroup::new(64 << 20) else {
            eprintln!("skipped: no memory cgroup can be made here");
            return;
        };
        let mine = |process: u32| cgroup::all().into_iter().find(|(id, _)| *id == process);
        let (_, folder) = mine(std::process::id()).expect("it is listed");
        let gone = gone();
        fs::create_dir(folder.with_file_name(format!("bowwave-demo-{gone}"))).expect("made");
        clear(&[], |_| {});
        assert_eq!(mine(gone), None);
        assert!(folder.exists(), "its process lives");
        drop(own);
        assert!(!folder.exists());
    }
}
