//! Lists a directory with the rights of the reading process.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use controller::{Completed, DirectoryRef, Entries, EntryKind, Listing, Place};
use linux::acting_as::Rights;
use linux::io_priority::take_priority_of;
use linux::mounts::Mount;
use linux::process::Process;
use linux::{directories, sys};
use readahead::{DeviceNumber, FileKey};
use rustix::fs::{AtFlags, FileType, statat};

use super::List;
use super::names::{Listings, Names};

/// Lists this many entries of a directory, which take 3 MiB.
const MOST_ENTRIES: usize = 1 << 16;

/// Lists the directory, and keeps the names in `listings`.
pub(in crate::execute) fn run(job: &List, mount: &Mount, listings: &Listings) -> Completed {
    take_priority_of(job.tgid);
    let listing = list(job, mount, listings).ok().map(|(listing, names)| {
        listings.keep(job.ticket, names);
        listing
    });
    Completed::Listed { ticket: job.ticket, listing }
}

fn list(job: &List, mount: &Mount, listings: &Listings) -> io::Result<(Listing, Names)> {
    let process = Process::open(job.tgid)?;
    let rights = Rights::of(&process)?;
    let (opened, generation) = open(job.place, mount, listings, &rights)?;
    let directory = DirectoryRef { key: job.place.key(), generation };
    let parent = directories::above(opened.as_fd(), directory.key, mount, &process, &rights)
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

fn entries(opened: OwnedFd, directory: DirectoryRef) -> io::Result<(Entries, Names)> {
    let (mut names, mut kinds) = (Names::new(directory), Vec::new());
    let again = opened.try_clone()?;
    directories::for_each_entry(opened, |name, ino, kind| {
        names.push(name, ino);
        let kind = match kind {
            FileType::Unknown => stat_kind(&again, name, directory.key),
            known => known,
        };
        kinds.push(match kind {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            _ => EntryKind::Other,
        });
        kinds.len() < MOST_ENTRIES
    })?;
    let entry = |(at, kind)| names.get(at).map(|(name, ino)| (name.to_bytes(), ino, kind));
    let entries = Entries::named((0..).zip(kinds).filter_map(entry));
    Ok((entries, names))
}

/// For file systems whose directory entries do not tell kinds. Ignores mount points of other file systems.
fn stat_kind(directory: &OwnedFd, name: &CStr, of: FileKey) -> FileType {
    let about = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok();
    let about = about.filter(|about| DeviceNumber::from_stat(about.st_dev) == of.dev);
    about.map_or(FileType::Unknown, |about| FileType::from_raw_mode(about.st_mode))
}
