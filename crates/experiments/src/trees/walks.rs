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
const LARGE: &str = "large";
const WIDE: &str = "wide";

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
    "sorted by name, large files", false, 1 of LARGE, |machine, trees| whole(machine, &trees[0], BY_NAME);
    "as listed, large files", false, 1 of LARGE, |machine, trees| whole(machine, &trees[0], AS_LISTED);
    "grep-tree", true, 1 of DEMO, |machine, trees| whole(machine, &trees[0], AS_LISTED);
    "only *.c", false, 1 of SMALL, one_suffix;
    "heads", false, 1 of SMALL, heads;
    "find first", false, 1 of SMALL, find_first;
    "find first, mixed sizes", false, 1 of MIXED, find_first;
    "three, then stop", false, 1 of SMALL, three;
    "three of each directory", false, 1 of SMALL, |machine, trees| {
        of_each(machine, &trees[0], FILES_FIRST, |_, files| files.truncate(3))
    };
    "random order", false, 1 of SMALL, random_order;
    "one of each directory", false, 1 of SMALL, |machine, trees| {
        of_each(machine, &trees[0], FILES_FIRST, |_, files| files.truncate(1))
    };
    "directories in random order", false, 1 of SMALL, |machine, trees| {
        of_each(machine, &trees[0], FILES_FIRST, |_, _| {})
    };
    "grep -r */", false, 1 of DEMO, each_below;
    "four threads", false, 1 of SMALL, |machine, trees| threads(machine, &trees[0], 4);
    "five to eight of each directory", false, 1 of SMALL, |machine, trees| {
        of_each(machine, &trees[0], FILES_FIRST, |random, files| {
            files.truncate(5 + random.below(4) as usize);
        })
    };
    "half of each directory, by name", false, 1 of SMALL, |machine, trees| {
        let order = Order { is_by_name: true, ..FILES_FIRST };
        of_each(machine, &trees[0], order, |_, files| files.truncate(files.len().div_ceil(2)))
    };
    "three at random of each directory", false, 1 of SMALL, |machine, trees| {
        of_each(machine, &trees[0], FILES_FIRST, |random, files| {
            random.shuffle(files);
            files.truncate(3);
        })
    };
    "a tenth in random order", false, 1 of SMALL, |machine, trees| {
        let mut visits = random_order(machine, trees);
        visits.truncate(visits.len() / 10);
        visits
    };
    "random order, large directories", false, 1 of WIDE, random_order;
    "grep -r */, deep", false, 1 of SMALL, each_below;
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

/// The first tenth of the tree, as of a program that stops when it has found something.
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

/// Some files of each directory; directories in random order.
fn of_each(
    machine: &Machine,
    tree: &Tree,
    order: Order,
    choose: impl Fn(&mut Random, &mut Vec<Visit>),
) -> Vec<Visit> {
    let mut random = Random::new(0);
    let files = walk(machine, tree.top, order);
    let mut directories: Vec<Vec<Visit>> = Vec::new();
    for same in files.chunk_by(|one, next| one.directory == next.directory) {
        directories.push(same.iter().map(|found| found.visit(tree)).collect());
    }
    random.shuffle(&mut directories);
    directories.iter_mut().for_each(|files| choose(&mut random, files));
    directories.concat()
}

/// Threads that each read one directory after the other, side by side.
fn threads(machine: &Machine, tree: &Tree, count: usize) -> Vec<Visit> {
    let mut random = Random::new(0);
    let files = walk(machine, tree.top, FILES_FIRST);
    let same = |one: &Found, next: &Found| one.directory == next.directory;
    let mut directories = files.chunk_by(same).map(<[Found]>::iter);
    let mut threads: Vec<_> = directories.by_ref().take(count).collect();
    let mut visits = Vec::with_capacity(files.len());
    while !threads.is_empty() {
        let at = random.below(threads.len() as u64) as usize;
        match threads[at].next() {
            Some(found) => visits.push(found.visit(tree)),
            None => match directories.next() {
                Some(next) => threads[at] = next,
                None => drop(threads.swap_remove(at)),
            },
        }
    }
    visits
}

/// Everything below each directory of the top. A shell names these in the order of names; the program reads each of
/// them as it is listed.
fn each_below(machine: &Machine, trees: &[Tree]) -> Vec<Visit> {
    let mut entries: Vec<_> = machine.entries(trees[0].top).iter().collect();
    entries.sort_by_key(|(name, _)| name);
    let below = entries.into_iter().flat_map(|(_, named)| match *named {
        Named::File(_) => Vec::new(),
        Named::Directory(below) => walk(machine, below, AS_LISTED),
    });
    below.map(|found| found.visit(&trees[0])).collect()
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

    /// Walks that read each file, but not to its end, or not in an order that is known beforehand, or where the files'
    /// bytes take most of the time.
    const NOT_JUDGED_AS_COMPLETE: [&str; 7] = [
        "sorted by name, large files",
        "as listed, large files",
        "four threads",
        "heads",
        "random order",
        "random order, large directories",
        "directories in random order",
    ];

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
                walk.is_complete || NOT_JUDGED_AS_COMPLETE.contains(&walk.name),
                "{}",
                walk.name
            );
            assert!(files.len() >= 3, "{}", walk.name);
        }
    }
}
