//! Walks: which files of a tree a program reads, in which order, and how much of each.

use sim::scripts::random::Random;
use sim::{DirectoryIndex, FileIndex, Machine, Named};

use super::tree::Tree;

/// A program that reads trees.
pub(super) struct Walk {
    pub(super) name: &'static str,
    /// It reads every file of its trees to the end.
    pub(super) is_complete: bool,
    /// The name of the tree that it reads, and how many of these.
    pub(super) tree: &'static str,
    pub(super) trees: u64,
    visits: fn(&Machine, &[Tree]) -> Vec<Visit>,
}

/// A file, and how much of it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Visit {
    pub(super) file: FileIndex,
    pub(super) bytes: u64,
}

const SMALL: &str = "small";
const MIXED: &str = "mixed";
const DEMO: &str = "demo";

macro_rules! walks {
    ($($name:literal, $is_complete:ident, $trees:literal of $tree:ident, $visits:expr;)*) => {
        /// All walks.
        pub(super) const WALKS: [Walk; [$($name),*].len()] = [$(Walk {
            name: $name,
            is_complete: $is_complete,
            tree: $tree,
            trees: $trees,
            visits: $visits,
        }),*];
    };
}

walks! {
    "grep -r", true, 1 of SMALL, |machine, trees| whole(machine, &trees[0], AS_LISTED);
    "sorted by name", true, 1 of SMALL, |machine, trees| whole(machine, &trees[0], BY_NAME);
    "files first", true, 1 of SMALL, |machine, trees| whole(machine, &trees[0], FILES_FIRST);
    "diff -r", true, 2 of SMALL, in_turn;
    "grep -r, mixed sizes", true, 1 of MIXED, |machine, trees| whole(machine, &trees[0], AS_LISTED);
    "grep-tree", true, 1 of DEMO, |machine, trees| whole(machine, &trees[0], AS_LISTED);
    "only *.c", false, 1 of SMALL, one_suffix;
    "heads", false, 1 of SMALL, heads;
    "find first", false, 1 of SMALL, find_first;
    "find first, mixed sizes", false, 1 of MIXED, find_first;
    "three, then stop", false, 1 of SMALL, three;
    "three of each directory", false, 1 of SMALL, three_of_each;
    "random order", false, 1 of SMALL, random_order;
}

impl Walk {
    /// The files that it reads, in order.
    pub(super) fn visits(&self, machine: &Machine, trees: &[Tree]) -> Vec<Visit> {
        (self.visits)(machine, trees)
    }
}

/// How a walk goes through a directory.
#[derive(Clone, Copy)]
struct Order {
    is_by_name: bool,
    /// Directories come after all files.
    is_files_first: bool,
}

const AS_LISTED: Order = Order { is_by_name: false, is_files_first: false };
const BY_NAME: Order = Order { is_by_name: true, ..AS_LISTED };
const FILES_FIRST: Order = Order { is_files_first: true, ..AS_LISTED };

/// A file with its name and directory.
struct Found<'a> {
    directory: DirectoryIndex,
    name: &'a str,
    file: FileIndex,
}

impl Found<'_> {
    /// Reads it to the end.
    fn visit(&self, tree: &Tree) -> Visit {
        Visit { file: self.file, bytes: tree.bytes(self.file) }
    }
}

/// The files below a directory.
fn walk(machine: &Machine, directory: DirectoryIndex, order: Order) -> Vec<Found<'_>> {
    let mut entries: Vec<_> = machine.entries(directory).iter().collect();
    if order.is_by_name {
        entries.sort_by_key(|(name, _)| name);
    }
    if order.is_files_first {
        entries.sort_by_key(|(_, named)| matches!(named, Named::Directory(_)));
    }
    let below = entries.into_iter().flat_map(|(name, named)| match *named {
        Named::File(file) => vec![Found { directory, name, file }],
        Named::Directory(below) => walk(machine, below, order),
    });
    below.collect()
}

fn whole(machine: &Machine, tree: &Tree, order: Order) -> Vec<Visit> {
    let files = walk(machine, tree.top, order).into_iter();
    files.map(|found| found.visit(tree)).collect()
}

fn in_turn(machine: &Machine, trees: &[Tree]) -> Vec<Visit> {
    let [one, other] = [&trees[0], &trees[1]].map(|tree| whole(machine, tree, BY_NAME));
    one.into_iter().zip(other).flat_map(|(one, other)| [one, other]).collect()
}

fn one_suffix(machine: &Machine, trees: &[Tree]) -> Vec<Visit> {
    let files = walk(machine, trees[0].top, AS_LISTED).into_iter();
    let wanted = files.filter(|found| found.name.ends_with(".c"));
    wanted.map(|found| found.visit(&trees[0])).collect()
}

fn heads(machine: &Machine, trees: &[Tree]) -> Vec<Visit> {
    const HEAD: u64 = 4096;
    let files = whole(machine, &trees[0], AS_LISTED).into_iter();
    files.map(|visit| Visit { bytes: visit.bytes.min(HEAD), ..visit }).collect()
}

/// A tenth of the tree.
fn find_first(machine: &Machine, trees: &[Tree]) -> Vec<Visit> {
    let mut visits = whole(machine, &trees[0], AS_LISTED);
    visits.truncate(visits.len() / 10);
    visits
}

fn three(machine: &Machine, trees: &[Tree]) -> Vec<Visit> {
    let mut visits = whole(machine, &trees[0], AS_LISTED);
    visits.truncate(3);
    visits
}

fn three_of_each(machine: &Machine, trees: &[Tree]) -> Vec<Visit> {
    let files = walk(machine, trees[0].top, FILES_FIRST);
    let mut directories: Vec<Vec<Visit>> = Vec::new();
    for same in files.chunk_by(|one, next| one.directory == next.directory) {
        directories.push(same.iter().take(3).map(|found| found.visit(&trees[0])).collect());
    }
    Random::new(0).shuffle(&mut directories);
    directories.concat()
}

fn random_order(machine: &Machine, trees: &[Tree]) -> Vec<Visit> {
    let mut visits = whole(machine, &trees[0], AS_LISTED);
    Random::new(0).shuffle(&mut visits);
    visits
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn complete_walks_read_each_file_once_and_no_walk_reads_one_twice() {
        let experiment = super::super::experiment().expect("it is valid");
        let mut machine = experiment.machine.build("linux-6").expect("it can be");
        for (n, walk) in (0..).zip(&WALKS) {
            let spec = experiment.workload.trees[walk.tree];
            let trees = [2 * n, 2 * n + 1].map(|n| Tree::add(&mut machine, &spec, 1, n << 30));
            let visits = walk.visits(&machine, &trees[..walk.trees as usize]);
            let files: BTreeSet<FileIndex> = visits.iter().map(|visit| visit.file).collect();
            assert_eq!(files.len(), visits.len(), "{}", walk.name);
            let all = spec.files * walk.trees as usize;
            assert_eq!(
                files.len() == all,
                walk.is_complete || ["heads", "random order"].contains(&walk.name),
                "{}",
                walk.name
            );
            assert!(files.len() >= 3, "{}", walk.name);
        }
    }
}
