//! Whether a trace is the start of a program, which reads here and there at first.

use std::collections::{HashMap, HashSet};

use readahead::{Nanos, PAGE_BYTES};
use trace::{Record, Trace};

/// A program that comes to fewer places saves too little to be remembered.
const LEAST_PLACES: usize = 20;

/// `bowwave run --remember` notes what a program reads for this long.
const NOTED_NS: Nanos = 30_000_000_000;

/// Who does a tenth of the reading may be another program, which no list knows: what others read is not remembered.
const OWN_SHARE: f64 = 0.9;

/// What lies within the kernel's first window (128 KiB) is one place.
const PLACE_BYTES: u64 = 32 * PAGE_BYTES;

/// Whether one program does the reading, and comes to many places within the time that is noted. A place is a file, or
/// a piece of a library: what a program looks up in a file of data is another place each time.
pub(crate) fn is_one(trace: &Trace) -> bool {
    let is_read = |record: &&Record| record.op.is_read() && trace.has_bytes(record);
    let reads = || trace.records().iter().filter(is_read);
    let program = |record: &Record| program(&trace.processes()[record.process as usize]);
    let mut bytes: HashMap<&str, u64> = HashMap::new();
    reads().for_each(|record| *bytes.entry(program(record)).or_default() += record.bytes);
    let all: u64 = bytes.values().sum();
    let most = bytes.into_iter().max_by_key(|(_, bytes)| *bytes);
    let Some((reader, _)) = most.filter(|(_, own)| *own as f64 >= OWN_SHARE * all as f64) else {
        return false;
    };
    let own = || reads().filter(|record| program(record) == reader);
    let began = own().map(|record| record.at).min().unwrap_or_default();
    let noted = own().filter(|record| record.at - began < NOTED_NS);
    let place = |record: &Record| {
        let is_library = is_library(&trace.files()[record.file as usize].name);
        (record.file, if is_library { record.offset / PLACE_BYTES } else { 0 })
    };
    noted.map(place).collect::<HashSet<_>>().len() >= LEAST_PLACES
}

/// A process without the number of its thread: `java 1234/1240` is `java 1234`.
fn program(process: &str) -> &str {
    match process.rsplit_once('/') {
        Some((program, thread)) if thread.parse::<u32>().is_ok() => program,
        _ => process,
    }
}

fn is_library(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.ends_with(".so") || name.contains(".so.")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(process, seconds, file, offset)` of reads of 4 KiB.
    fn is_one(reads: impl Iterator<Item = (&'static str, u64, String, u64)>) -> bool {
        let read = |(process, at, file, offset)| {
            format!("{},{process},{file},read,{offset},4096\n", at * 1_000_000)
        };
        let reads: String = reads.map(read).collect();
        let text = format!("time_us,process,file,op,offset,bytes\n{reads}");
        super::is_one(&Trace::parse(text.as_bytes()).expect("valid"))
    }

    fn files(
        process: &'static str,
        count: u64,
        every_s: u64,
    ) -> Vec<(&'static str, u64, String, u64)> {
        (0..count).map(|n| (process, n * every_s, format!("/{process}/{n}"), 0)).collect()
    }

    #[test]
    fn a_start_comes_to_many_files_within_the_time_that_is_noted() {
        assert!(is_one(files("python3 7", 20, 1).into_iter()));
        assert!(!is_one(files("python3 7", 19, 1).into_iter()));
        assert!(!is_one(files("python3 7", 20, 2).into_iter()));
    }

    #[test]
    fn pieces_of_a_library_are_places_and_those_of_data_are_not() {
        let pieces = |file: &str| {
            let file = file.to_owned();
            (0..20).map(move |n| ("clang 7", 0, file.clone(), n * PLACE_BYTES))
        };
        assert!(is_one(pieces("/lib/libLLVM.so.19.1")) && is_one(pieces("/lib/a.so")));
        assert!(!is_one(pieces("/srv/data")) && !is_one(pieces("/srv/a.some/data")));
        let within = |n: u64| ("clang 7", 0, "/lib/a.so".to_owned(), n * PAGE_BYTES);
        assert!(!is_one((0..32).map(within)), "the kernel reads that at once");
    }

    #[test]
    fn one_program_does_the_reading_with_all_its_threads() {
        let threads = files("java 7/8", 40, 0).into_iter().chain(files("java 7/9", 40, 0));
        assert!(is_one(threads));
        let two = |others| files("java 7", 36, 0).into_iter().chain(files("cron 3", others, 0));
        assert!(is_one(two(4)) && !is_one(two(5)));
    }
}
