//! Programs that read one file after another.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use controller::ids::{CgroupId, FileKey, OpenFile, Tgid, Ticket};
use controller::{
    Access, Command, Completed, DirectoryRef, DiskStats, Entries, EntryKind, EntryRef, FileMiss,
    Input, Kind, Listing, MemoryStats, Options, Place,
};
use proptest::prelude::*;
use readahead::{DeviceCost, PAGE_BYTES, Past};

use crate::support::{Bench, DEV, DISK, MS, SECOND, VOLUME, file, miss, reference};

pub(crate) const CGROUP: CgroupId = CgroupId(3);

/// Bytes of each file.
const FILE_BYTES: u64 = 3 * PAGE_BYTES;

/// A directory's files and directories by name, in the order of `readdir`.
#[derive(Clone, Debug, Default)]
struct Folder {
    parent: Option<u64>,
    entries: Vec<(String, u64, EntryKind)>,
}

/// A machine on which programs walk: directories, and which files are cached.
pub(crate) struct Forest {
    pub(crate) bench: Bench,
    /// Of the programs that read.
    pub(crate) cgroup: CgroupId,
    folders: BTreeMap<u64, Folder>,
    cached: BTreeSet<u64>,
    pub(crate) marked: BTreeSet<u64>,
    /// Files requested, in order.
    pub(crate) asked: Vec<u64>,
    listings: BTreeMap<Ticket, Vec<u64>>,
    listed: Vec<u64>,
    answers: VecDeque<Input>,
    /// Sizes of files that do not have [`FILE_BYTES`].
    pub(crate) sizes: BTreeMap<u64, u64>,
    /// At most this many files of a batch are read.
    batch_files: u64,
    /// No listing is ever answered.
    is_mute: bool,
    /// Listings are answered after the next read.
    is_late: bool,
    late: Vec<Input>,
    /// Files that programs had to wait for.
    pub(crate) waits: u32,
}

impl Forest {
    pub(crate) fn new(cost: DeviceCost) -> Self {
        Forest {
            bench: Bench::new(cost, Options::default()),
            cgroup: CGROUP,
            folders: BTreeMap::new(),
            cached: BTreeSet::new(),
            marked: BTreeSet::new(),
            asked: Vec::new(),
            listings: BTreeMap::new(),
            listed: Vec::new(),
            answers: VecDeque::new(),
            sizes: BTreeMap::new(),
            batch_files: u64::MAX,
            is_mute: false,
            is_late: false,
            late: Vec::new(),
            waits: 0,
        }
    }

    /// A directory of `files` files. Names, inodes and `readdir` have three different orders.
    pub(crate) fn folder(&mut self, ino: u64, parent: Option<u64>, files: u64) -> u64 {
        let entry = |n: u64| {
            (format!("{:05}.c", n * 61 % files), ino + 1 + n * 31 % files, EntryKind::File)
        };
        let entries = (0..files).map(entry).collect();
        if let Some(above) = parent.and_then(|above| self.folders.get_mut(&above)) {
            let at = above.entries.len() / 2;
            above.entries.insert(at, (format!("{ino:05}"), ino, EntryKind::Directory));
        }
        self.folders.insert(ino, Folder { parent, entries });
        ino
    }

    pub(crate) fn tell(&mut self, input: Input) {
        self.answers.push_back(input);
        while let Some(input) = self.answers.pop_front() {
            for command in self.bench.on(&input) {
                self.carry_out(command);
            }
        }
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            Command::List { ticket, place, .. } if !self.is_mute => {
                let listing = self.list(ticket, place);
                let answer = Input::Completed(Completed::Listed { ticket, listing });
                if self.is_late {
                    self.late.push(answer);
                } else {
                    self.answers.push_back(answer);
                }
            }
            Command::ReadFiles { ticket, files, head, most_bytes, .. } => {
                let (mut count, mut bytes) = (0, 0);
                for EntryRef { listing, entry } in files {
                    let ino = self.listings[&listing][entry as usize];
                    let more = head.pages_of(self.bytes(ino) / PAGE_BYTES) * PAGE_BYTES;
                    let is_full = u64::from(count) == self.batch_files || bytes + more > most_bytes;
                    if is_full && count > 0 {
                        break;
                    }
                    (count, bytes) = (count + 1, bytes + more);
                    if more > 0 && self.cached.insert(ino) {
                        self.asked.push(ino);
                    }
                }
                let answer = Completed::FilesRead { ticket, files: count, bytes };
                self.answers.push_back(Input::Completed(answer));
            }
            Command::Mark(file, _) => {
                self.marked.insert(file.ino);
            }
            Command::Listen(file, listening) if listening.marked_chunks == 0 => {
                self.marked.remove(&file.ino);
            }
            _ => {}
        }
    }

    fn list(&mut self, ticket: Ticket, place: Place) -> Option<Listing> {
        let ino = place.key().ino;
        self.listed.push(ino);
        let folder = self.folders.get(&ino)?;
        let entries = folder.entries.iter();
        let named = entries.map(|(name, ino, kind)| (name.as_bytes(), *ino, *kind));
        self.listings.insert(ticket, folder.entries.iter().map(|(_, ino, _)| *ino).collect());
        Some(Listing {
            directory: directory(ino),
            parent: folder.parent.map(directory),
            entries: Entries::named(named),
        })
    }

    fn bytes(&self, ino: u64) -> u64 {
        self.sizes.get(&ino).copied().unwrap_or(FILE_BYTES)
    }

    /// A program reads a file.
    fn read(&mut self, tgid: Tgid, folder: u64, ino: u64) {
        self.bench.now += MS;
        let late = std::mem::take(&mut self.late);
        let of = reference(ino, tgid);
        if self.cached.insert(ino) {
            self.waits += 1;
            self.bench.now += 5 * MS;
            let (file_bytes, request_pages) = (self.bytes(ino), 32);
            let (cgroup, directory) = (self.cgroup, directory(folder));
            let told = FileMiss { of, cgroup, directory, file_bytes, request_pages };
            self.tell(Input::FileMiss(told));
        } else if self.marked.remove(&ino) {
            let (file_bytes, mark) = (self.bytes(ino), Some((0, 0)));
            let marked = Access { kind: Kind::Mark, mark, ..miss(ino, 0) };
            let access = Access { cgroup: self.cgroup, of, file_bytes, ..marked };
            self.tell(Input::Access(access));
        }
        late.into_iter().for_each(|answer| self.tell(answer));
    }

    /// A program reads a file up to that page.
    fn read_on(&mut self, tgid: Tgid, ino: u64, page: u64) {
        let (of, file_bytes) = (reference(ino, tgid), self.bytes(ino));
        self.tell(Input::Access(Access { cgroup: self.cgroup, of, file_bytes, ..miss(ino, page) }));
    }

    /// Readers of the group reach pages that were read ahead for them and evicted.
    fn thrash(&mut self) {
        for round in 0..60 {
            self.bench.now += MS;
            let open_file = Some(OpenFile(100 + round));
            let come = miss(500_000 + round, 50_000);
            let come = Access { cgroup: CGROUP, open_file, past: Past::EvictedUnused, ..come };
            self.tell(Input::Access(come));
        }
    }

    pub(crate) fn read_all(&mut self, tgid: Tgid, files: impl IntoIterator<Item = (u64, u64)>) {
        files.into_iter().for_each(|(folder, ino)| self.read(tgid, folder, ino));
    }

    /// The files below a directory in the order of a walker that takes entries sorted.
    pub(crate) fn walk(&self, folder: u64, sort: Sort, files_first: bool) -> Vec<(u64, u64)> {
        let mut entries = self.folders[&folder].entries.clone();
        match sort {
            Sort::Readdir => {}
            Sort::Name => entries.sort_by(|one, other| one.0.cmp(&other.0)),
            Sort::Inode => entries.sort_by_key(|(_, ino, _)| *ino),
            Sort::Back => entries.reverse(),
        }
        if files_first {
            entries.sort_by_key(|(_, _, kind)| *kind == EntryKind::Directory);
        }
        let below = entries.into_iter().flat_map(|(_, ino, kind)| match kind {
            EntryKind::Directory => self.walk(ino, sort, files_first),
            _ => vec![(folder, ino)],
        });
        below.collect()
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Sort {
    Readdir,
    Name,
    Inode,
    Back,
}

const SORTS: [Sort; 4] = [Sort::Readdir, Sort::Name, Sort::Inode, Sort::Back];

fn directory(ino: u64) -> DirectoryRef {
    DirectoryRef { key: file(ino), generation: 0 }
}

#[test]
fn after_three_files_of_a_directory_the_others_are_cached_before_the_program_comes_in_any_order() {
    for cost in [VOLUME, DeviceCost::DISK] {
        for sort in SORTS {
            let mut forest = Forest::new(cost);
            let folder = forest.folder(1000, None, 500);
            forest.read_all(7, forest.walk(folder, sort, false));
            assert!(forest.waits <= 4, "{sort:?}: {} waits", forest.waits);
            assert_eq!(forest.cached.len(), 500);
        }
    }
}

#[test]
fn a_walk_earns_what_its_program_did_not_wait_and_one_that_stops_only_spends() {
    for cost in [VOLUME, DeviceCost::DISK] {
        let mut forest = Forest::new(cost);
        let folder = forest.folder(1000, None, 500);
        let files = forest.walk(folder, Sort::Readdir, false);
        forest.read_all(7, files.iter().copied().take(3));
        let metrics = forest.bench.controller.metrics();
        assert!(metrics.earned_s == 0.0 && metrics.spent_s > 0.0, "{metrics:?}");
        forest.read_all(7, files.into_iter().skip(3));
        let metrics = forest.bench.controller.metrics();
        let most = f64::from(500 - forest.waits) * cost.latency_s;
        assert!(metrics.earned_s <= most && metrics.earned_s > 0.7 * most, "{}", metrics.earned_s);
        assert!(metrics.spent_s < metrics.earned_s / 4.0, "{}", metrics.spent_s);
    }
}

#[test]
fn a_walk_leaves_a_disk_to_a_reader_that_waits_and_goes_on_when_that_has_ended() {
    let mut forest = Forest::new(DeviceCost::DISK);
    let folder = forest.folder(1000, None, 2000);
    let files = forest.walk(folder, Sort::Readdir, false);
    let mut foreground_reads = 0;
    let mut waits_of = |files: &[(u64, u64)], is_shared: bool| {
        let before = forest.waits;
        for (folder, ino) in files {
            foreground_reads += u64::from(is_shared);
            let stats = DiskStats {
                foreground_reads,
                foreground_ns: foreground_reads * 500 * MS,
                our_bytes_in_flight: 10 * FILE_BYTES,
                ..DiskStats::default()
            };
            forest.bench.now += 20 * MS;
            forest.tell(Input::DiskStats(DISK, stats));
            // As each miss is, this one is also reported as an access.
            let of = reference(*ino, 7);
            let access = Access { of, file_bytes: FILE_BYTES, cgroup: CGROUP, ..miss(*ino, 0) };
            forest.read(7, *folder, *ino);
            forest.tell(Input::Access(access));
        }
        forest.waits - before
    };
    assert!(waits_of(&files[..10], false) < 10, "nobody else reads");
    waits_of(&files[10..600], true);
    let shared = waits_of(&files[600..700], true);
    assert!(shared > 90, "{shared} files");
    waits_of(&files[700..1000], false);
    let alone = waits_of(&files[1000..1100], false);
    assert!(alone < 10, "{alone} files");
}

#[test]
fn a_walk_enters_the_next_directories_before_the_program_does() {
    for cost in [VOLUME, DeviceCost::DISK] {
        for (sort, files_first) in
            [(Sort::Readdir, false), (Sort::Name, true), (Sort::Inode, false)]
        {
            let mut forest = Forest::new(cost);
            let top = forest.folder(1_000, None, 5);
            for n in 1..40 {
                forest.folder(1_000 + n * 100, Some(top), 12);
            }
            let files = forest.walk(top, sort, files_first);
            let count = files.len();
            forest.read_all(7, files);
            assert!(forest.waits < 20, "{sort:?}: {} waits for {count} files", forest.waits);
        }
    }
}

#[test]
fn for_a_program_in_one_directory_few_files_of_others_are_read() {
    for cost in [VOLUME, DeviceCost::DISK] {
        for files_first in [false, true] {
            let mut forest = Forest::new(cost);
            let top = forest.folder(100_000, None, 200);
            for n in 1..40 {
                forest.folder(n * 1_000, Some(top), 50);
            }
            let files = forest.walk(top, Sort::Name, files_first);
            let (own, others): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| file.0 == top);
            forest.read_all(7, own);
            let in_vain = others.iter().filter(|(_, ino)| forest.asked.contains(ino)).count();
            assert!(in_vain <= 16, "{cost:?}: {in_vain} files of other directories");
            assert!(forest.waits <= 12, "{cost:?}: {} waits", forest.waits);
        }
    }
}

/// Makes a directory with `directories` subdirectories of `files` files each. Returns the subdirectories in another
/// order than that of the listing.
fn jumbled(forest: &mut Forest, directories: u64, files: u64) -> Vec<u64> {
    let top = forest.folder(100, None, 5);
    let folders: Vec<u64> =
        (1..=directories).map(|n| forest.folder(n * 1_000, Some(top), files)).collect();
    (0..folders.len()).map(|n| folders[n * 37 % folders.len()]).collect()
}

#[test]
fn a_program_that_goes_on_in_any_directory_waits_for_its_first_file_there() {
    for cost in [VOLUME, DeviceCost::DISK] {
        for sort in SORTS {
            let mut forest = Forest::new(cost);
            for folder in jumbled(&mut forest, 40, 30) {
                forest.read_all(7, forest.walk(folder, sort, false));
            }
            assert!(forest.waits <= 40 + 10, "{cost:?} {sort:?}: {} waits", forest.waits);
        }
    }
}

/// A program reads the first `count` files of each of 80 directories. Returns the files read in vain and the waits.
fn first_of_each(cost: DeviceCost, sort: Sort, count: usize) -> (usize, u32) {
    let mut forest = Forest::new(cost);
    for folder in jumbled(&mut forest, 80, 50) {
        forest.read_all(7, forest.walk(folder, sort, false).into_iter().take(count));
    }
    (forest.cached.len() - 80 * count, forest.waits)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(16) })]

    #[test]
    fn how_many_files_of_each_directory_a_program_reads_is_learned(
        is_disk in any::<bool>(), sort in prop::sample::select(SORTS.to_vec()), count in 1..20usize,
    ) {
        let cost = if is_disk { DeviceCost::DISK } else { VOLUME };
        let (in_vain, waits) = first_of_each(cost, sort, count);
        prop_assert!(in_vain <= 2 * 80, "{in_vain} files in vain in 80 directories");
        prop_assert!(waits <= 80 * count.min(2) as u32, "{waits} waits in 80 directories");
    }
}

#[test]
fn two_programs_in_two_trees_have_a_stream_each_and_so_has_one_that_alternates() {
    let mut forest = Forest::new(VOLUME);
    let (one, other) = (forest.folder(1_000, None, 300), forest.folder(2_000, None, 300));
    let files = forest.walk(one, Sort::Name, false);
    let others = forest.walk(other, Sort::Name, false);
    for (a, b) in files.iter().zip(&others) {
        forest.read(7, a.0, a.1);
        forest.read(7, b.0, b.1);
    }
    assert!(forest.waits <= 10, "{} waits", forest.waits);
}

#[test]
fn two_trees_that_are_read_in_turn_have_a_stream_each_while_their_directories_are_listed() {
    for cost in [DeviceCost { concurrency: 15.0, ..VOLUME }, VOLUME, DeviceCost::DISK] {
        let mut forest = Forest::new(cost);
        let top = forest.folder(10, None, 0);
        let trees = [10_000, 20_000].map(|tree| {
            let tree = forest.folder(tree, Some(top), 0);
            for n in 1..=30 {
                forest.folder(tree + n * 100, Some(tree), 50);
            }
            forest.walk(tree, Sort::Name, false)
        });
        for (at, (one, other)) in trees[0].iter().zip(&trees[1]).enumerate() {
            forest.is_late = at > 2;
            forest.read(7, one.0, one.1);
            forest.read(7, other.0, other.1);
        }
        assert!(forest.waits < 30, "{} waits for 3000 files", forest.waits);
    }
}

#[test]
fn a_program_that_stops_after_three_files_costs_little() {
    for cost in [VOLUME, DeviceCost::DISK] {
        let mut forest = Forest::new(cost);
        let folder = forest.folder(1000, None, 5000);
        let files = forest.walk(folder, Sort::Readdir, false);
        forest.read_all(7, files.into_iter().take(3));
        forest.bench.now += 20 * SECOND;
        forest.tell(Input::Tick);
        assert!(forest.asked.len() as u64 * FILE_BYTES <= 256 << 10, "{}", forest.asked.len());
        assert!(forest.marked.is_empty(), "marks are taken back");
    }
}

#[test]
fn a_program_that_stops_before_larger_files_costs_little() {
    for cost in [VOLUME, DeviceCost::DISK] {
        let mut forest = Forest::new(cost);
        let folder = forest.folder(1000, None, 500);
        let files = forest.walk(folder, Sort::Readdir, false);
        let size = |place| if place < 3 { PAGE_BYTES } else { 32 * PAGE_BYTES };
        forest.sizes =
            files.iter().enumerate().map(|(place, file)| (file.1, size(place))).collect();
        forest.read_all(7, files.into_iter().take(3));
        let bytes: u64 = forest.asked.iter().map(|ino| forest.bytes(*ino)).sum();
        assert!(bytes <= 4 * 32 * PAGE_BYTES, "{bytes} bytes read in vain");
    }
}

#[test]
fn a_disk_reads_no_part_of_a_file_that_the_program_will_read_on() {
    for (cost, reads_parts) in [(VOLUME, true), (DeviceCost::DISK, false)] {
        let mut forest = Forest::new(cost);
        let folder = forest.folder(1000, None, 40);
        let files = forest.walk(folder, Sort::Name, false);
        let is_long = |ino: u64| ino.is_multiple_of(2);
        let long = files.iter().filter(|(_, ino)| is_long(*ino));
        forest.sizes = long.map(|(_, ino)| (*ino, 800 * PAGE_BYTES)).collect();
        assert!((10..30).contains(&forest.sizes.len()));
        for (folder, ino) in files {
            forest.read(7, folder, ino);
            if is_long(ino) {
                forest.read_on(7, ino, 700);
            }
        }
        assert!(forest.asked.iter().any(|ino| !is_long(*ino)), "files that fit are read ahead");
        assert_eq!(forest.asked.iter().any(|ino| is_long(*ino)), reads_parts);
    }
}

#[test]
fn what_is_ahead_fits_an_eighth_of_the_memory_that_a_group_may_use() {
    let most_ahead = |file_bytes, stalled_percent| {
        let mut forest = Forest::new(VOLUME);
        let cgroup = CGROUP;
        let told = MemoryStats::Cgroup { cgroup, file_bytes, stalled_percent };
        forest.tell(Input::MemoryStats(told));
        let folder = forest.folder(1000, None, 2000);
        let (mut most, mut read) = (0, 0);
        for (folder, ino) in forest.walk(folder, Sort::Name, false) {
            forest.read(7, folder, ino);
            read += 1;
            most = most.max(forest.cached.len() - read);
        }
        most as u64 * FILE_BYTES
    };
    let unlimited = most_ahead(None, 0.0);
    let limited = most_ahead(Some(4 << 20), 0.0);
    // How many of the files were used is known only from mark to mark.
    let unmarked = BETWEEN_MARKS as u64 * FILE_BYTES;
    assert!(limited <= (512 << 10) + unmarked, "{limited}");
    assert!(unlimited > 2 * limited, "{unlimited} {limited}");
}

#[test]
fn a_group_that_thrashes_has_nothing_read_ahead_of_its_walks() {
    let mut forest = Forest::new(VOLUME);
    forest.thrash();
    let folder = forest.folder(1000, None, 500);
    forest.read_all(7, forest.walk(folder, Sort::Name, false).into_iter().take(50));
    assert!(forest.asked.is_empty() && forest.listed.is_empty(), "{:?}", forest.asked);
}

#[test]
fn kinds_of_files_that_the_program_passes_over_are_left_out() {
    let mut forest = Forest::new(VOLUME);
    let folder = forest.folder(1000, None, 600);
    let names = &mut forest.folders.get_mut(&folder).expect("made").entries;
    for (at, (name, ..)) in names.iter_mut().enumerate() {
        *name = format!("{at:05}.{}", ["c", "log"][at % 2]);
    }
    let files = forest.walk(folder, Sort::Name, false);
    let wanted: Vec<_> = files.into_iter().step_by(2).collect();
    forest.read_all(7, wanted);
    assert!(forest.waits <= 8, "{} waits", forest.waits);
    assert!(forest.asked.len() < 340, "{} files read for 300", forest.asked.len());
}

#[test]
fn a_directory_in_random_order_is_read_whole_once_its_misses_have_cost_as_much() {
    let mut forest = Forest::new(VOLUME);
    let folder = forest.folder(1000, None, 400);
    let files = forest.walk(folder, Sort::Readdir, false);
    let shuffled = (0..400).map(|n: usize| files[(n * 173 % 400) ^ (n * 37 % 2)]);
    forest.read_all(7, shuffled);
    assert!(forest.waits < 60, "{} waits", forest.waits);
}

#[test]
fn small_directories_in_random_order_are_read_whole_after_a_few_misses_each() {
    let mut forest = Forest::new(VOLUME);
    let files: Vec<_> = (1..=50)
        .flat_map(|n| {
            let folder = forest.folder(n * 1000, None, 50);
            forest.walk(folder, Sort::Readdir, false)
        })
        .collect();
    forest.read_all(7, (0..2500).map(|n: usize| files[n * 1543 % 2500]));
    assert!(forest.waits < 650, "{} waits for 2500 files", forest.waits);
}

#[test]
fn after_much_useless_reading_a_program_is_served_again_once_it_reads_in_order() {
    let mut forest = Forest::new(VOLUME);
    let folder = forest.folder(1000, None, 5000);
    let files = forest.walk(folder, Sort::Name, false);
    for n in 0..40 {
        forest.read_all(7, files.iter().skip(n * 73 % 40 * 100).take(4).copied());
    }
    let waits = forest.waits;
    forest.read_all(7, files.into_iter().skip(4200));
    assert!(forest.waits - waits < 160, "{} waits for 800 files", forest.waits - waits);
}

#[test]
fn files_that_did_not_fit_into_a_batch_are_requested_again() {
    for cost in [VOLUME, DeviceCost::DISK] {
        let mut forest = Forest::new(cost);
        forest.batch_files = 3;
        let folder = forest.folder(1000, None, 500);
        forest.read_all(7, forest.walk(folder, Sort::Readdir, false));
        assert!(forest.waits <= 4, "{cost:?}: {} waits", forest.waits);
        assert_eq!(forest.asked.len() as u32 + forest.waits, 500);
    }
}

#[test]
fn while_a_listing_does_not_come_nothing_is_asked_for_twice() {
    let mut forest = Forest::new(VOLUME);
    forest.is_mute = true;
    let folder = forest.folder(1000, None, 400);
    forest.read_all(7, forest.walk(folder, Sort::Readdir, false));
    assert!(forest.asked.is_empty());
}

#[test]
fn a_directory_that_cannot_be_listed_is_left_alone_for_a_while() {
    let mut forest = Forest::new(VOLUME);
    let folder = forest.folder(1000, None, 400);
    let files = forest.walk(folder, Sort::Readdir, false);
    forest.folders.clear();
    forest.read_all(7, files);
    assert!(forest.asked.is_empty() && forest.listed.len() == 1, "{:?}", forest.listed);
}

#[test]
fn listings_are_forgotten_when_nobody_walks_any_more() {
    let mut forest = Forest::new(VOLUME);
    let folder = forest.folder(1000, None, 100);
    forest.read_all(7, forest.walk(folder, Sort::Readdir, false));
    forest.bench.now += 20 * SECOND;
    let commands = forest.bench.on(&Input::Tick);
    assert!(commands.iter().any(|command| matches!(command, Command::ForgetListing(_))));
}

#[test]
fn the_most_recent_of_many_programs_are_followed() {
    let mut forest = Forest::new(VOLUME);
    let folder = forest.folder(1000, None, 2000);
    let files = forest.walk(folder, Sort::Readdir, false);
    for (tgid, (folder, ino)) in files.iter().take(500).enumerate() {
        forest.read(tgid as u32, *folder, *ino);
    }
    let waits = forest.waits;
    forest.read_all(5000, files.into_iter().skip(1500));
    assert!(forest.waits - waits <= 4, "{}", forest.waits - waits);
}

/// Marks show how many files are used: at least one for this many files.
const BETWEEN_MARKS: usize = 32;

/// Each step reads some files in one of eight orders: the order, where in it, and the process.
fn steps() -> impl Strategy<Value = Vec<(u8, u64, u32)>> {
    proptest::collection::vec((0..8u8, 0..200u64, 1..4u32), 1..300)
}

/// Whatever programs do, no more files are requested than: their credit, what they have earned by hits, one file for
/// four that they waited for, and all files of directories in which they have read 16.
fn asks_for_no_more_than_was_earned(steps: Vec<(u8, u64, u32)>, is_disk: bool) {
    let mut forest = Forest::new(if is_disk { DeviceCost::DISK } else { VOLUME });
    let top = forest.folder(1_000, None, 600);
    for n in 1..8 {
        forest.folder(10_000 + n * 1_000, Some(top), 400);
    }
    let way = |kind: usize| forest.walk(top, SORTS[kind % 4], kind >= 4);
    let walks: Vec<_> = (0..8).map(way).collect();
    let mut hits = 0;
    let mut reads_in = BTreeMap::<u64, usize>::new();
    let mut walkers = BTreeSet::new();
    for (kind, at, tgid) in steps {
        let files = &walks[usize::from(kind)];
        let start = at as usize % files.len();
        for &(folder, ino) in files.iter().skip(start).take(1 + usize::from(kind)) {
            hits += usize::from(forest.cached.contains(&ino));
            forest.read(tgid, folder, ino);
            *reads_in.entry(folder).or_default() += 1;
            walkers.insert(tgid);
        }
        let is_swept = |(folder, reads): (&u64, &usize)| {
            (*reads >= 16).then(|| forest.folders[folder].entries.len())
        };
        let swept: usize = reads_in.iter().filter_map(is_swept).sum();
        let forgiven = forest.waits as usize / 4;
        let most = walkers.len() * 16 + 4 * BETWEEN_MARKS * hits + swept + forgiven;
        assert!(forest.asked.len() <= most, "{} asked, {hits} hits", forest.asked.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn what_is_ahead_is_within_what_was_earned(steps in steps(), is_disk in any::<bool>()) {
        asks_for_no_more_than_was_earned(steps, is_disk);
    }
}

/// The file after a batch is not part of it, so reading it earns nothing.
#[test]
fn a_walker_that_skips_the_files_read_for_it_earns_nothing() {
    asks_for_no_more_than_was_earned(vec![(2, 186, 3), (3, 86, 3)], false);
}

/// The tests above name files of one volume.
#[test]
fn files_lie_on_the_volume_of_the_bench() {
    assert_eq!(directory(1).key, FileKey { dev: DEV, ino: 1 });
}
