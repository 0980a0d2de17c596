//! Where a file's data are, as ext2 keeps it: in blocks of pointers between the data.
//!
//! ```text
//!   | 12 pages |m| 1024 pages ......... |m| 1024 pages ......... |m| ...     m: the map of what follows
//!
//!   window of read-ahead:          [ read now |m| read when m has arrived ]
//! ```
//!
//! A map is read when the first window reaches beyond it. It continues what was queued before it, so that an elevator
//! may merge both. What lies behind it can be queued only when the map has arrived. By then the device has gone on to
//! others' requests.

use std::collections::{BTreeMap, BTreeSet};

use readahead::{Nanos, PAGE_BYTES, Page};

use crate::block::{NO_WAITER, Transfer};
use crate::machine::Machine;

/// Pages that the inode itself points to.
const DIRECT_PAGES: Page = 12;

/// Pages that a block of 4 KiB points to.
const MAPPED_PAGES: Page = 1024;

/// The file of transfers that read a map.
pub(crate) const MAP: u32 = u32::MAX;

/// The maps of the files that have some.
#[derive(Debug, Default)]
pub(crate) struct Maps {
    /// By file: the first pages of the parts whose map is in memory.
    known: BTreeMap<u32, BTreeSet<Page>>,
    /// Maps on their way.
    under_way: Vec<Reading>,
}

/// A map on its way, and what waits for it.
#[derive(Debug)]
struct Reading {
    transfer: u32,
    file: u32,
    part: Page,
    held: Vec<Held>,
}

/// A transfer that cannot be queued yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    id: u32,
    offset: u64,
    process: u32,
}

/// First page of the part that a page belongs to; `None` if the inode points to it.
fn part_of(page: Page) -> Option<Page> {
    let beyond = page.checked_sub(DIRECT_PAGES)?;
    Some(DIRECT_PAGES + beyond / MAPPED_PAGES * MAPPED_PAGES)
}

impl Maps {
    /// Pages from `start` on, of `pages`, that belong to the same part of the file; all of them if it has no maps.
    fn within_part(&self, file: u32, start: Page, pages: u64) -> u64 {
        if !self.known.contains_key(&file) {
            return pages;
        }
        let end = part_of(start).map_or(DIRECT_PAGES, |part| part + MAPPED_PAGES);
        pages.min(end - start)
    }

    /// The part of a page, if its map is not in memory.
    fn missing(&self, file: u32, page: Page) -> Option<Page> {
        let known = self.known.get(&file)?;
        part_of(page).filter(|part| !known.contains(part))
    }
}

impl Machine {
    /// The places of a file's data are in blocks between them, as ext2 keeps them, which have to be read, too.
    pub fn map_by_blocks(&mut self, file: crate::FileIndex) {
        self.maps.known.insert(file.0, BTreeSet::new());
    }

    /// Queues a read of consecutive pages, or holds what lies behind a map that is not in memory.
    pub(crate) fn queue_mapped(&mut self, now: Nanos, file: u32, start: Page, pages: u64, by: u32) {
        let mut page = start;
        while page < start + pages {
            let here = self.maps.within_part(file, page, start + pages - page);
            match self.maps.missing(file, page) {
                None => self.queue_read(now, file, page, here, by),
                Some(part) => self.hold(now, file, part, (page, here), by),
            }
            page += here;
        }
    }

    fn hold(&mut self, now: Nanos, file: u32, part: Page, (start, pages): (Page, u64), by: u32) {
        let place = self.cache.file(file).offset;
        let is_its = |reading: &Reading| (reading.file, reading.part) == (file, part);
        let index = self.maps.under_way.iter().position(is_its).unwrap_or_else(|| {
            let map = Transfer {
                file: MAP,
                start: 0,
                pages: 1,
                is_write: false,
                started: None,
                waiters: NO_WAITER,
            };
            let transfer = self.block.add(now, map, place + part * PAGE_BYTES, by, true);
            self.maps.under_way.push(Reading { transfer, file, part, held: Vec::new() });
            self.maps.under_way.len() - 1
        });
        let (id, offset) = self.start_read(now, file, start, pages, by);
        self.maps.under_way[index].held.push(Held { id, offset, process: by });
    }

    /// A map has arrived: queues what waited for it.
    pub(crate) fn map_arrived(&mut self, now: Nanos, transfer: u32) {
        let is_its = |reading: &Reading| reading.transfer == transfer;
        let Some(index) = self.maps.under_way.iter().position(is_its) else { return };
        let Reading { file, part, held, .. } = self.maps.under_way.swap_remove(index);
        self.maps.known.entry(file).or_default().insert(part);
        for Held { id, offset, process } in held {
            self.block.queue(now, id, offset, process, true);
        }
        self.block.dispatch(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 8 << 20;

    /// A machine that reads a file from front to back over a network of 5 ms, and its time in nanoseconds.
    fn read_all(is_mapped: bool) -> (Machine, Nanos) {
        let text = include_str!("replay/machine.toml").replace("hdd", "net");
        let spec: crate::MachineSpec = toml::from_str(&text).expect("a machine");
        let mut machine = spec.build("linux-2.5").expect("it can be built");
        let file = machine.add_file(BYTES);
        if is_mapped {
            machine.map_by_blocks(file);
        }
        let open = machine.open(file);
        let reader = machine.spawn(0, crate::scripts::Sequential::new(open, BYTES, 8 << 10, 0));
        machine.run();
        assert_eq!(machine.resident_pages(file), BYTES / PAGE_BYTES, "all is read");
        let ended = machine.outcome(reader).ended;
        (machine, ended)
    }

    #[test]
    fn every_map_is_read_once_and_holds_up_the_reader() {
        let [(bare, at_once), (mapped, later)] = [false, true].map(read_all);
        let bytes = |machine: &Machine| machine.device_counters().bytes;
        let maps = (BYTES / PAGE_BYTES - DIRECT_PAGES).div_ceil(MAPPED_PAGES);
        assert_eq!(bytes(&mapped) - bytes(&bare), maps * PAGE_BYTES);
        assert!(later > at_once, "{later} {at_once}");
    }

    #[test]
    fn the_inode_points_to_twelve_pages_and_each_map_to_1024() {
        assert_eq!(part_of(0), None);
        assert_eq!(part_of(11), None);
        assert_eq!(part_of(12), Some(12));
        assert_eq!(part_of(1035), Some(12));
        assert_eq!(part_of(1036), Some(1036));
    }
}
