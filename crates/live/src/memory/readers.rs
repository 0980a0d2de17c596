//! What the memory cgroups of readers leave to each of their streams.
//!
//! ```text
//!   process --> memory cgroup --> limit, pressure      looked up again after a second
//!                     |
//!                     +--> files read in it of late: the limit's share is divided among them
//! ```

use std::collections::HashMap;

use super::cgroup::Place;
use super::psi;
use crate::observe::{Event, FileKey};

/// Of what a reader's cgroup may hold, pages read ahead of all its streams together take no more than
/// one part in so many: the rest is what the readers work with.
const LIMIT_SHARE: u64 = 4;

/// A stream has two windows out at times: the one it reads and the next.
const WINDOWS_OUT: u64 = 2;

/// However small the share, the kernel's own default window is no more than it reads anyway.
const LEAST_BYTES: u64 = 128 << 10;

/// Limits and pressure are looked up again after this long.
const FRESH_NS: u64 = 1_000_000_000;

/// A file not heard of for so long is not being read.
const IDLE_NS: u64 = 10_000_000_000;

#[derive(Debug)]
struct Cgroup {
    limit: Option<u64>,
    /// Share of any budget that its memory pressure leaves.
    left: f64,
    looked_at: u64,
    files: HashMap<FileKey, u64>,
}

/// The cgroups of all readers heard of lately.
#[derive(Debug, Default)]
pub(super) struct Readers {
    places: HashMap<u32, (Place, u64)>,
    cgroups: HashMap<Place, Cgroup>,
}

impl Readers {
    /// Most bytes of one window for the reader of `event`, and the share of any budget that memory
    /// pressure leaves there.
    pub(super) fn allowance(&mut self, event: &Event) -> (u64, f64) {
        let now = event.now;
        let looked_up = || (Place::of(&event.tgid.to_string()), now);
        let (place, at) = self.places.entry(event.tgid).or_insert_with(looked_up);
        if now.saturating_sub(*at) > FRESH_NS {
            (*place, *at) = looked_up();
        }
        let cgroup = match self.cgroups.get_mut(place) {
            Some(cgroup) => cgroup,
            None => self.cgroups.entry(place.clone()).or_insert_with(|| Cgroup::at(place, now)),
        };
        if now.saturating_sub(cgroup.looked_at) > FRESH_NS {
            let files = std::mem::take(&mut cgroup.files);
            *cgroup = Cgroup { files, ..Cgroup::at(place, now) };
        }
        cgroup.files.insert(event.file, now);
        (cgroup.window_bytes(), cgroup.left)
    }

    /// Forgets who has not read of late.
    pub(super) fn forget_idle(&mut self, now: u64) {
        let since = now.saturating_sub(IDLE_NS);
        self.places.retain(|_, (_, at)| *at >= since);
        for cgroup in self.cgroups.values_mut() {
            cgroup.files.retain(|_, at| *at >= since);
        }
        self.cgroups.retain(|_, cgroup| !cgroup.files.is_empty());
    }
}

impl Cgroup {
    fn at(place: &Place, now: u64) -> Self {
        Cgroup {
            limit: place.limit(),
            left: psi::share_left(&place.pressure_file()),
            looked_at: now,
            files: HashMap::new(),
        }
    }

    fn window_bytes(&self) -> u64 {
        let streams = self.files.len().max(1) as u64;
        self.limit.map_or(u64::MAX, |limit| {
            (limit / LIMIT_SHARE / WINDOWS_OUT / streams).max(LEAST_BYTES)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::DeviceNumber;

    fn cgroup(limit: Option<u64>, files: u64) -> Cgroup {
        let dev = DeviceNumber { major: 7, minor: 0 };
        let files = (0..files).map(|ino| (FileKey { dev, ino }, 0)).collect();
        Cgroup { limit, left: 1.0, looked_at: 0, files }
    }

    #[test]
    fn windows_of_all_streams_of_a_cgroup_fit_a_quarter_of_its_limit() {
        assert_eq!(cgroup(Some(64 << 20), 1).window_bytes(), 8 << 20);
        assert_eq!(cgroup(Some(64 << 20), 16).window_bytes(), 512 << 10);
        assert_eq!(cgroup(Some(64 << 20), 800).window_bytes(), LEAST_BYTES);
        assert_eq!(cgroup(None, 3).window_bytes(), u64::MAX);
    }

    #[test]
    fn who_does_not_read_any_more_is_forgotten() {
        let mut readers = Readers::default();
        readers.cgroups.insert(Place::default(), cgroup(None, 2));
        readers.places.insert(1, (Place::default(), 0));
        readers.forget_idle(IDLE_NS);
        assert_eq!(readers.cgroups.len(), 1);
        readers.forget_idle(IDLE_NS + 1);
        assert!(readers.cgroups.is_empty() && readers.places.is_empty());
    }
}
