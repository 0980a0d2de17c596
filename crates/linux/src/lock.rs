//! Locks a file for as long as a process works with it (`flock(2)`). The lock ends with the process, however that ends:
//! nobody works with a file that is free.
//!
//! Only root can open such a file: anybody who can open a file can lock it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Permissions of such a file.
pub(crate) const MODE: u32 = 0o600;

/// How often to wait for somebody who looks at a file.
const MOST_LOOKS: u32 = 1000;

/// Locks the file, until it is dropped. Creates it if there is none.
///
/// # Errors
/// `WouldBlock` if somebody works with it, or another error if it cannot be opened.
pub fn take(path: &Path) -> io::Result<File> {
    let mut looks = 0;
    loop {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(MODE);
        let file = options.open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) if looks < MOST_LOOKS && try_share(&file) => {
                looks += 1;
                std::thread::yield_now();
                continue;
            }
            Err(error) => return Err(error.into()),
        }
        // The previous holder may have removed or replaced it.
        if fs::metadata(path).is_ok_and(|now| file.metadata().is_ok_and(|f| f.ino() == now.ino())) {
            return Ok(file);
        }
    }
}

/// Whether somebody works with the file.
pub(crate) fn is_taken(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| !try_share(&file))
}

/// Shares the lock with others who look at the file. Returns `false` if somebody works with it.
fn try_share(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockShared).is_ok()
}

/// Locks a new file that nobody else knows of. The lock lasts until the returned file is dropped, too.
///
/// # Errors
/// If it cannot be locked.
pub(crate) fn take_new(file: &File) -> io::Result<File> {
    flock(file, FlockOperation::NonBlockingLockExclusive)?;
    file.try_clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_holder_at_a_time_and_is_roots_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        assert!(!is_taken(&path), "there is none");
        let held = take(&path).expect("it is free");
        assert_eq!(held.metadata().expect("it is open").mode() & 0o777, 0o600);
        let again = take(&path).map_err(|error| error.kind());
        assert_eq!(again.err(), Some(io::ErrorKind::WouldBlock));
        assert!(is_taken(&path));
        drop(held);
        assert!(!is_taken(&path));
        take(&path).expect("it is free again");
    }

    #[test]
    fn whoever_holds_a_file_holds_the_one_that_replaces_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let held = take(&path).expect("it is free");
        let old = File::open(&path).expect("it is there");
        let new = crate::whole::write_locked(&path, "new").expect("written");
        drop(held);
        assert!(try_share(&old), "nobody works with the old one");
        assert!(is_taken(&path));
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "new");
        assert_eq!(new.metadata().expect("it is open").mode() & 0o777, 0o600);
        drop(new);
        assert!(!is_taken(&path));
    }
}
