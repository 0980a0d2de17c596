//! Listed directories: how a walk goes through their entries, and which files were requested.

use super::cursor::Unit;
use super::traversal::{Direction, Order, Sort};
use crate::Nanos;
use crate::entries::Entries;
use crate::ids::{CgroupId, DeviceNumber, FileKey, Ticket};
use crate::listing::{DirectoryRef, EntryRef, Listing};
use crate::shared::Shared;

/// Room for the entries of all listings together: 12 MiB.
const ROOM: usize = 1 << 18;

/// A directory, listed or not, takes the room of so many entries besides its own. So at most 4096 are remembered, if all
/// are empty; a walker with read-ahead needs a few dozen.
const OF_EACH: usize = 64;

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
    pub(super) entries: Entries,
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
        Directory {
            of: told.directory,
            parent: told.parent,
            listing,
            entries: told.entries.clone(),
            asked: vec![Asked::default(); told.entries.len()],
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
        self.entries.by_ino(self.entries.place_by_ino(ino)?)
    }

    /// The position of an entry in an order.
    pub(super) fn place(&self, order: Order, entry: u32) -> Option<u32> {
        let about = self.entries.get(entry as usize)?;
        let place = match order.sort {
            Sort::Readdir => entry,
            Sort::Name => about.name_rank,
            Sort::Inode => self.entries.place_by_ino(about.ino)?,
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
            Sort::Name => self.entries.by_name(place),
            Sort::Inode => self.entries.by_ino(place),
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

impl Known {
    fn used_at(&self) -> Nanos {
        match self {
            Known::Pending(at) | Known::Failed(at) => *at,
            Known::Listed(directory) => directory.used_at,
        }
    }

    fn listing(&self) -> Option<Ticket> {
        match self {
            Known::Listed(directory) => Some(directory.listing),
            Known::Pending(_) | Known::Failed(_) => None,
        }
    }
}

/// All directories known. Each belongs to the group for which it was listed.
#[derive(Debug)]
pub(super) struct Directories {
    known: Shared<FileKey, Known>,
    /// How many listings have been answered.
    answers: u64,
}

impl Default for Directories {
    fn default() -> Self {
        Directories { known: Shared::with_room(ROOM), answers: 0 }
    }
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

    /// The entry of a file, as commands name it.
    pub(super) fn entry_of(&self, unit: Unit) -> Option<EntryRef> {
        let listing = self.get(unit.directory)?.listing;
        Some(EntryRef { listing, entry: unit.entry })
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

    /// Whether one more can be kept for that group.
    pub(super) fn has_room(&self, group: CgroupId) -> bool {
        self.known.who_makes_room(group, OF_EACH) != Err(None)
    }

    /// It is being listed for that group. Passes each listing that is forgotten for that to `forget`.
    pub(super) fn pend(
        &mut self,
        now: Nanos,
        group: CgroupId,
        key: FileKey,
        mut forget: impl FnMut(Ticket),
    ) {
        self.replace(group, OF_EACH, key, Known::Pending(now), &mut forget);
    }

    /// How many listings have been answered.
    pub(super) fn answers(&self) -> u64 {
        self.answers
    }

    /// It could not be listed.
    pub(super) fn fail(&mut self, now: Nanos, key: FileKey) {
        self.answers += 1;
        if let Some(known @ Known::Pending(_)) = self.known.get_mut(&key) {
            *known = Known::Failed(now);
        }
    }

    /// It was listed for that group. Passes each listing that is forgotten for that to `forget`: this one, if there is
    /// no room for it.
    pub(super) fn list(
        &mut self,
        now: Nanos,
        group: CgroupId,
        listing: Ticket,
        told: &Listing,
        mut forget: impl FnMut(Ticket),
    ) {
        self.answers += 1;
        let key = told.directory.key;
        let size = OF_EACH + told.entries.len();
        let directory = Known::Listed(Box::new(Directory::new(now, listing, told)));
        if !self.replace(group, size, key, directory, &mut forget) {
            forget(listing);
            self.replace(group, OF_EACH, key, Known::Failed(now), &mut forget);
        }
    }

    /// Returns `false` if there is no room.
    fn replace(
        &mut self,
        group: CgroupId,
        size: usize,
        key: FileKey,
        known: Known,
        forget: &mut impl FnMut(Ticket),
    ) -> bool {
        let mut gone = |known: Known| known.listing().into_iter().for_each(&mut *forget);
        self.known.remove(&key).into_iter().for_each(&mut gone);
        let age = |known: &Known| Some(known.used_at());
        let has_room = self.known.make_room(group, size, age, |_, known| gone(known));
        if has_room {
            self.known.insert(group, size, key, known);
        }
        has_room
    }

    /// Forgets directories that `keep` rejects, and passes each listing to `forget`.
    fn retain(&mut self, keep: impl Fn(&FileKey, &Known) -> bool, mut forget: impl FnMut(Ticket)) {
        self.known.retain(|key, known| {
            let stays = keep(key, known);
            known.listing().filter(|_| !stays).into_iter().for_each(&mut forget);
            stays
        });
    }

    /// Forgets directories not used since `moment`.
    pub(super) fn forget_before(&mut self, moment: Nanos, forget: impl FnMut(Ticket)) {
        self.retain(|_, known| known.used_at() >= moment, forget);
    }

    /// A file system was unmounted.
    pub(super) fn forget_volume(&mut self, dev: DeviceNumber, forget: impl FnMut(Ticket)) {
        self.retain(|key, _| key.dev != dev, forget);
    }
}
