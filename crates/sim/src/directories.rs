//! Directories: which names they have, and what these stand for. They are always in memory.

use std::collections::HashMap;

use crate::machine::Machine;
use crate::process::FileIndex;

/// A directory of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DirectoryIndex(pub(crate) u32);

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// A file.
    File(FileIndex),
    /// A directory.
    Directory(DirectoryIndex),
}

#[derive(Debug, Default)]
struct Directory {
    parent: Option<DirectoryIndex>,
    /// In the order of `readdir(3)`.
    entries: Vec<(String, Named)>,
}

/// All directories of the machine.
#[derive(Debug, Default)]
pub(crate) struct Directories {
    all: Vec<Directory>,
    /// The directory of each file that has a name.
    of_files: HashMap<u32, DirectoryIndex>,
}

impl Directories {
    fn add(&mut self, parent: Option<DirectoryIndex>) -> DirectoryIndex {
        self.all.push(Directory { parent, entries: Vec::new() });
        DirectoryIndex((self.all.len() - 1) as u32)
    }

    fn name(&mut self, directory: DirectoryIndex, name: &str, named: Named) {
        self.all[directory.0 as usize].entries.push((name.to_owned(), named));
    }

    /// The directory that names a file.
    pub(crate) fn of_file(&self, file: u32) -> Option<DirectoryIndex> {
        self.of_files.get(&file).copied()
    }

    /// The directory above, if there is one.
    pub(crate) fn parent(&self, directory: DirectoryIndex) -> Option<DirectoryIndex> {
        self.all[directory.0 as usize].parent
    }

    /// The names of a directory in the order of `readdir(3)`.
    pub(crate) fn entries(&self, directory: DirectoryIndex) -> &[(String, Named)] {
        &self.all[directory.0 as usize].entries
    }
}

impl Machine {
    /// Adds an empty directory that has no name: the top of a tree.
    pub fn add_top(&mut self) -> DirectoryIndex {
        self.directories.add(None)
    }

    /// Adds an empty directory as the last entry of another one.
    pub fn add_directory(&mut self, parent: DirectoryIndex, name: &str) -> DirectoryIndex {
        let directory = self.directories.add(Some(parent));
        self.directories.name(parent, name, Named::Directory(directory));
        directory
    }

    /// Names a file, as the last entry of a directory. A file has one name at most.
    pub fn name_file(&mut self, directory: DirectoryIndex, name: &str, file: FileIndex) {
        self.directories.name(directory, name, Named::File(file));
        self.directories.of_files.insert(file.0, directory);
    }

    /// The names of a directory in the order of `readdir(3)`.
    pub fn entries(&self, directory: DirectoryIndex) -> &[(String, Named)] {
        self.directories.entries(directory)
    }
}
