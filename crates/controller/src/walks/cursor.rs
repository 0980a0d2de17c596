//! A position in a tree, and which file comes next in a given traversal.

use super::directory::Directories;
use super::traversal::{Row, Traversal};
use crate::entries::EntryKind;
use crate::ids::FileKey;
use crate::listing::{DirectoryRef, EntryRef, Place};

/// A file in a listed directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) directory: FileKey,
    pub(super) entry: u32,
}

/// A position in one of the two rows of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) directory: FileKey,
    row: u8,
    place: u32,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A file; the cursor is behind it.
    File(Unit),
    /// A directory that is not listed; the cursor is before it.
    Unlisted(Place),
    /// The parent directory is not listed; the cursor is at the end of this one.
    Above(DirectoryRef),
    /// The walk ends here.
    End,
    /// The cursor has passed many entries without a file; call again.
    Far,
}

impl Next {
    /// The directory that must be listed before the walk can go on.
    pub(super) fn unlisted(self) -> Option<Place> {
        match self {
            Next::Unlisted(place) => Some(place),
            Next::Above(directory) => Some(Place::Known(directory)),
            Next::File(_) | Next::End | Next::Far => None,
        }
    }
}

/// Most entries that one call examines: a row may have no file for long.
const REACH: u32 = 4096;

impl Cursor {
    /// Behind a file or directory.
    pub(super) fn behind(
        unit: Unit,
        traversal: &Traversal,
        directories: &Directories,
    ) -> Option<Self> {
        let directory = directories.get(unit.directory)?;
        let kind = directory.entries.get(unit.entry as usize)?.kind;
        let row = traversal.row_of(kind == EntryKind::Directory);
        let (_, order) = traversal.row(row)?;
        let place = directory.place(order, unit.entry)? + 1;
        Some(Cursor { directory: unit.directory, row, place })
    }

    /// Behind a directory in the one above it.
    pub(super) fn behind_directory(
        directory: FileKey,
        traversal: &Traversal,
        directories: &Directories,
    ) -> Option<Self> {
        let above = directories.get(directory)?.parent?.key;
        let entry = directories.get(above)?.find(directory.ino)?;
        Cursor::behind(Unit { directory: above, entry }, traversal, directories)
    }

    /// At the first entry of a directory.
    pub(super) fn start_of(directory: FileKey) -> Self {
        Cursor { directory, row: 0, place: 0 }
    }

    /// How many entries of its row are before the cursor.
    pub(super) fn place(&self) -> u32 {
        self.place
    }

    /// Skips the entry after the cursor.
    pub(super) fn skip(&mut self) {
        self.place += 1;
    }

    /// The next file in the tree below `top`.
    pub(super) fn next(
        &mut self,
        traversal: &Traversal,
        top: FileKey,
        directories: &Directories,
    ) -> Next {
        for _ in 0..REACH {
            let Some(directory) = directories.get(self.directory) else { return Next::End };
            let Some((row, order)) = traversal.row(self.row) else {
                if let Some(stop) = self.climb(traversal, top, directories) {
                    return stop;
                }
                continue;
            };
            let Some(entry) = directory.at(order, self.place) else {
                (self.row, self.place) = (self.row + 1, 0);
                continue;
            };
            let about = directory.entries[entry as usize];
            match (about.kind, row) {
                (EntryKind::File, Row::Both | Row::Files) => {
                    self.place += 1;
                    return Next::File(Unit { directory: self.directory, entry });
                }
                (EntryKind::Directory, Row::Both | Row::Directories) => {
                    let key = FileKey { dev: self.directory.dev, ino: about.ino };
                    if directories.get(key).is_some() {
                        *self = Cursor::start_of(key);
                    } else if directories.has_failed(key) {
                        self.place += 1;
                    } else {
                        let at = EntryRef { listing: directory.listing, entry };
                        return Next::Unlisted(Place::Below(key, at));
                    }
                }
                _ => self.place += 1,
            }
        }
        Next::Far
    }

    /// Moves behind this directory in its parent, or returns why it cannot.
    fn climb(
        &mut self,
        traversal: &Traversal,
        top: FileKey,
        directories: &Directories,
    ) -> Option<Next> {
        let here = directories.get(self.directory).filter(|_| self.directory != top);
        let Some(above) = here.and_then(|directory| directory.parent) else {
            return Some(Next::End);
        };
        if directories.get(above.key).is_none() {
            let is_shut = directories.has_failed(above.key);
            return Some(if is_shut { Next::End } else { Next::Above(above) });
        }
        match Cursor::behind_directory(self.directory, traversal, directories) {
            Some(cursor) => *self = cursor,
            None => return Some(Next::End),
        }
        None
    }
}
