//! Listed directories: their entries in every order, and which files were requested.

use std::collections::BTreeMap;

use super::traversal::{Direction, Order, Sort};
use crate::Nanos;
use crate::ids::{DeviceNumber, FileKey, Ticket};
use crate::listing::{DirectoryRef, Entry, Listing};

/// Most entries of all listings together: 12 MiB.
const MOST_ENTRIES: usize = 1 << 18;

/// Most directories remembered, listed or not. A walker with read-ahead needs a few dozen.
const MOST_DIRECTORIES: usize = 4096;

/// Most levels of directories that are searched.
pub(super) const LEVELS: usize = 16;

/// The stream that requested a file, and the file's number in that stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// 0: none.
    pub(super) stream: u32,
    pub(super) number: u32,
}

/// A listed directory.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) of: DirectoryRef,
    pub(super) parent: Option<DirectoryRef>,
    pub(super) listing: Ticket,
    pub(super) entries: Vec<Entry>,
    /// Indices of entries by inode number.
    by_ino: Vec<u32>,
    /// Indices of entries by name.
    by_name: Vec<u32>,
    pub(super) asked: Vec<Asked>,
    /// Misses of files that no stream had requested.
    pub(super) misses: u32,
    /// All its files were requested, since it is read in random order.
    pub(super) is_swept: bool,
    pub(super) listed_at: Nanos,
    pub(super) used_at: Nanos,
}

impl Directory {
    fn new(now: Nanos, listing: Ticket, told: &Listing) -> Self {
        let count = told.entries.len();
        let mut by_ino: Vec<u32> = (0..count as u32).collect();
        by_ino.sort_unstable_by_key(|at| (told.entries[*at as usize].ino, *at));
        let mut by_name: Vec<u32> = (0..count as u32).collect();
        by_name.sort_unstable_by_key(|at| (told.entries[*at as usize].name_rank, *at));
        let mut entries = told.entries.clone();
        // Turn ranks into positions, whatever they were.
        for (rank, at) in by_name.iter().enumerate() {
            entries[*at as usize].name_rank = rank as u32;
        }
        Directory {
            of: told.directory,
            parent: told.parent,
            listing,
            entries,
            by_ino,
            by_name,
            asked: vec![Asked::default(); count],
            misses: 0,
            is_swept: false,
            listed_at: now,
            used_at: now,
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// The index of the first entry with that inode number.
    pub(super) fn find(&self, ino: u64) -> Option<u32> {
        let place = self.place_by_ino(ino)?;
        self.by_ino.get(place as usize).copied()
    }

    fn place_by_ino(&self, ino: u64) -> Option<u32> {
        let place = self.by_ino.partition_point(|at| self.entries[*at as usize].ino < ino);
        let found = self.by_ino.get(place).is_some_and(|at| self.entries[*at as usize].ino == ino);
        found.then_some(place as u32)
    }

    /// The position of an entry in an order.
    pub(super) fn place(&self, order: Order, entry: u32) -> Option<u32> {
        let about = self.entries.get(entry as usize)?;
        let place = match order.sort {
            Sort::Readdir => entry,
            Sort::Name => about.name_rank,
            Sort::Inode => self.place_by_ino(about.ino)?,
        };
        Some(self.turned(order.direction, place))
    }

    /// The entry at a position of an order.
    pub(super) fn at(&self, order: Order, place: u32) -> Option<u32> {
        if place >= self.len() {
            return None;
        }
        let place = self.turned(order.direction, place);
        match order.sort {
            Sort::Readdir => Some(place),
            Sort::Name => self.by_name.get(place as usize).copied(),
            Sort::Inode => self.by_ino.get(place as usize).copied(),
        }
    }

    fn turned(&self, direction: Direction, place: u32) -> u32 {
        match direction {
            Direction::Up => place,
            Direction::Down => self.len() - 1 - place,
        }
    }
}

/// What is known of a directory.
#[derive(Debug)]
enum Known {
    /// It is being listed since then.
    Pending(Nanos),
    /// It could not be listed at that time.
    Failed(Nanos),
    Listed(Box<Directory>),
}

/// All directories known.
#[derive(Debug, Default)]
pub(super) struct Directories {
    known: BTreeMap<FileKey, Known>,
    entries: usize,
}

impl Directories {
    pub(super) fn get(&self, key: FileKey) -> Option<&Directory> {
        match self.known.get(&key)? {
            Known::Listed(directory) => Some(directory),
            _ => None,
        }
    }

    pub(super) fn get_mut(&mut self, key: FileKey) -> Option<&mut Directory> {
        match self.known.get_mut(&key)? {
            Known::Listed(directory) => Some(directory),
            _ => None,
        }
    }

    /// The first directory on the way up that is not listed.
    pub(super) fn first_unlisted_above(&self, key: FileKey) -> Option<DirectoryRef> {
        let mut at = self.get(key)?;
        for _ in 0..LEVELS {
            let above = at.parent?;
            match self.known.get(&above.key) {
                None => return Some(above),
                Some(Known::Listed(directory)) => at = directory,
                Some(_) => return None,
            }
        }
        None
    }

    /// Whether it need not be listed: it is listed, will be, or cannot be.
    pub(super) fn is_known(&self, key: FileKey) -> bool {
        self.known.contains_key(&key)
    }

    /// Whether it cannot be listed.
    pub(super) fn has_failed(&self, key: FileKey) -> bool {
        matches!(self.known.get(&key), Some(Known::Failed(_)))
    }

    /// Whether one more can be kept.
    pub(super) fn has_room(&self) -> bool {
        self.known.len() < MOST_DIRECTORIES && self.entries < MOST_ENTRIES
    }

    /// It is being listed.
    pub(super) fn pend(&mut self, now: Nanos, key: FileKey) -> Option<Ticket> {
        let old = self.take(key);
        self.known.insert(key, Known::Pending(now));
        old
    }

    /// It could not be listed.
    pub(super) fn fail(&mut self, now: Nanos, key: FileKey) {
        if matches!(self.known.get(&key), Some(Known::Pending(_))) {
            self.known.insert(key, Known::Failed(now));
        }
    }

    /// It was listed. Returns the listing that this one replaces.
    pub(super) fn list(&mut self, now: Nanos, listing: Ticket, told: &Listing) -> Option<Ticket> {
        let old = self.take(told.directory.key);
        let directory = Directory::new(now, listing, told);
        self.entries += directory.entries.len();
        self.known.insert(told.directory.key, Known::Listed(Box::new(directory)));
        old
    }

    fn take(&mut self, key: FileKey) -> Option<Ticket> {
        match self.known.remove(&key)? {
            Known::Listed(directory) => {
                self.entries -= directory.entries.len();
                Some(directory.listing)
            }
            _ => None,
        }
    }

    /// Forgets directories that `keep` rejects, and passes each listing to `forget`.
    fn retain(&mut self, keep: impl Fn(&FileKey, &Known) -> bool, mut forget: impl FnMut(Ticket)) {
        let entries = &mut self.entries;
        self.known.retain(|key, known| {
            let stays = keep(key, known);
            if let Known::Listed(directory) = known
                && !stays
            {
                *entries -= directory.entries.len();
                forget(directory.listing);
            }
            stays
        });
    }

    /// Forgets directories not used since `moment`.
    pub(super) fn forget_before(&mut self, moment: Nanos, forget: impl FnMut(Ticket)) {
        let used_at = |known: &Known| match known {
            Known::Pending(at) | Known::Failed(at) => *at,
            Known::Listed(directory) => directory.used_at,
        };
        self.retain(|_, known| used_at(known) >= moment, forget);
    }

    /// A file system was unmounted.
    pub(super) fn forget_volume(&mut self, dev: DeviceNumber, forget: impl FnMut(Ticket)) {
        self.retain(|key, _| key.dev != dev, forget);
    }
}
