//! How the user started this program, for the commands that bowwave suggests.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The program as the user wrote it, with `sudo` before it for a user who is not root.
pub(crate) fn as_root() -> String {
    let is_root = rustix::process::geteuid().is_root();
    let given = env::args_os().next().map_or_else(|| "bowwave".into(), PathBuf::from);
    let program = name(&given, env::var_os("PATH").as_deref());
    if is_root { program } else { format!("sudo {program}") }
}

/// The file's name if a shell finds this very file by that name, otherwise the path as given.
fn name(given: &Path, search_path: Option<&OsStr>) -> String {
    let file = given.file_name().unwrap_or(given.as_os_str());
    let found = search_path.into_iter().flat_map(env::split_paths).map(|folder| folder.join(file));
    let found = found.filter_map(|path| path.canonicalize().ok()).next();
    let is_found = found.is_some() && found == given.canonicalize().ok();
    let shown = if is_found { Path::new(file) } else { given };
    shown.display().to_string()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_program_in_the_search_path_is_shown_without_its_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let other = tempfile::tempdir().expect("another");
        let given = folder.path().join("bowwave");
        fs::write(&given, "").expect("written");
        let in_path = |folder: &Path| name(&given, Some(folder.as_os_str()));
        assert_eq!(in_path(folder.path()), "bowwave");
        assert_eq!(in_path(other.path()), given.display().to_string());
        fs::write(other.path().join("bowwave"), "").expect("written");
        assert_eq!(in_path(other.path()), given.display().to_string(), "another bowwave");
        assert_eq!(name(Path::new("bowwave"), None), "bowwave");
    }
}
