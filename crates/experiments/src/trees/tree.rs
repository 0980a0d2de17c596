//! A tree of directories and files on a machine.
//!
//! ```text
//!   device:   | files of 0 | gap | files of 1 | gap | ...                 | moved files |
//!   names:      0/f00000.c ...     1/f00025.h ...      in the order of places
//!   readdir:    in another order, with directories in between
//! ```

use std::collections::BTreeMap;

use readahead::PAGE_BYTES;
use serde::Deserialize;
use sim::scripts::random::Random;
use sim::{DirectoryIndex, FileIndex, Machine};

/// The parameters of a tree.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TreeSpec {
    pub(super) directories: usize,
    /// Most directories in a directory.
    below_each: usize,
    pub(super) files: usize,
    /// The least and largest size of a file; all doublings in between are equally likely.
    least_bytes: u64,
    most_bytes: u64,
    /// KiB of the device between two directories.
    gap_kb: u64,
    /// The share of files that lie behind all others, as after years of use.
    moved: f64,
}

/// A tree on a machine.
pub(super) struct Tree {
    pub(super) top: DirectoryIndex,
    /// Bytes of each file.
    sizes: BTreeMap<FileIndex, u64>,
}

/// A file before it is placed.
struct Planned {
    name: String,
    bytes: u64,
    is_moved: bool,
}

impl Tree {
    /// Lays out a tree from byte `offset` of the device on. The same seed gives the same tree.
    pub(super) fn add(machine: &mut Machine, spec: &TreeSpec, seed: u64, offset: u64) -> Tree {
        let mut random = Random::new(seed);
        let planned = plan(spec, &mut random);
        let (files, sizes) = place(machine, spec, &planned, offset);
        let top = machine.add_top();
        let mut directories = vec![top; spec.directories];
        for (number, files) in files.into_iter().enumerate() {
            let first = number * spec.below_each + 1;
            let below = first..(first + spec.below_each).min(spec.directories);
            let mut entries: Vec<(String, Entry)> = files;
            entries.extend(below.map(|below| (format!("d{below:03}"), Entry::Directory(below))));
            random.shuffle(&mut entries);
            for (name, entry) in entries {
                match entry {
                    Entry::File(file) => machine.name_file(directories[number], &name, file),
                    Entry::Directory(below) => {
                        directories[below] = machine.add_directory(directories[number], &name);
                    }
                }
            }
        }
        Tree { top, sizes }
    }

    /// Bytes of a file.
    pub(super) fn bytes(&self, file: FileIndex) -> u64 {
        self.sizes[&file]
    }
}

/// The files of each directory.
fn plan(spec: &TreeSpec, random: &mut Random) -> Vec<Vec<Planned>> {
    let mut directories = Vec::new();
    directories.resize_with(spec.directories, Vec::new);
    let mut homes: Vec<usize> =
        (0..spec.files).map(|_| random.below(spec.directories as u64) as usize).collect();
    homes.sort_unstable();
    for (number, home) in homes.into_iter().enumerate() {
        const SUFFIXES: [&str; 4] = ["c", "h", "txt", "o"];
        let suffix = SUFFIXES[random.below(SUFFIXES.len() as u64) as usize];
        let (least, most) = (spec.least_bytes as f64, spec.most_bytes as f64);
        directories[home].push(Planned {
            name: format!("f{number:05}.{suffix}"),
            bytes: (least * (most / least).powf(random.unit())) as u64,
            is_moved: random.unit() < spec.moved,
        });
    }
    directories
}

/// A name in a directory stands for a file, or the directory of that number.
enum Entry {
    File(FileIndex),
    Directory(usize),
}

/// The entries of each directory.
type Named = Vec<Vec<(String, Entry)>>;

/// Adds the files to the machine. Returns them as entries, and their sizes.
fn place(
    machine: &mut Machine,
    spec: &TreeSpec,
    planned: &[Vec<Planned>],
    offset: u64,
) -> (Named, BTreeMap<FileIndex, u64>) {
    let room = |file: &Planned| file.bytes.next_multiple_of(PAGE_BYTES);
    let gap = spec.gap_kb << 10;
    let all: u64 = planned.iter().flatten().map(room).sum::<u64>() + planned.len() as u64 * gap;
    let (mut here, mut behind) = (offset, offset + all);
    let mut sizes = BTreeMap::new();
    let mut named = Vec::new();
    for files in planned {
        let mut add = |planned: &Planned| {
            let at = if planned.is_moved { &mut behind } else { &mut here };
            let file = machine.add_file_at(planned.bytes, *at);
            *at += room(planned);
            sizes.insert(file, planned.bytes);
            (planned.name.clone(), Entry::File(file))
        };
        named.push(files.iter().map(&mut add).collect());
        here += gap;
    }
    (named, sizes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::Named;

    #[test]
    fn the_order_of_readdir_is_neither_that_of_names_nor_that_of_places_and_no_file_lies_on_another()
     {
        let experiment = super::super::experiment().expect("it is valid");
        let spec = experiment.workload.trees["small"];
        let mut machine = experiment.machine.build("linux-6").expect("it can be");
        let tree = Tree::add(&mut machine, &spec, 1, 0);
        assert_eq!(tree.sizes.len(), spec.files);
        let entries = machine.entries(tree.top);
        assert!(entries.len() > 10 && !entries.is_sorted_by_key(|(name, _)| name));
        let files = entries.iter().filter_map(|(_, named)| match named {
            Named::File(file) => Some(machine.offset_of(*file)),
            Named::Directory(_) => None,
        });
        assert!(!files.is_sorted());
        let mut places: Vec<(u64, u64)> =
            tree.sizes.iter().map(|(file, bytes)| (machine.offset_of(*file), *bytes)).collect();
        places.sort_unstable();
        assert!(places.windows(2).all(|two| two[0].0 + two[0].1 <= two[1].0));
    }
}
