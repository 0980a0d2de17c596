//! Lists a directory with the rights of the reading process.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use controller::{Completed, DirectoryRef, Entry, EntryKind, Listing, Place};
use linux::acting_as::Rights;
use linux::mounts::Mount;
use linux::{directories, sys};
use readahead::{DeviceNumber, FileKey};
use rustix::fs::{AtFlags, FileType, statat};

use super::List;
use super::names::{Listings, Names};

/// Lists this many entries of a directory, which take 3 MiB.
const MOST_ENTRIES: usize = 1 << 16;

/// Lists the directory, and keeps the names in `listings`.
pub(in crate::execute) fn run(job: &List, mount: &Mount, listings: &Listings) -> Completed {
    let listing = list(job, mount, listings).ok().map(|(listing, names)| {
        listings.keep(job.ticket, names);
        listing
    });
    Completed::Listed { ticket: job.ticket, listing }
}

fn list(job: &List, mount: &Mount, listings: &Listings) -> io::Result<(Listing, Names)> {
    let rights = Rights::of(job.tgid)?;
    let (opened, generation) = open(job.place, mount, listings, &rights)?;
    let directory = DirectoryRef { key: job.place.key(), generation };
    let parent = directories::above(opened.as_fd(), directory.key, &rights)
        .map(|(key, generation)| DirectoryRef { key, generation });
    let (entries, names) = entries(opened, directory)?;
    Ok((Listing { directory, parent, entries }, names))
}

fn open(
    place: Place,
    mount: &Mount,
    listings: &Listings,
    rights: &Rights,
) -> io::Result<(OwnedFd, u32)> {
    match place {
        Place::Known(DirectoryRef { key, generation }) => {
            let opened = directories::open_known(key, generation, mount)?;
            Ok((directories::open_as(opened.as_fd(), rights)?, generation))
        }
        Place::Below(key, at) => {
            let names = listings.get(at.listing).ok_or(io::ErrorKind::NotFound)?;
            let (name, _) = names.get(at.entry).ok_or(io::ErrorKind::NotFound)?;
            let DirectoryRef { key: above, generation } = names.directory;
            let above = directories::open_known(above, generation, mount)?;
            let opened = directories::open_below(above.as_fd(), name, key, rights)?;
            let generation = sys::generation(&opened)?;
            Ok((opened, generation))
        }
    }
}

fn entries(opened: OwnedFd, directory: DirectoryRef) -> io::Result<(Vec<Entry>, Names)> {
    let (mut names, mut entries) = (Names::new(directory), Vec::new());
    let again = opened.try_clone()?;
    directories::for_each_entry(opened, |name, ino, kind| {
        names.push(name, ino);
        let kind = match kind {
            FileType::Unknown => stat_kind(&again, name, directory.key),
            known => known,
        };
        let kind = match kind {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            _ => EntryKind::Other,
        };
        entries.push(Entry { ino, name_rank: 0, suffix: suffix(name.to_bytes()), kind });
        entries.len() < MOST_ENTRIES
    })?;
    let mut by_name: Vec<u32> = (0..names.len() as u32).collect();
    by_name.sort_unstable_by_key(|entry| names.get(*entry).map(|(name, _)| name));
    for (rank, entry) in by_name.into_iter().enumerate() {
        entries[entry as usize].name_rank = rank as u32;
    }
    Ok((entries, names))
}

/// For file systems whose directory entries do not tell kinds. Ignores mount points of other file systems.
fn stat_kind(directory: &OwnedFd, name: &CStr, of: FileKey) -> FileType {
    let about = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok();
    let about = about.filter(|about| DeviceNumber::from_stat(about.st_dev) == of.dev);
    about.map_or(FileType::Unknown, |about| FileType::from_raw_mode(about.st_mode))
}

/// A hash of the name's suffix: 0 without a dot, 1 for hidden files.
fn suffix(name: &[u8]) -> u32 {
    match name.iter().rposition(|byte| *byte == b'.') {
        None => 0,
        Some(_) if name[0] == b'.' => 1,
        Some(dot) => {
            // FNV-1a, 32 bits.
            let mix = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
            name[dot + 1..].iter().fold(0x811c_9dc5, mix).max(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_the_same_ending_share_a_suffix() {
        assert_eq!(suffix(b"a.c"), suffix(b"b.x.c"));
        assert_ne!(suffix(b"a.c"), suffix(b"a.h"));
        assert_eq!(suffix(b"Makefile"), 0);
        assert_eq!(suffix(b".gitignore"), suffix(b".config.old"));
    }
}
