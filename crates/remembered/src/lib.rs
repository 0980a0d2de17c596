//! Start-up lists on the disk: one file for each name, in a folder that only root can look into.
//!
//! ```text
//!   NAME --> List: file systems by their identity --> Input::Remembered: by device number --> Engine
//!    ^                                                                                           |
//!    '---------- written whole at the end <-- what each new file contains <-- Noted <------------'
//! ```
//!
//! A list is JSON. It may be deleted at any time. A damaged list counts as none.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use controller::ids::{DeviceNumber, FileKey};
use controller::{REMEMBERED_RANGES, RememberedFile, RememberedRange, Version};
use linux::handles::{Known, encodes_inode_handles, is_gone};
use linux::limited::within;
use linux::mounts::Mount;
use linux::private::{Folder, PrivateError};
use readahead::behind::Span;
use rustix::fs::fstatvfs;
use serde::{Deserialize, Serialize};

/// The format that this bowwave writes.
const FORMAT: u32 = 1;

/// A list of as many ranges as there can be is smaller.
const MOST_BYTES: u64 = 4 << 20;

/// Longer paths are left out of lists, as they are only shown.
const LONGEST_PATH: usize = 256;

/// The name of a list, which is the name of its file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

/// Why a text cannot be a name.
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
    /// Its path then, only to be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Of each range: first page, end, and the number of starts in a row that did not use it.
    pub ranges: Vec<(u64, u64, u8)>,
}

impl ListedFile {
    /// Pages of all its ranges.
    pub fn pages(&self) -> u64 {
        self.ranges.iter().map(|(start, end, _)| end - start).sum()
    }
}

/// Why a text is not a valid list.
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

/// For fuzzing: any bytes are read or refused, and what is read can be written and read again.
#[cfg(any(test, fuzzing))]
pub fn read_any(bytes: &[u8]) {
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
    #[error("cannot use the list {path}: others than root can change it")]
    Foreign {
        /// The list.
        path: PathBuf,
    },
    /// Somebody else may put other files there.
    #[error(
        "{path} is not a folder that only root can change; name another one, or remove others' rights to it"
    )]
    ForeignFolder {
        /// The folder.
        path: PathBuf,
    },
    /// It is damaged, or of another version.
    #[error("cannot read the list {path} ({reason}); bowwave remembered NAME --forget removes it")]
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
    /// The lists in this folder, which need not exist.
    pub fn in_folder(folder: &Path) -> Self {
        Lists { folder: folder.to_owned() }
    }

    fn path(&self, name: &Name) -> PathBuf {
        self.folder.join(&name.0)
    }

    /// The names of all lists, sorted.
    ///
    /// # Errors
    /// If the folder cannot be listed, or others may change it.
    pub fn names(&self) -> Result<Vec<Name>, ListError> {
        let Some(folder) = self.look_up()? else { return Ok(Vec::new()) };
        let all = folder.names().map_err(|error| self.folder_error(error.into()))?;
        let mut names: Vec<Name> = all.iter().filter_map(|name| name.parse().ok()).collect();
        names.sort();
        Ok(names)
    }

    /// The list of that name; `None` if there is none.
    ///
    /// # Errors
    /// See [`ListError`].
    pub fn read(&self, name: &Name) -> Result<Option<List>, ListError> {
        let Some(folder) = self.look_up()? else { return Ok(None) };
        let file = folder.read(&name.0).map_err(|error| self.list_error(name, error))?;
        let Some(file) = file else { return Ok(None) };
        let mut text = Vec::new();
        let read = file.take(MOST_BYTES + 1).read_to_end(&mut text);
        read.map_err(|error| self.list_error(name, error.into()))?;
        let damaged = |reason: String| {
            let reason = reason.replace('\n', " ");
            ListError::Damaged { path: self.path(name), reason }
        };
        if text.len() as u64 > MOST_BYTES {
            return Err(damaged(format!("it has more than {MOST_BYTES} bytes")));
        }
        parse(&text).map(Some).map_err(|fault| damaged(fault.to_string()))
    }

    /// Replaces or creates the list of that name. Only root can read it.
    ///
    /// # Errors
    /// If it cannot be written, or others may change the folder; then the old one stays.
    pub fn write(&self, name: &Name, list: &List) -> Result<(), ListError> {
        let folder = Folder::make(&self.folder).map_err(|error| self.folder_error(error))?;
        let text = serde_json::to_vec(list).map_err(io::Error::from);
        let written = text.and_then(|text| folder.write(&name.0, &text));
        written.map_err(|error| self.list_error(name, error.into()))
    }

    /// Removes the list of that name. Returns whether there was one.
    ///
    /// # Errors
    /// If it cannot be removed, or others may change the folder.
    pub fn forget(&self, name: &Name) -> Result<bool, ListError> {
        let Some(folder) = self.look_up()? else { return Ok(false) };
        folder.remove(&name.0).map_err(|error| self.list_error(name, error.into()))
    }

    fn look_up(&self) -> Result<Option<Folder>, ListError> {
        Folder::open(&self.folder).map_err(|error| self.folder_error(error))
    }

    fn folder_error(&self, error: PrivateError) -> ListError {
        let path = self.folder.clone();
        match error {
            PrivateError::Foreign => ListError::ForeignFolder { path },
            PrivateError::ForeignWay(path) => ListError::ForeignFolder { path },
            PrivateError::Io(error) => ListError::Io { path, error },
        }
    }

    fn list_error(&self, name: &Name, error: PrivateError) -> ListError {
        let path = self.path(name);
        match error {
            PrivateError::Foreign => ListError::Foreign { path },
            PrivateError::ForeignWay(path) => ListError::ForeignFolder { path },
            PrivateError::Io(error) => ListError::Io { path, error },
        }
    }
}

/// A file system has not answered in time.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a file system does not answer within {} s", LOOKING.as_secs())]
pub struct Late;

/// Looking at files and file systems takes microseconds each, and for ever if a disk does not answer.
const LOOKING: Duration = Duration::from_secs(1);

impl List {
    /// The files that lie on these file systems, as the controller knows them.
    ///
    /// # Errors
    /// If a file system does not answer.
    pub fn on(&self, mounts: Vec<Mount>) -> Result<Vec<RememberedFile>, Late> {
        let known = within(LOOKING, move || identities(&mounts)).map_err(|_| Late)?;
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
        Ok(self.files.iter().filter_map(file).collect())
    }
}

/// The identity of each file system whose files can be opened by their inode. Leaves out those that say they are one
/// and the same: a user may mount a stick with a copy of another's identity, and what is not found there would be
/// forgotten.
fn identities(mounts: &[Mount]) -> HashMap<DeviceNumber, u64> {
    let local = mounts.iter().filter(|mount| encodes_inode_handles(&mount.fs_type));
    let identity = |mount: &Mount| {
        let root = File::options().read(true).open(&mount.mount_point).ok()?;
        // Another file system may be mounted over it.
        let is_it = DeviceNumber::from_stat(root.metadata().ok()?.dev()) == mount.dev;
        is_it.then_some((mount.dev, fstatvfs(&root).ok()?.f_fsid))
    };
    unambiguous(local.filter_map(identity).collect())
}

fn unambiguous(mut identities: HashMap<DeviceNumber, u64>) -> HashMap<DeviceNumber, u64> {
    let mut devices: HashMap<u64, u32> = HashMap::new();
    identities.values().for_each(|id| *devices.entry(*id).or_default() += 1);
    identities.retain(|_, id| devices[id] == 1);
    identities
}

/// What was noted of a start, before its files are looked at.
#[derive(Clone, Debug)]
pub struct Noted {
    /// What it has read.
    pub files: Vec<RememberedFile>,
    /// The file systems of these files.
    pub mounts: Vec<Mount>,
}

impl Noted {
    /// The list that replaces `before`. Looks at the files that this start has read, opens none of them, and leaves out
    /// those that are gone. Keeps what `before` says of file systems that are not mounted.
    ///
    /// # Errors
    /// If a file system does not answer.
    pub fn after(self, before: List) -> Result<List, Late> {
        within(LOOKING, move || self.look(&before)).map_err(|_| Late)
    }

    fn look(self, before: &List) -> List {
        let identities = identities(&self.mounts);
        let mounts: HashMap<DeviceNumber, &Mount> =
            self.mounts.iter().map(|mount| (mount.dev, mount)).collect();
        let listed: HashMap<(u64, u64, u32), &ListedFile> =
            before.files.iter().map(keyed).collect();
        let next = |noted: RememberedFile| {
            let RememberedFile { file, generation, version, ranges } = noted;
            let file_system = *identities.get(&file.dev)?;
            let before = listed.get(&(file_system, file.ino, generation)).copied();
            let found = match version {
                None => look_at(Known { file, generation }, mounts.get(&file.dev)?),
                Some(version) => Ok((version, before.and_then(|before| before.path.clone()))),
            };
            let (version, path) = match (found, before) {
                (Ok(found), _) => found,
                // Nothing is known of it now.
                (Err(error), Some(before)) if !is_gone(&error) => {
                    let ListedFile { bytes, changed_ns, .. } = *before;
                    (Version { bytes, changed_ns }, before.path.clone())
                }
                (Err(_), _) => return None,
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
        let mut files: Vec<ListedFile> = self.files.into_iter().filter_map(next).collect();
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

fn keyed(file: &ListedFile) -> ((u64, u64, u32), &ListedFile) {
    ((file.file_system, file.ino, file.generation), file)
}

fn look_at(known: Known, mount: &Mount) -> io::Result<(Version, Option<String>)> {
    let reached = known.reach(mount)?;
    let path = reached.path().and_then(|path| path.to_str().map(str::to_owned));
    let version = Version { bytes: reached.bytes, changed_ns: reached.changed_ns };
    Ok((version, path.filter(|path| path.len() <= LONGEST_PATH)))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    use proptest::prelude::*;

    use super::*;

    /// A valid list.
    const SAMPLE: &str = r#"{"format":1,"files":[{"file_system":1,"ino":2,"generation":3,"bytes":4,"changed_ns":-5,"path":"/x","ranges":[[0,4,0],[6,9,2]]}]}"#;

    proptest! {
        #[test]
        fn a_list_with_a_few_bytes_changed_is_read_or_refused(
            changes in prop::collection::vec((0..SAMPLE.len(), any::<u8>()), 0..4),
        ) {
            let mut bytes = SAMPLE.as_bytes().to_vec();
            changes.into_iter().for_each(|(at, byte)| bytes[at] = byte);
            read_any(&bytes);
        }

        #[test]
        fn noise_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            read_any(&bytes);
        }
    }

    fn name(text: &str) -> Name {
        text.parse().expect("a name")
    }

    #[test]
    fn of_file_systems_that_say_they_are_the_same_none_is_known() {
        let dev = |minor| DeviceNumber { major: 7, minor };
        let identities = HashMap::from([(dev(1), 70), (dev(2), 71), (dev(3), 70)]);
        assert_eq!(unambiguous(identities), HashMap::from([(dev(2), 71)]));
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
        let draft_like = name("browser.new-17");
        lists.write(&draft_like, &List { format: FORMAT, files: vec![] }).expect("written");
        lists.write(&name("browser"), &list(3)).expect("written");
        assert_eq!(lists.read(&editor).expect("it is ours"), Some(list(2)));
        assert_eq!(lists.names().expect("listed"), [name("browser"), draft_like, editor.clone()]);
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
        assert!(matches!(lists.read(&name("link")), Err(ListError::Foreign { .. })));
        assert!(matches!(lists.read(&name("folder")), Err(ListError::Foreign { .. })));
        fs::set_permissions(lists.path(&plain), fs::Permissions::from_mode(0o620)).expect("ours");
        assert!(matches!(lists.read(&plain), Err(ListError::Foreign { .. })));
        lists.write(&plain, &list(2)).expect("a new file");
        assert_eq!(lists.read(&plain).expect("it is ours"), Some(list(2)));
    }

    #[test]
    fn nothing_is_read_written_or_removed_in_a_folder_that_others_can_change() {
        let root = tempfile::tempdir().expect("a folder");
        let own = root.path().join("own");
        let lists = Lists::in_folder(&own);
        lists.write(&name("a"), &list(1)).expect("written");
        symlink(&own, root.path().join("link")).expect("linked");
        let linked = Lists::in_folder(&root.path().join("link"));
        let refuses = |lists: &Lists| {
            let said = [
                lists.read(&name("a")).expect_err("refused"),
                lists.write(&name("a"), &list(2)).expect_err("refused"),
                lists.forget(&name("a")).expect_err("refused"),
                lists.names().expect_err("refused"),
            ];
            for error in said {
                assert!(matches!(error, ListError::ForeignFolder { .. }), "{error}");
                assert_eq!(error.to_string().lines().count(), 1);
            }
        };
        refuses(&linked);
        fs::set_permissions(&own, fs::Permissions::from_mode(0o770)).expect("ours");
        refuses(&lists);
        fs::set_permissions(&own, fs::Permissions::from_mode(0o700)).expect("ours");
        assert_eq!(lists.read(&name("a")).expect("it is ours"), Some(list(1)));
        // Only root can give folders away.
        if chown(&own, Some(1234), None).is_ok() {
            refuses(&lists);
        }
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
            fs::write(lists.path(&name("x")), &text).expect("written");
            let said = lists.read(&name("x")).expect_err("it is none").to_string();
            assert!(said.contains(word) && said.starts_with("cannot read the list "), "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }

    /// A file that can be opened by its inode, and what is noted of a start that has come to it.
    fn came_to(file: &tempfile::NamedTempFile) -> Option<Noted> {
        let about = file.as_file().metadata().expect("there");
        let dev = DeviceNumber::from_stat(about.dev());
        let mount = linux::mounts::of_number(dev).expect("a table")?;
        let generation = linux::sys::generation(file.as_file()).ok()?;
        let file = FileKey { dev, ino: about.ino() };
        Known { file, generation }.reach(&mount).ok()?;
        let pages = Span { start: 0, end: 2 };
        let ranges = vec![RememberedRange { pages, starts_in_vain: 0 }];
        let files = vec![RememberedFile { file, generation, version: None, ranges }];
        Some(Noted { files, mounts: vec![mount] })
    }

    fn skipped() -> Option<Noted> {
        eprintln!("skipped: files cannot be opened by their inode here");
        None
    }

    #[test]
    fn a_file_that_the_command_itself_has_changed_is_listed_as_it_is_at_the_end() {
        let file = tempfile::NamedTempFile::new_in("/var/tmp").expect("a file");
        let Some(noted) = came_to(&file).or_else(skipped) else { return };
        let mut before = List::default();
        for bytes in [9000, 9001] {
            fs::write(&file, vec![1; bytes]).expect("written");
            before = noted.clone().after(before).expect("it answers");
            assert_eq!(before.files[0].bytes, bytes as u64);
            assert_eq!(before.files[0].path.as_deref(), file.path().to_str());
            let known = before.on(noted.mounts.clone()).expect("it answers");
            let changed_ns = before.files[0].changed_ns;
            let version = Version { bytes: bytes as u64, changed_ns };
            assert_eq!(known[0].version, Some(version));
        }
        drop(file);
        assert_eq!(noted.after(before).expect("it answers").files, []);
    }

    #[test]
    fn what_cannot_be_looked_at_now_is_listed_as_it_was() {
        let file = tempfile::NamedTempFile::new_in("/var/tmp").expect("a file");
        let Some(mut noted) = came_to(&file).or_else(skipped) else { return };
        // No handle has so large an inode number.
        noted.files[0].file.ino = 1 << 40;
        assert_eq!(noted.clone().after(List::default()).expect("it answers").files, []);
        let file_system = identities(&noted.mounts)[&noted.files[0].file.dev];
        let generation = noted.files[0].generation;
        let mut before = list(1 << 40);
        before.files[0] = ListedFile { file_system, generation, ..before.files[0].clone() };
        let next = noted.after(before.clone()).expect("it answers");
        assert_eq!((next.files[0].bytes, next.files[0].changed_ns), (50_000, -5));
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
