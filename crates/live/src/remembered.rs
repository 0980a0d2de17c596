//! Start-up lists on the disk: one file for each name, in a folder that only root can look into.
//!
//! ```text
//!   NAME --> List: file systems by their identity --> Input::Remembered: by device number --> Engine
//!    ^                                                                                           |
//!    '---------- written whole at the end <-- what each new file contains <-- Noted <------------'
//! ```
//!
//! A list is JSON. It may be deleted at any time. What cannot be read is no list.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use controller::ids::{DeviceNumber, FileKey};
use controller::{REMEMBERED_RANGES, RememberedFile, RememberedRange, Version};
use linux::handles::{Known, encodes_inode_handles};
use linux::mounts::Mount;
use linux::whole;
use readahead::behind::Span;
use rustix::fs::{Mode, OFlags, open, statvfs};
use serde::{Deserialize, Serialize};

/// The format that this bowwave writes.
const FORMAT: u32 = 1;

/// A list of as many ranges as there can be is smaller.
const MOST_BYTES: u64 = 4 << 20;

/// Longer paths are left out of lists: they are only shown.
const LONGEST_PATH: usize = 256;

/// The name of a list, which is the name of its file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

/// Why a text is no name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "a name has 1 to 64 letters, digits, dots, underscores or hyphens, and does not begin with a dot"
)]
pub struct NameError;

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let is_name =
            (1..=64).contains(&text.len()) && !text.starts_with('.') && text.bytes().all(is_plain);
        if is_name { Ok(Name(text.into())) } else { Err(NameError) }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a command read when it was started last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    format: u32,
    /// In the order in which they were read.
    pub files: Vec<ListedFile>,
}

/// A file of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedFile {
    /// What `statvfs(3)` calls its file system (`f_fsid`).
    pub file_system: u64,
    /// Its inode number.
    pub ino: u64,
    /// The generation of its inode.
    pub generation: u32,
    /// Its size.
    pub bytes: u64,
    /// The last change of its contents, in nanoseconds since 1970.
    pub changed_ns: i64,
    /// Where it lay; shown, and never used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// First page, end, and starts in a row at which the range was not used.
    pub ranges: Vec<(u64, u64, u8)>,
}

impl ListedFile {
    /// Pages of all its ranges.
    pub fn pages(&self) -> u64 {
        self.ranges.iter().map(|(start, end, _)| end - start).sum()
    }
}

/// Why a text is no list.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("{0}")]
    Malformed(#[from] serde_json::Error),
    #[error("it has format {0}, not {FORMAT}")]
    Format(u32),
    #[error("it has more than {REMEMBERED_RANGES} ranges")]
    Long,
    #[error("file {0} of it has impossible ranges")]
    Ranges(usize),
}

/// Parses a list.
fn parse(text: &[u8]) -> Result<List, Fault> {
    let list: List = serde_json::from_slice(text)?;
    if list.format != FORMAT {
        return Err(Fault::Format(list.format));
    }
    if list.files.iter().map(|file| file.ranges.len()).sum::<usize>() > REMEMBERED_RANGES {
        return Err(Fault::Long);
    }
    let is_odd = |file: &ListedFile| {
        let overlap = file.ranges.windows(2).any(|pair| pair[0].1 > pair[1].0);
        file.ranges.is_empty() || overlap || file.ranges.iter().any(|(start, end, _)| start >= end)
    };
    match list.files.iter().position(is_odd) {
        Some(file) => Err(Fault::Ranges(file + 1)),
        None => Ok(list),
    }
}

#[cfg(any(test, fuzzing))]
pub(crate) fn read_any(bytes: &[u8]) {
    if let Ok(list) = parse(bytes) {
        let again = serde_json::to_vec(&list).expect("a list can be written");
        assert_eq!(parse(&again).expect("and read"), list);
        list.files.iter().for_each(|file| assert!(file.pages() > 0));
    }
}

/// Why a list cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The file system refuses.
    #[error("cannot use {path}: {error}")]
    Io {
        /// The list or the folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Somebody else may have written it.
    #[error("{path} does not belong to root alone; remove it")]
    Foreign {
        /// The list.
        path: PathBuf,
    },
    /// It is damaged, or of another version.
    #[error("{path} is no list of this bowwave ({reason}); remove it")]
    Damaged {
        /// The list.
        path: PathBuf,
        /// In what way.
        reason: String,
    },
}

/// The folder of lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lists {
    folder: PathBuf,
}

impl Lists {
    /// Those in this folder, which need not exist.
    pub fn in_folder(folder: &Path) -> Self {
        Lists { folder: folder.to_owned() }
    }

    fn path(&self, name: &Name) -> PathBuf {
        self.folder.join(&name.0)
    }

    /// The names of all lists, sorted.
    ///
    /// # Errors
    /// If the folder cannot be listed.
    pub fn names(&self) -> Result<Vec<Name>, ListError> {
        let unusable = |error| ListError::Io { path: self.folder.clone(), error };
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(unusable)?,
        };
        let name = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        let mut names: Vec<Name> = entries.flatten().filter_map(name).collect();
        names.sort();
        Ok(names)
    }

    /// The list of that name; `None` if there is none.
    ///
    /// # Errors
    /// See [`ListError`].
    pub fn read(&self, name: &Name) -> Result<Option<List>, ListError> {
        let path = self.path(name);
        let unusable = |error| ListError::Io { path: path.clone(), error };
        // Never follows a link or waits for a pipe.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match open(&path, flags, Mode::empty()).map_err(io::Error::from) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => File::from(file.map_err(unusable)?),
        };
        let about = file.metadata().map_err(unusable)?;
        let own = rustix::process::geteuid().as_raw();
        if !about.is_file() || about.uid() != own || about.mode() & 0o022 != 0 {
            return Err(ListError::Foreign { path });
        }
        let mut text = Vec::new();
        file.take(MOST_BYTES + 1).read_to_end(&mut text).map_err(unusable)?;
        let damaged = |reason: String| {
            let reason = reason.replace('\n', " ");
            ListError::Damaged { path: path.clone(), reason }
        };
        if text.len() as u64 > MOST_BYTES {
            return Err(damaged(format!("it has more than {MOST_BYTES} bytes")));
        }
        parse(&text).map(Some).map_err(|fault| damaged(fault.to_string()))
    }

    /// Replaces the list of that name as a whole, or begins it; only root can read it.
    ///
    /// # Errors
    /// If it cannot be written; then the old one stays.
    pub fn write(&self, name: &Name, list: &List) -> Result<(), ListError> {
        let path = self.path(name);
        let written = self.make_folder().and_then(|()| {
            whole::forget_drafts(&path);
            whole::write_privately(&path, serde_json::to_vec(list)?)
        });
        written.map_err(|error| ListError::Io { path, error })
    }

    fn make_folder(&self) -> io::Result<()> {
        if let Some(above) = self.folder.parent() {
            fs::create_dir_all(above)?;
        }
        match DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes the list of that name; tells whether there was one.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn forget(&self, name: &Name) -> Result<bool, ListError> {
        let path = self.path(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(ListError::Io { path, error }),
            Ok(()) => Ok(true),
        }
    }
}

impl List {
    /// The files that lie on these file systems, as the controller knows them.
    pub(crate) fn on(&self, mounts: &[Mount]) -> Vec<RememberedFile> {
        let known = identities(mounts);
        let known: HashMap<u64, DeviceNumber> =
            known.into_iter().map(|(dev, id)| (id, dev)).collect();
        let file = |listed: &ListedFile| {
            let dev = *known.get(&listed.file_system)?;
            let range = |&(start, end, starts_in_vain): &(u64, u64, u8)| RememberedRange {
                pages: Span { start, end },
                starts_in_vain,
            };
            Some(RememberedFile {
                file: FileKey { dev, ino: listed.ino },
                generation: listed.generation,
                version: Some(Version { bytes: listed.bytes, changed_ns: listed.changed_ns }),
                ranges: listed.ranges.iter().map(range).collect(),
            })
        };
        self.files.iter().filter_map(file).collect()
    }
}

/// The identity of each file system whose files can be opened by their inode.
fn identities(mounts: &[Mount]) -> HashMap<DeviceNumber, u64> {
    let local = mounts.iter().filter(|mount| encodes_inode_handles(&mount.fs_type));
    local.filter_map(|mount| Some((mount.dev, statvfs(&mount.mount_point).ok()?.f_fsid))).collect()
}

/// What was noted of a start, before its files are looked at.
#[derive(Clone, Debug)]
pub struct Noted {
    pub(crate) files: Vec<RememberedFile>,
    pub(crate) mounts: Vec<Mount>,
}

impl Noted {
    /// The next list after `before`. Looks at the files that are new in it, opens none, and leaves out what is gone.
    /// What `before` tells of file systems that are not mounted stays.
    pub fn after(self, before: &List) -> List {
        let identities = identities(&self.mounts);
        let mounts: HashMap<DeviceNumber, &Mount> =
            self.mounts.iter().map(|mount| (mount.dev, mount)).collect();
        let paths: HashMap<(u64, u64), &Option<String>> =
            before.files.iter().map(|file| ((file.file_system, file.ino), &file.path)).collect();
        let listed = |noted: RememberedFile| {
            let RememberedFile { file, generation, version, ranges } = noted;
            let file_system = *identities.get(&file.dev)?;
            let (version, path) = match version {
                Some(version) => (version, paths.get(&(file_system, file.ino)).copied().cloned()?),
                None => look_at(Known { file, generation }, mounts.get(&file.dev)?)?,
            };
            let range =
                |range: RememberedRange| (range.pages.start, range.pages.end, range.starts_in_vain);
            Some(ListedFile {
                file_system,
                ino: file.ino,
                generation,
                bytes: version.bytes,
                changed_ns: version.changed_ns,
                path,
                ranges: ranges.into_iter().map(range).collect(),
            })
        };
        let mut files: Vec<ListedFile> = self.files.into_iter().filter_map(listed).collect();
        let is_elsewhere =
            |file: &&ListedFile| !identities.values().any(|id| *id == file.file_system);
        let mut room = REMEMBERED_RANGES;
        room -= files.iter().map(|file| file.ranges.len()).sum::<usize>().min(room);
        files.extend(before.files.iter().filter(is_elsewhere).cloned().take_while(|file| {
            let fits = file.ranges.len() <= room;
            room = room.saturating_sub(file.ranges.len());
            fits
        }));
        List { format: FORMAT, files }
    }
}

fn look_at(known: Known, mount: &Mount) -> Option<(Version, Option<String>)> {
    let reached = known.reach(mount).ok()?;
    let path = reached.path().and_then(|path| path.to_str().map(str::to_owned));
    let version = Version { bytes: reached.bytes, changed_ns: reached.changed_ns };
    Some((version, path.filter(|path| path.len() <= LONGEST_PATH)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn name(text: &str) -> Name {
        text.parse().expect("a name")
    }

    fn list(ino: u64) -> List {
        let ranges = vec![(0, 4, 0), (9, 12, 2)];
        let file = ListedFile {
            file_system: 7,
            ino,
            generation: 3,
            bytes: 50_000,
            changed_ns: -5,
            path: None,
            ranges,
        };
        List { format: FORMAT, files: vec![file] }
    }

    #[test]
    fn a_name_is_a_plain_file_name() {
        for good in ["python3", "a", "My_editor-2.1"] {
            assert_eq!(name(good).to_string(), good);
        }
        let long = "x".repeat(65);
        for bad in ["", ".", "..", ".hidden", "a/b", "a b", "ä", "a\n", &long] {
            assert_eq!(bad.parse::<Name>(), Err(NameError), "{bad:?}");
        }
    }

    #[test]
    fn a_list_is_written_read_named_and_forgotten_and_only_its_owner_can_look() {
        let root = tempfile::tempdir().expect("a folder");
        let lists = Lists::in_folder(&root.path().join("new/remembered"));
        let editor = name("editor");
        assert!(lists.read(&editor).expect("nothing is there").is_none());
        assert_eq!(lists.names().expect("nothing is there"), []);
        lists.write(&editor, &list(1)).expect("written");
        lists.write(&editor, &list(2)).expect("replaced");
        lists.write(&name("browser"), &List { format: FORMAT, files: vec![] }).expect("written");
        assert_eq!(lists.read(&editor).expect("it is ours"), Some(list(2)));
        assert_eq!(lists.names().expect("listed"), [name("browser"), editor.clone()]);
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(&lists.path(&editor)), 0o600);
        assert_eq!(mode(&lists.folder), 0o700);
        assert!(lists.forget(&editor).expect("removed") && !lists.forget(&editor).expect("gone"));
    }

    #[test]
    fn what_others_can_write_or_have_put_there_is_no_list() {
        let root = tempfile::tempdir().expect("a folder");
        let lists = Lists::in_folder(root.path());
        let plain = name("plain");
        lists.write(&plain, &list(1)).expect("written");
        symlink(lists.path(&plain), lists.path(&name("link"))).expect("linked");
        fs::create_dir(lists.path(&name("folder"))).expect("made");
        assert!(matches!(lists.read(&name("link")), Err(ListError::Io { .. })));
        assert!(matches!(lists.read(&name("folder")), Err(ListError::Foreign { .. })));
        fs::set_permissions(lists.path(&plain), fs::Permissions::from_mode(0o620)).expect("ours");
        assert!(matches!(lists.read(&plain), Err(ListError::Foreign { .. })));
    }

    #[test]
    fn what_is_no_list_is_told_in_one_sentence() {
        let root = tempfile::tempdir().expect("a folder");
        let lists = Lists::in_folder(root.path());
        let file = r#"{"file_system":1,"ino":2,"generation":3,"bytes":4,"changed_ns":5,"ranges":"#;
        for (text, word) in [
            (String::from("{"), "EOF"),
            ("\n{}".into(), "format"),
            (r#"{"format":9,"files":[]}"#.into(), "format 9"),
            (format!(r#"{{"format":1,"files":[{file}[[3,3,0]]}}]}}"#), "impossible"),
            (format!(r#"{{"format":1,"files":[{file}[[0,4,0],[3,5,0]]}}]}}"#), "impossible"),
            (" ".repeat(MOST_BYTES as usize + 1), "more than"),
        ] {
            whole::write_privately(&lists.path(&name("x")), &text).expect("written");
            let said = lists.read(&name("x")).expect_err("it is none").to_string();
            assert!(said.contains(word) && said.ends_with("; remove it"), "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }

    #[test]
    fn the_longest_list_fits_its_file() {
        let path = Some("\u{7f}".repeat(LONGEST_PATH));
        let file = |_| ListedFile {
            file_system: u64::MAX,
            ino: u64::MAX,
            generation: u32::MAX,
            bytes: u64::MAX,
            changed_ns: i64::MIN,
            path: path.clone(),
            ranges: vec![(1 << 50, 1 << 51, 2)],
        };
        let list = List { format: FORMAT, files: (0..REMEMBERED_RANGES).map(file).collect() };
        let text = serde_json::to_vec(&list).expect("written");
        assert!(text.len() as u64 <= MOST_BYTES, "{}", text.len());
    }
}
