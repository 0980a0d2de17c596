//! Small files by folder: one by one they say little.

use std::collections::{BTreeMap, HashSet};

use trace::Trace;

use crate::pattern::WINDOW_BYTES;
use crate::wait::Waits;
use crate::{Analysis, Use};

/// The small files of a folder that were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folder {
    /// Its path with a slash at the end; empty if the files' names have none.
    pub path: String,
    /// How many files.
    pub files: u64,
    /// How many processes read them.
    pub processes: u64,
    /// What was read of them.
    pub usage: Use,
}

/// Whether the kernel reads such a file at once.
pub fn is_small(file_bytes: u64) -> bool {
    file_bytes <= WINDOW_BYTES
}

/// The folders of small files that were read, in the order of their paths.
pub fn folders(trace: &Trace, analysis: &Analysis) -> Vec<Folder> {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let small = trace.files().iter().zip(&analysis.files).enumerate();
    let small = small.filter(|(_, (file, part))| is_small(file.bytes) && part.usage.operations > 0);
    let small: Vec<(usize, &str)> =
        small.map(|(number, (file, _))| (number, folder_of(&file.name))).collect();
    small.iter().for_each(|(_, path)| _ = numbers.insert(path, 0));
    numbers.values_mut().enumerate().for_each(|(number, folder)| *folder = number);
    let mut folders: Vec<Folder> = numbers
        .keys()
        .map(|path| Folder { path: (*path).to_owned(), ..Folder::default() })
        .collect();
    let mut folder_of_file = vec![None; trace.files().len()];
    for (file, path) in small {
        let number = numbers[path];
        folder_of_file[file] = Some(number);
        let (folder, usage) = (&mut folders[number], &analysis.files[file].usage);
        folder.files += 1;
        folder.usage.operations += usage.operations;
        folder.usage.bytes += usage.bytes;
        folder.usage.distinct_bytes += usage.distinct_bytes;
    }
    let mut readers = HashSet::new();
    for stream in &analysis.streams {
        let Some(number) = folder_of_file[stream.file as usize] else { continue };
        folders[number].processes += u64::from(readers.insert((number, stream.process)));
    }
    let waits = analysis.waits.iter().filter_map(|wait| {
        Some((folder_of_file[analysis.streams[wait.stream].file as usize]?, wait.wait))
    });
    let waits = Waits::of_each(folders.len(), waits);
    folders.iter_mut().zip(waits).for_each(|(folder, waits)| folder.usage.waits = waits);
    folders
}

/// The path up to the last slash.
fn folder_of(file: &str) -> &str {
    file.rfind('/').map_or("", |slash| &file[..=slash])
}
