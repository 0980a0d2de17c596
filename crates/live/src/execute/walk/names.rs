//! Keeps the names of listings: the controller knows entries by number only.

use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use controller::DirectoryRef;
use controller::ids::Ticket;

/// The names in one directory, in the order of its listing.
pub(super) struct Names {
    pub(super) directory: DirectoryRef,
    /// All names, each with its NUL.
    bytes: Vec<u8>,
    /// Where each name starts in `bytes`.
    starts: Vec<u32>,
    inos: Vec<u64>,
}

impl Names {
    pub(super) fn new(directory: DirectoryRef) -> Self {
        Names { directory, bytes: Vec::new(), starts: Vec::new(), inos: Vec::new() }
    }

    pub(super) fn push(&mut self, name: &CStr, ino: u64) {
        self.starts.push(self.bytes.len() as u32);
        self.bytes.extend_from_slice(name.to_bytes_with_nul());
        self.inos.push(ino);
    }

    /// Name and inode number of an entry.
    pub(super) fn get(&self, entry: u32) -> Option<(&CStr, u64)> {
        let start = *self.starts.get(entry as usize)? as usize;
        let name = CStr::from_bytes_until_nul(&self.bytes[start..]).ok()?;
        Some((name, self.inos[entry as usize]))
    }
}

/// The listings that the controller still uses, shared by the threads of all lanes.
#[derive(Default)]
pub(in crate::execute) struct Listings {
    all: Mutex<HashMap<Ticket, Arc<Names>>>,
}

impl Listings {
    fn lock(&self) -> MutexGuard<'_, HashMap<Ticket, Arc<Names>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn keep(&self, listing: Ticket, names: Names) {
        self.lock().insert(listing, Arc::new(names));
    }

    pub(super) fn get(&self, listing: Ticket) -> Option<Arc<Names>> {
        self.lock().get(&listing).cloned()
    }

    pub(in crate::execute) fn forget(&self, listing: Ticket) {
        self.lock().remove(&listing);
    }
}
