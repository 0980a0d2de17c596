//! What the memory cgroups of readers leave to each of their streams.
//!
//! ```text
//!   process --> memory cgroup --> room, pressure       looked up again after a second
//!                     |
//!                     +--> files read in it of late: a share of the room is divided among them
//! ```

use std::collections::HashMap;

use linux::cgroup::Place;
use readahead::{FileKey, PAGE_BYTES};

use super::brake;

use crate::observe::Event;

/// Of what a reader's cgroup may hold, pages that bowwave reads ahead for all its streams together take
/// no more than one part in so many: the rest is what the readers work with.
const LIMIT_SHARE: u64 = 4;

/// And those that the kernel itself reads ahead: the other half of memory is what was read and is not
/// yet forgotten, and room for streams that have just begun.
const KERNEL_SHARE: u64 = 4;

/// A stream has two windows out at times: the one it reads and the next.
const WINDOWS_OUT: u64 = 2;

/// However small the share, the kernel's own default window is no more than it reads anyway.
const LEAST_BYTES: u64 = 128 << 10;

/// The kernel's smallest window worth a request: 16 KiB.
const LEAST_KERNEL_PAGES: u64 = 4;

/// Limits and pressure are looked up again, and streams counted, after this long.
const FRESH_NS: u64 = 1_000_000_000;

/// A file not heard of for so long is not being read, unless it was heard of as seldom before.
const IDLE_NS: u64 = 10_000_000_000;

/// A stream comes again after as long as the last time, or twice that while its windows grow.
const PATIENCE: u64 = 3;

/// What the memory of its cgroup leaves to one reader.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Allowance {
    /// Most bytes of one window.
    pub(super) window_bytes: u64,
    /// Most pages of the kernel's own windows, where there is a limit.
    pub(super) kernel_pages: Option<u32>,
    /// Share of any budget that memory pressure leaves.
    pub(super) left: f64,
}

impl Default for Allowance {
    /// No limit, no pressure.
    fn default() -> Self {
        Allowance { window_bytes: u64::MAX, kernel_pages: None, left: 1.0 }
    }
}

/// When a file was heard of, and how long it had not been when others were heard of in between. A file
/// that is read by itself to its end has no such pause: files read one after another are one stream.
#[derive(Clone, Copy, Debug)]
struct Visit {
    at: u64,
    pause: Option<u64>,
}

#[derive(Debug)]
struct Cgroup {
    /// Most bytes of files that it may hold, if it is limited.
    room: Option<u64>,
    left: f64,
    looked_at: u64,
    streams: u64,
    latest: Option<FileKey>,
    files: HashMap<FileKey, Visit>,
}

/// The cgroups of all readers heard of lately.
#[derive(Debug, Default)]
pub(super) struct Readers {
    places: HashMap<u32, (Place, u64)>,
    cgroups: HashMap<Place, Cgroup>,
}

impl Readers {
    /// What the reader of `event` may have.
    pub(super) fn allowance(&mut self, event: &Event) -> Allowance {
        let now = event.now;
        let looked_up = || (Place::of(&event.tgid.to_string()), now);
        let (place, at) = self.places.entry(event.tgid).or_insert_with(looked_up);
        if now.saturating_sub(*at) > FRESH_NS {
            (*place, *at) = looked_up();
        }
        if !self.cgroups.contains_key(place) {
            self.cgroups.insert(place.clone(), Cgroup::default());
        }
        let cgroup = self.cgroups.get_mut(place).expect("it is there");
        if cgroup.latest.is_none() || now.saturating_sub(cgroup.looked_at) > FRESH_NS {
            cgroup.look(place, now);
        }
        cgroup.hear(event.file, now);
        cgroup.allowance()
    }

    /// Forgets who has not read of late.
    pub(super) fn forget_idle(&mut self, now: u64) {
        self.places.retain(|_, (_, at)| now.saturating_sub(*at) <= IDLE_NS);
        for cgroup in self.cgroups.values_mut() {
            cgroup
                .files
                .retain(|_, visit| now.saturating_sub(visit.at) <= IDLE_NS || visit.is_stream(now));
        }
        self.cgroups.retain(|_, cgroup| !cgroup.files.is_empty());
    }
}

impl Visit {
    fn is_stream(&self, now: u64) -> bool {
        self.pause.is_some_and(|pause| now.saturating_sub(self.at) <= PATIENCE * pause)
    }
}

impl Default for Cgroup {
    fn default() -> Self {
        let files = HashMap::new();
        Cgroup { room: None, left: 1.0, looked_at: 0, streams: 0, latest: None, files }
    }
}

impl Cgroup {
    fn look(&mut self, place: &Place, now: u64) {
        self.room = place.file_room();
        self.left = brake::share_left(&place.pressure_file());
        self.looked_at = now;
        self.count(now);
    }

    fn count(&mut self, now: u64) {
        self.streams = self.files.values().filter(|visit| visit.is_stream(now)).count() as u64;
    }

    fn hear(&mut self, file: FileKey, now: u64) {
        let visit = self.files.entry(file).or_insert(Visit { at: now, pause: None });
        if self.latest != Some(file) && now > visit.at {
            visit.pause = Some(now - visit.at);
        }
        visit.at = now;
        self.latest = Some(file);
    }

    fn allowance(&self) -> Allowance {
        let streams = self.streams.max(1);
        let window_bytes = self
            .room
            .map_or(u64::MAX, |room| (room / LIMIT_SHARE / WINDOWS_OUT / streams).max(LEAST_BYTES));
        let kernel_pages = self.room.map(|room| {
            let pages = room / KERNEL_SHARE / WINDOWS_OUT / streams / PAGE_BYTES;
            // A power of two, so that it seldom changes.
            let pages = pages.max(LEAST_KERNEL_PAGES).ilog2().min(31);
            1 << pages
        });
        Allowance { window_bytes, kernel_pages, left: self.left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use readahead::DeviceNumber;

    const SECOND: u64 = 1_000_000_000;

    fn file(ino: u64) -> FileKey {
        FileKey { dev: DeviceNumber { major: 7, minor: 0 }, ino }
    }

    fn limited(room: Option<u64>, streams: u64) -> Allowance {
        Cgroup { room, streams, ..Cgroup::default() }.allowance()
    }

    #[test]
    fn windows_of_all_streams_of_a_cgroup_fit_a_quarter_of_its_limit() {
        assert_eq!(limited(Some(64 << 20), 1).window_bytes, 8 << 20);
        assert_eq!(limited(Some(64 << 20), 16).window_bytes, 512 << 10);
        assert_eq!(limited(Some(64 << 20), 800).window_bytes, LEAST_BYTES);
        assert_eq!(limited(None, 3).window_bytes, u64::MAX);
    }

    #[test]
    fn the_kernels_own_windows_fit_a_quarter_of_it() {
        assert_eq!(limited(Some(64 << 20), 1).kernel_pages, Some(2048));
        assert_eq!(limited(Some(64 << 20), 64).kernel_pages, Some(32));
        assert_eq!(limited(Some(64 << 20), 65).kernel_pages, Some(16));
        assert_eq!(limited(Some(64 << 20), 800).kernel_pages, Some(4));
        assert_eq!(limited(Some(64 << 20), 100_000).kernel_pages, Some(4));
        assert_eq!(
            limited(Some(u64::MAX), 1).kernel_pages,
            Some(1 << 31),
            "as large as can be told"
        );
        assert_eq!(limited(None, 100_000).kernel_pages, None);
    }

    #[test]
    fn files_that_are_read_in_turn_are_streams_for_as_long_as_they_come_again() {
        let mut cgroup = Cgroup::default();
        for round in 0..2 {
            (0..10).for_each(|ino| cgroup.hear(file(ino), (round * 10 + ino) * SECOND));
        }
        cgroup.count(20 * SECOND);
        assert_eq!(cgroup.streams, 10);
        cgroup.count(60 * SECOND);
        assert_eq!(cgroup.streams, 0);
    }

    #[test]
    fn files_that_are_read_one_after_another_are_not() {
        let mut cgroup = Cgroup::default();
        for event in 0..1000 {
            cgroup.hear(file(event / 10), event * SECOND / 1000);
        }
        cgroup.count(SECOND);
        assert_eq!(cgroup.streams, 0);
    }

    #[test]
    fn who_does_not_read_any_more_is_forgotten() {
        let mut readers = Readers::default();
        let mut cgroup = Cgroup::default();
        cgroup.hear(file(1), 0);
        readers.cgroups.insert(Place::default(), cgroup);
        readers.places.insert(1, (Place::default(), 0));
        readers.forget_idle(IDLE_NS);
        assert_eq!(readers.cgroups.len(), 1);
        readers.forget_idle(IDLE_NS + 1);
        assert!(readers.cgroups.is_empty() && readers.places.is_empty());
    }
}
