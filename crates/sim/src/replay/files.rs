//! The files of a trace on a machine: where they are, and which directories name them.

use std::collections::{HashMap, HashSet};

use crate::scripts::random::Random;
use crate::{DirectoryIndex, FileIndex, Machine};
use trace::Trace;

/// In which order files are on the device and in their directories. A trace does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// Files follow one another on the device as the trace names them, and in their directories as the trace first uses
    /// them. A program that walks through a tree then goes as `readdir` does. The files of a directory to which a
    /// program comes back, after others, have a random order there: that is no walk.
    #[default]
    AsTraced,
    /// The same, but within each directory, files have random places: names are hashed, and files lie as they were
    /// made.
    ByDirectory,
    /// Places and orders in directories are random, and processes that start at once start in the opposite order.
    Shuffled,
}

impl Layout {
    /// All of them, the most orderly first.
    pub const ALL: [Layout; 3] = [Layout::AsTraced, Layout::ByDirectory, Layout::Shuffled];
}

/// Any number will do, but it must stay the same.
const SEED: u64 = 20_261_123;

/// Adds the files; those with an absolute path have their directories. Returns them by their numbers in the trace.
pub(super) fn add(trace: &Trace, layout: Layout, machine: &mut Machine) -> Vec<FileIndex> {
    let mut random = Random::new(SEED);
    let mut placed: Vec<usize> = (0..trace.files().len()).collect();
    let mut listed = by_first_use(trace);
    match layout {
        Layout::AsTraced => {}
        Layout::ByDirectory => {
            random.shuffle(&mut placed);
            let order = order_of_directories(trace);
            placed.sort_by_key(|number| order[folder(&trace.files()[*number].name)]);
        }
        Layout::Shuffled => {
            random.shuffle(&mut placed);
            random.shuffle(&mut listed);
        }
    }
    let mut files: Vec<(usize, FileIndex)> = placed
        .into_iter()
        .map(|number| (number, machine.add_file(trace.files()[number].bytes)))
        .collect();
    files.sort_unstable_by_key(|(number, _)| *number);
    let files: Vec<FileIndex> = files.into_iter().map(|(_, file)| file).collect();
    if layout != Layout::Shuffled {
        listed = without_walks_that_are_none(trace, listed, &mut random);
    }
    let mut tree = Tree::default();
    for number in listed {
        tree.name(machine, &trace.files()[number].name, files[number]);
    }
    files
}

/// Everything before the last slash.
fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// For each directory, how many others the trace names before it.
fn order_of_directories(trace: &Trace) -> HashMap<&str, usize> {
    let mut order = HashMap::new();
    for file in trace.files() {
        let next = order.len();
        order.entry(folder(&file.name)).or_insert(next);
    }
    order
}

/// The numbers of all files that are used, in the order of their first use.
fn by_first_use(trace: &Trace) -> Vec<usize> {
    let mut is_used = vec![false; trace.files().len()];
    let numbers = trace.records().iter().map(|record| record.file as usize);
    numbers.filter(|number| !std::mem::replace(&mut is_used[*number], true)).collect()
}

/// Files in the order in which directories list them. Those of directories to which a program comes back are the last
/// ones, in any order.
fn without_walks_that_are_none(
    trace: &Trace,
    listed: Vec<usize>,
    random: &mut Random,
) -> Vec<usize> {
    let revisited = revisited(trace);
    let is_revisited = |number: &usize| revisited.contains(folder(&trace.files()[*number].name));
    let (mut others, walked): (Vec<usize>, Vec<usize>) = listed.into_iter().partition(is_revisited);
    random.shuffle(&mut others);
    [walked, others].concat()
}

/// Directories with a file that a process is the first to use after it has left the directory. Who walks through a tree
/// leaves a directory only for those below it, or for ever.
fn revisited(trace: &Trace) -> HashSet<&str> {
    let mut used = vec![false; trace.files().len()];
    // Of each process: the directories that it is in, each below the one before it, and those that it has left.
    let mut ways: Vec<(Vec<&str>, HashSet<&str>)> =
        trace.processes().iter().map(|_| Default::default()).collect();
    let mut revisited = HashSet::new();
    for record in trace.records() {
        if std::mem::replace(&mut used[record.file as usize], true) {
            continue;
        }
        let folder = folder(&trace.files()[record.file as usize].name);
        let (inside, left) = &mut ways[record.process as usize];
        let is_in = |above: &str| {
            let below = folder.strip_prefix(above);
            below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        };
        while let Some(last) = inside.pop_if(|last| !is_in(last)) {
            left.insert(last);
        }
        if left.contains(folder) {
            revisited.insert(folder);
        }
        if inside.last() != Some(&folder) {
            inside.push(folder);
        }
    }
    revisited
}

/// Directories by their paths.
#[derive(Default)]
struct Tree<'a> {
    directories: HashMap<&'a str, DirectoryIndex>,
}

impl<'a> Tree<'a> {
    /// Names a file if its path is absolute.
    fn name(&mut self, machine: &mut Machine, path: &'a str, file: FileIndex) {
        if let Some((directory, name)) = path.rsplit_once('/').filter(|_| path.starts_with('/')) {
            let directory = self.directory(machine, directory);
            machine.name_file(directory, name, file);
        }
    }

    /// The directory of this path, which is made with those above it.
    fn directory(&mut self, machine: &mut Machine, path: &'a str) -> DirectoryIndex {
        let mut missing = Vec::new();
        let mut above = path;
        let mut directory = loop {
            if let Some(known) = self.directories.get(above) {
                break *known;
            }
            let Some((parent, name)) = above.rsplit_once('/') else {
                let top = machine.add_top();
                self.directories.insert(above, top);
                break top;
            };
            missing.push((above, name));
            above = parent;
        };
        for (path, name) in missing.into_iter().rev() {
            directory = machine.add_directory(directory, name);
            self.directories.insert(path, directory);
        }
        directory
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Pace, Setup, replay};
    use super::*;
    use crate::Named;

    fn trace(paths: &[&str]) -> Trace {
        let read = |path: &&str| format!("0,p,{path},read,0,4096\n");
        let reads: String = paths.iter().map(read).collect();
        Trace::parse(format!("time_us,process,file,op,offset,bytes\n{reads}").as_bytes())
            .expect("valid")
    }

    fn machine() -> Machine {
        super::super::machine_of(&Setup::default(), 1 << 20).build("none").expect("it is known")
    }

    fn listed(machine: &Machine, directory: u32) -> Vec<String> {
        let entries = machine.entries(DirectoryIndex(directory)).iter();
        let shown = entries.map(|(name, named)| match named {
            Named::File(file) => format!("{name}={}", file.0),
            Named::Directory(directory) => format!("{name}/{}", directory.0),
        });
        shown.collect()
    }

    #[test]
    fn absolute_paths_are_in_directories_in_the_order_of_their_first_use() {
        let mut machine = machine();
        let trace = trace(&["/b/2", "/b/1", "/a/x/3", "/b/2", "/top", "data", "a/b"]);
        add(&trace, Layout::AsTraced, &mut machine);
        assert_eq!(listed(&machine, 0), ["b/1", "a/2", "top=3"]);
        assert_eq!(listed(&machine, 1), ["2=0", "1=1"]);
        assert_eq!(
            (listed(&machine, 2), listed(&machine, 3)),
            (vec!["x/3".into()], vec!["3=2".into()])
        );
    }

    #[test]
    fn a_directory_to_which_a_program_comes_back_is_not_listed_in_the_order_of_its_reads() {
        let all = |turn: fn(u32) -> u32| (0..120).map(move |n| format!("/d{}/{n}", turn(n)));
        let are_in_order = |turn| {
            let paths: Vec<String> = all(turn).collect();
            let trace = trace(&paths.iter().map(String::as_str).collect::<Vec<_>>());
            let mut machine = machine();
            add(&trace, Layout::AsTraced, &mut machine);
            let in_order = |directory| {
                let number = |(name, _): &(String, Named)| name.parse().unwrap_or(0);
                let names = machine.entries(DirectoryIndex(directory)).iter().map(number);
                names.collect::<Vec<u32>>().is_sorted()
            };
            (1..4).map(in_order).collect::<Vec<_>>()
        };
        assert_eq!(are_in_order(|n| n / 40), [true; 3]);
        assert_eq!(are_in_order(|n| n % 3), [false; 3]);
        let count = |paths: &[&str]| revisited(&trace(paths)).len();
        assert_eq!(count(&["/d/1", "/d/x/2", "/d/3", "/e/4", "/d/1"]), 0, "it goes below");
        assert_eq!(count(&["/d/1", "/dx/2", "/d/3"]), 1, "that is beside it");
    }

    #[test]
    fn another_order_has_the_same_files_in_the_same_directories() {
        let paths: Vec<String> = (0..50).map(|n| format!("/d{}/{n}", n % 3)).collect();
        let trace = trace(&paths.iter().map(String::as_str).collect::<Vec<_>>());
        let add_to = |layout| {
            let mut machine = machine();
            let files = add(&trace, layout, &mut machine);
            let places: Vec<u64> = files.iter().map(|file| machine.offset_of(*file)).collect();
            let mut names: Vec<Vec<String>> = (1..4)
                .map(|directory| {
                    let entries = machine.entries(DirectoryIndex(directory));
                    let mut names: Vec<String> =
                        entries.iter().map(|(name, _)| name.clone()).collect();
                    names.sort_unstable();
                    names
                })
                .collect();
            names.sort_unstable();
            (places, names)
        };
        let [as_traced, by_directory, shuffled] = Layout::ALL.map(add_to);
        assert!(as_traced.0.is_sorted());
        for other in [&by_directory, &shuffled] {
            assert!(!other.0.is_sorted());
            let mut places = other.0.clone();
            places.sort_unstable();
            assert_eq!((&places, &other.1), (&as_traced.0, &as_traced.1));
        }
        let lies_together = |places: &[u64]| {
            let of_first: Vec<u64> = places.iter().step_by(3).copied().collect();
            of_first.iter().all(|place| *place < 17 * 4096)
        };
        assert!(lies_together(&by_directory.0) && !lies_together(&shuffled.0));
    }

    #[test]
    fn a_walk_through_the_files_of_paths_is_read_ahead() {
        let paths: Vec<String> = (0..400).map(|n| format!("/tree/{}/{n}", n / 40)).collect();
        let trace = trace(&paths.iter().map(String::as_str).collect::<Vec<_>>());
        for layout in Layout::ALL {
            let setup = Setup {
                device: Some("net".into()),
                pace: Pace::None,
                layout,
                keeps_log: true,
                ..Setup::default()
            };
            let seconds = |policy| replay(&trace, policy, &setup).expect("all exists").seconds;
            let (stock, ours) = (seconds("linux-6"), seconds("adaptive"));
            let least = if layout == Layout::Shuffled { 3.0 } else { 10.0 };
            assert!(stock > least * ours, "{layout:?}: {stock} and {ours}");
            let log = replay(&trace, "adaptive", &setup).expect("all exists").log;
            assert_eq!(log[0].file, 0, "files have the trace's numbers");
        }
    }
}
