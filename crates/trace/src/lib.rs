//! Traces: the reads of programs as text, one line for each operation, written by hand, by awk, or by `bowwave`.
//!
//! ```text
//!   file_bytes,file                              sizes, where they are known
//!   1048576,/srv/a
//!   time_us,process,file,op,offset,bytes         and optionally took_us
//!   0,cat,/srv/a,read,0,131072
//! ```
//!
//! docs/trace.md describes the format. `bowwave record` writes a binary form ([`recorded`]). [`open`] opens both. A
//! [`Trace`] is the result of parsing: its names are never empty and contain no line breaks, its times never run
//! backward, and its files fit the simulator. [`fio`] turns it into a job for real files.

mod error;
mod fields;
pub mod fio;
mod names;
mod open;
mod parse;
mod ranges;
pub mod recorded;
mod request;
#[cfg(test)]
mod tests;
mod window;
mod write;

use readahead::{Hint, Nanos, PAGE_BYTES};

pub use error::{OpenError, Problem, RecordedError, TraceError};
pub use open::{open, read};
pub use ranges::covered;
pub use request::{Request, RequestOp};
pub use window::{Reason, Window};

/// A small trace to begin with: what `bowwave replay --example` prints.
pub const EXAMPLE: &str = include_str!("example.csv");

/// The first line of the records.
pub const HEADER: &str = "time_us,process,file,op,offset,bytes";

/// The first line of the files' sizes.
pub const SIZES_HEADER: &str = "file_bytes,file";

/// Largest trace in bytes: about five million operations.
pub const MAX_TRACE_BYTES: u64 = 512 << 20;

/// Most bytes of all files together: the simulator keeps four bytes for each of their pages.
pub const MAX_FILE_BYTES: u64 = 1 << 40;

/// Largest operation in bytes; the kernel's own limit is 4 KiB below it.
pub const MAX_OP_BYTES: u64 = 1 << 31;

/// Most processes, and most files.
pub const MAX_NAMES: usize = 1 << 16;

/// Longest name in bytes: that of a path (PATH_MAX). A tree of directories is made of each.
pub const MAX_NAME_BYTES: usize = 4096;

/// Most components of all files' names together: a directory may be made of each.
pub const MAX_COMPONENTS: usize = 4 << 20;

/// Latest time and longest operation: 146 years, so that sums of both fit.
const MAX_TIME: Nanos = 1 << 62;

/// What a program did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TraceOp {
    /// `read(2)` and its kin.
    Read,
    /// Loads from a mapping, page by page.
    Mmap,
    /// `write(2)` and its kin.
    Write,
    /// The file is closed; the next operation of the process on it opens it again.
    Close,
    /// `posix_fadvise(2)` on the open file.
    Advise(Hint),
}

impl TraceOp {
    /// All kinds.
    pub const ALL: [TraceOp; 7] = [
        TraceOp::Read,
        TraceOp::Mmap,
        TraceOp::Write,
        TraceOp::Close,
        TraceOp::Advise(Hint::Normal),
        TraceOp::Advise(Hint::Sequential),
        TraceOp::Advise(Hint::Random),
    ];

    /// Whether it reads, by a call or through a mapping.
    pub fn is_read(self) -> bool {
        matches!(self, TraceOp::Read | TraceOp::Mmap)
    }

    /// Whether it is about a part of the file, so that an offset and bytes belong to it.
    pub fn has_place(self) -> bool {
        !matches!(self, TraceOp::Close | TraceOp::Advise(_))
    }

    /// The operation as a trace names it.
    pub fn name(self) -> &'static str {
        match self {
            TraceOp::Read => "read",
            TraceOp::Mmap => "mmap",
            TraceOp::Write => "write",
            TraceOp::Close => "close",
            TraceOp::Advise(Hint::Normal) => "advise normal",
            TraceOp::Advise(Hint::Sequential) => "advise sequential",
            TraceOp::Advise(Hint::Random) => "advise random",
        }
    }
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it began.
    pub at: Nanos,
    /// How long it took or, in a recorded trace, how long it waited; zero if the trace does not say.
    pub took: Nanos,
    /// Index into [`Trace::processes`].
    pub process: u32,
    /// Index into [`Trace::files`].
    pub file: u32,
    /// What was done.
    pub op: TraceOp,
    /// First byte.
    pub offset: u64,
    /// Bytes from there.
    pub bytes: u64,
}

impl Record {
    /// The byte after the last.
    pub fn end(&self) -> u64 {
        self.offset + self.bytes
    }
}

/// A file of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedFile {
    /// As the trace names it.
    pub name: String,
    /// Its size: as given, otherwise the largest end of an operation.
    pub bytes: u64,
}

/// A trace: operations in the order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    files: Vec<TracedFile>,
    processes: Vec<String>,
    records: Vec<Record>,
    windows: Vec<Window>,
    devices: Vec<String>,
    requests: Vec<Request>,
    origin: Option<Origin>,
}

/// What a recorded trace tells about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Version of the bowwave that recorded.
    pub bowwave: String,
    /// Release of the kernel it ran on.
    pub kernel: String,
    /// The date, as YYYY-MM-DD (UTC).
    pub date: String,
    /// Operations that happened and are not in the trace.
    pub lost: u64,
    /// Pages that the kernel brought in and that are not in the trace.
    pub lost_pages: u64,
    /// Requests that devices completed and that are not in the trace.
    pub lost_requests: u64,
    /// Operations that reach beyond what can be simulated, or belong to files that are too large for it.
    pub left_out: u64,
    /// Whether the recorder came to its end. Otherwise it was killed, or its disk was full.
    pub is_complete: bool,
    /// How many calls that waited for nothing became one record: 1, or more in a trace of very many.
    pub calls_per_record: u32,
}

impl Origin {
    /// What recording has lost or merged, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.lost > 0 {
            notes.push(format!("{} operations were lost when the trace was recorded", self.lost));
        }
        if self.lost_pages > 0 {
            notes.push(format!(
                "{} pages that the kernel brought in are missing in the trace",
                self.lost_pages
            ));
        }
        if self.lost_requests > 0 {
            notes.push(format!(
                "{} requests of devices are missing in the trace",
                self.lost_requests
            ));
        }
        if self.left_out > 0 {
            notes.push(format!(
                "{} operations were left out: all files together can have {MAX_FILE_BYTES} bytes, an operation {MAX_OP_BYTES}",
                self.left_out
            ));
        }
        if !self.is_complete {
            notes
                .push("the trace ends early: its recorder was killed, or its disk was full".into());
        }
        if self.calls_per_record > 1 {
            notes.push(format!(
                "up to {} consecutive calls that waited for nothing are one operation, as there are too many",
                self.calls_per_record
            ));
        }
        notes
    }
}

impl Trace {
    /// What it tells about itself if it was recorded; `None` of a text.
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// What a user of the trace should know, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        let recorded = self.origin.iter().flat_map(Origin::notes);
        recorded.chain(self.beyond_the_end()).collect()
    }

    /// A sentence about reads beyond the end of a file, which take no time. Programs do such reads, but the sizes in
    /// the trace may also be wrong.
    fn beyond_the_end(&self) -> Option<String> {
        let is_beyond = |record: &&Record| {
            let bytes = self.files[record.file as usize].bytes;
            record.op.has_place() && record.bytes > 0 && record.offset > bytes
        };
        let mut beyond = self.records.iter().filter(is_beyond);
        let first = beyond.next()?;
        let (number, all) = (beyond.count() + 1, self.records.len());
        let lies = if number == 1 {
            "lies beyond the end of its file"
        } else {
            "lie beyond the ends of their files"
        };
        let file = &self.files[first.file as usize];
        Some(format!(
            "{number} of {all} operations {lies}, the first at byte {} of {:?}, which has {}; check the sizes in the trace",
            first.offset, file.name, file.bytes
        ))
    }

    /// The files, in the order they are named.
    pub fn files(&self) -> &[TracedFile] {
        &self.files
    }

    /// The processes' names, in the order they appear.
    pub fn processes(&self) -> &[String] {
        &self.processes
    }

    /// The operations, in the order of time.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// What the kernel brought into its cache for these processes, in the order of time. Empty in a text, and in a
    /// trace that was recorded before Linux 6.18.
    pub fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// The names of the block devices that completed [requests](Self::requests), for example `sda`. Empty in a text, and
    /// in a trace of format 1 or 2.
    pub fn devices(&self) -> &[String] {
        &self.devices
    }

    /// What block devices were asked for, by any program, in the order of time.
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// Whether an operation reads or writes a byte that its file has.
    pub fn has_bytes(&self, record: &Record) -> bool {
        let is_within = record.offset < self.files[record.file as usize].bytes;
        record.op.has_place() && record.bytes > 0 && is_within
    }

    /// Pages that are read, each counted once.
    pub fn pages_needed(&self) -> u64 {
        let ranges: Vec<(u32, u64, u64)> = self
            .records
            .iter()
            .filter(|record| record.op.is_read())
            .filter_map(|record| {
                let end = record.end().min(self.files[record.file as usize].bytes);
                let range = (record.file, record.offset / PAGE_BYTES, end.div_ceil(PAGE_BYTES));
                (record.bytes > 0 && range.1 < range.2).then_some(range)
            })
            .collect();
        covered(ranges).into_iter().map(|(_, pages)| pages).sum()
    }

    /// Sorts records, windows and requests by time. Numbers processes in the order of their first operation, so that a
    /// trace does not depend on the order of its lines.
    fn put_in_order(&mut self) {
        self.records.sort_by_key(|record| record.at);
        let mut numbers = vec![None; self.processes.len()];
        let mut next = 0;
        for record in &mut self.records {
            let number = numbers[record.process as usize].get_or_insert(next);
            next += u32::from(*number == next);
            record.process = *number;
        }
        self.requests.sort_by_key(|request| request.at);
        self.windows.sort_by_key(|window| window.at);
        for window in &mut self.windows {
            window.process = window.process.and_then(|process| numbers[process as usize]);
        }
        let names = numbers.into_iter().zip(std::mem::take(&mut self.processes));
        // Who has done nothing is left out.
        let mut names: Vec<_> = names.filter_map(|(number, name)| Some((number?, name))).collect();
        names.sort_by_key(|(number, _)| *number);
        self.processes = names.into_iter().map(|(_, name)| name).collect();
    }
}

/// Whether the files fit the simulator.
fn check_sizes(files: &[TracedFile]) -> Result<(), TraceError> {
    let bytes = files.iter().map(|file| file.bytes).sum();
    if bytes <= MAX_FILE_BYTES {
        return Ok(());
    }
    let largest = files.iter().max_by_key(|file| file.bytes);
    let largest = largest.map(|file| file.name.clone()).unwrap_or_default();
    Err(TraceError::FilesTooLarge { bytes, largest })
}
