//! Which processes read everything once, and much of it: a backup, a scan, a copy.

use std::collections::HashMap;

use readahead::PAGE_BYTES;
use trace::{Trace, TraceOp};

/// A process that reads less than this share of memory does not push much out of it.
const MEMORY_SHARE: u64 = 16;

/// A program may look at the beginnings of its files first: it may repeat up to this many accesses for each distinct
/// page.
const REPEATED: f64 = 0.05;

/// What a process reads.
#[derive(Default)]
struct Reading {
    /// Page accesses; reading on within the page of the last access is none.
    accesses: u64,
    /// A bit for each page, in words by file and place.
    touched: HashMap<(u32, u64), u64>,
    distinct: u64,
    last: Option<(u32, u64)>,
}

impl Reading {
    fn access(&mut self, file: u32, page: u64) {
        if self.last.replace((file, page)) == Some((file, page)) {
            return;
        }
        self.accesses += 1;
        let word = self.touched.entry((file, page / u64::from(u64::BITS))).or_default();
        let bit = 1 << (page % u64::from(u64::BITS));
        self.distinct += u64::from(*word & bit == 0);
        *word |= bit;
    }

    fn is_one_pass(&self) -> bool {
        self.accesses as f64 <= self.distinct as f64 * (1.0 + REPEATED)
    }
}

/// The names of such processes.
pub(crate) fn processes(trace: &Trace, memory_bytes: u64) -> Vec<String> {
    let mut readings: Vec<Reading> = trace.processes().iter().map(|_| Reading::default()).collect();
    for record in trace.records().iter().filter(|record| trace.has_bytes(record)) {
        if record.op == TraceOp::Write {
            continue;
        }
        let file_pages = trace.files()[record.file as usize].bytes.div_ceil(PAGE_BYTES);
        let pages = record.offset / PAGE_BYTES..record.end().div_ceil(PAGE_BYTES).min(file_pages);
        let reading = &mut readings[record.process as usize];
        pages.for_each(|page| reading.access(record.file, page));
    }
    let least = memory_bytes / MEMORY_SHARE / PAGE_BYTES;
    let is_meant = |reading: &Reading| reading.is_one_pass() && reading.distinct >= least.max(1);
    let named = trace.processes().iter().zip(&readings);
    named.filter(|(_, reading)| is_meant(reading)).map(|(name, _)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(process, page, bytes)`
    fn found(reads: &[(&str, u64, u64)], memory_bytes: u64) -> Vec<String> {
        let read = |(process, page, bytes): &(&str, u64, u64)| {
            format!("0,{process},/a,read,{},{bytes}\n", page * 4096)
        };
        let reads: String = reads.iter().map(read).collect();
        let text = format!("time_us,process,file,op,offset,bytes\n{reads}");
        processes(&Trace::parse(text.as_bytes()).expect("valid"), memory_bytes)
    }

    #[test]
    fn who_reads_much_and_returns_to_nothing_passes_once() {
        let backup = (0..64).map(|n| ("backup", n * 4, 16_384));
        let database = (0..64).map(|n| ("database", n % 8 * 4, 16_384));
        let glance = [("glance", 0, 4096)];
        let reads: Vec<_> = backup.chain(database).chain(glance).collect();
        assert_eq!(found(&reads, 1 << 20), ["backup"]);
        assert_eq!(found(&reads, 1 << 40), [""; 0], "nobody fills that");
    }

    #[test]
    fn reading_on_within_a_page_is_no_return() {
        let reads: Vec<_> = (0..64).map(|n| ("reader", n / 4, 1000)).collect();
        assert_eq!(found(&reads, 1 << 20), ["reader"]);
    }
}
