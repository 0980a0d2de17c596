//! A trace as a job of [fio](https://fio.readthedocs.io), which reads the same places of the same files on a real disk.
//!
//! Each process becomes a section of the job file and has a log in fio's format "iolog", version 3 (fio 3.30 and
//! newer):
//!
//! ```text
//!   fio version 3 iolog
//!   1 /srv/a add
//!   1 /srv/a open
//!   1 /srv/a read 0 131072            microseconds, file, action, offset, bytes
//!   901 /srv/a read 131072 131072
//!   901 /srv/a close
//! ```
//!
//! fio begins an operation as long after the one before as the times are apart, or when that one has ended, if this is
//! later. Nothing is written: the files are real.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::{self, Write};

use readahead::Nanos;

use crate::{Record, Trace, TraceOp, TracedFile};

/// Most sections of a job: fio's own limit.
const MAX_SECTIONS: usize = 4096;

/// Longest name in bytes that fio reads from a log.
const MAX_NAME_BYTES: usize = 255;

/// Why a trace is no job.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// fio would have nothing to do.
    #[error("the trace has no read of a file that fio can name; record while programs read")]
    NoRead,
    /// fio cannot run as many.
    #[error(
        "{0} processes read, and fio runs up to {MAX_SECTIONS}; record one command, or for a shorter time"
    )]
    TooManyProcesses(usize),
}

/// A job of fio.
pub struct Job<'a> {
    trace: &'a Trace,
    keeps_times: bool,
    sections: Vec<Section<'a>>,
    left_out: LeftOut,
}

/// What of a trace is not in a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Writes: they would overwrite files.
    pub writes: u64,
    /// Reads of files with names that fio cannot read: with blanks, or of more than 255 bytes.
    pub unnameable: u64,
}

/// What one process reads.
struct Section<'a> {
    process: u32,
    operations: Vec<&'a Record>,
}

impl<'a> Job<'a> {
    /// With the times of the trace, or as fast as possible.
    ///
    /// # Errors
    /// If more processes read than fio runs, or none.
    pub fn of(trace: &'a Trace, keeps_times: bool) -> Result<Self, JobError> {
        let mut sections: Vec<Section> = (0..trace.processes.len() as u32)
            .map(|process| Section { process, operations: Vec::new() })
            .collect();
        let mut left_out = LeftOut::default();
        for record in trace.records.iter().filter(|record| trace.is_for_fio(record, &mut left_out))
        {
            sections[record.process as usize].operations.push(record);
        }
        let reads = |section: &Section| section.operations.iter().any(|it| it.op.is_read());
        sections.retain(reads);
        match sections.len() {
            0 => Err(JobError::NoRead),
            1..=MAX_SECTIONS => Ok(Job { trace, keeps_times, sections, left_out }),
            processes => Err(JobError::TooManyProcesses(processes)),
        }
    }

    /// What is not in it.
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// Processes that read.
    pub fn processes(&self) -> usize {
        self.sections.len()
    }

    /// The files that it reads.
    pub fn files(&self) -> impl Iterator<Item = &TracedFile> {
        let operations = self.sections.iter().flat_map(|section| &section.operations);
        let read: BTreeSet<u32> =
            operations.filter(|it| it.op.is_read()).map(|it| it.file).collect();
        read.into_iter().map(|file| &self.trace.files[file as usize])
    }

    /// The job file. It names the logs without a folder.
    pub fn file(&self) -> String {
        let mut text = "\
            # Reads what the processes of a trace have read. Start it in this folder: fio --readonly job.fio\n\
            [global]\n\
            ioengine=psync\n\
            # The kernel decides by itself what it keeps and reads ahead.\n\
            invalidate=0\n\
            fadvise_hint=0\n\
            # Files that are not there are not made.\n\
            allow_file_create=0\n"
            .to_owned();
        let start = self.sections.iter().map(Section::start).min().unwrap_or(0);
        for (number, section) in self.sections.iter().enumerate() {
            let name = sectional(&self.trace.processes[section.process as usize]);
            let _ = writeln!(text, "\n[{number} {name}]\nread_iolog={}", log_name(number));
            if self.keeps_times && section.start() > start {
                let _ = writeln!(text, "startdelay={}us", (section.start() - start) / 1000);
            }
        }
        text
    }

    /// The logs, each with its name.
    pub fn logs(&self) -> impl Iterator<Item = (String, impl fmt::Display)> {
        self.sections.iter().enumerate().map(|(number, section)| {
            (log_name(number), Log { trace: self.trace, keeps_times: self.keeps_times, section })
        })
    }
}

impl Section<'_> {
    fn start(&self) -> Nanos {
        self.operations.first().map_or(0, |first| first.at)
    }
}

impl Trace {
    /// Whether a job contains the operation. Counts in `left_out` what it does not contain.
    fn is_for_fio(&self, record: &Record, left_out: &mut LeftOut) -> bool {
        let is_written = record.op == TraceOp::Write;
        let name = &self.files[record.file as usize].name;
        let has_name = name.len() <= MAX_NAME_BYTES && !name.contains(char::is_whitespace);
        left_out.writes += u64::from(is_written && self.has_bytes(record));
        left_out.unnameable +=
            u64::from(record.op.is_read() && self.has_bytes(record) && !has_name);
        let is_done = record.op == TraceOp::Close || record.op.is_read() && self.has_bytes(record);
        is_done && has_name
    }
}

fn log_name(number: usize) -> String {
    format!("{number}.log")
}

/// A process's name without what means something in a job file.
fn sectional(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || " ._-/+".contains(c);
    name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
}

/// The log of one process.
struct Log<'a> {
    trace: &'a Trace,
    keeps_times: bool,
    section: &'a Section<'a>,
}

impl fmt::Display for Log<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "fio version 3 iolog")?;
        let operations = &self.section.operations;
        let last: HashMap<u32, usize> =
            operations.iter().enumerate().map(|(n, record)| (record.file, n)).collect();
        let (mut known, mut open) = (HashSet::new(), HashSet::new());
        for (n, record) in operations.iter().enumerate() {
            let file = &self.trace.files[record.file as usize];
            // fio takes a time of 0 for none.
            let time_us = match self.keeps_times {
                true => 1 + (record.at - self.section.start()) / 1000,
                false => 1,
            };
            let head = format_args!("{time_us} {}", file.name);
            if record.op.is_read() {
                if known.insert(record.file) {
                    writeln!(f, "{head} add")?;
                }
                if open.insert(record.file) {
                    writeln!(f, "{head} open")?;
                }
                let bytes = record.end().min(file.bytes) - record.offset;
                writeln!(f, "{head} read {} {bytes}", record.offset)?;
            }
            // Not all traces tell when a file is closed, and fio opens no more than it may.
            let is_closed = record.op == TraceOp::Close || last[&record.file] == n;
            if is_closed && open.remove(&record.file) {
                writeln!(f, "{head} close")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HEADER, SIZES_HEADER};

    fn trace(records: &str) -> Trace {
        let text = format!("{SIZES_HEADER}\n10000,/a\n{HEADER}\n{records}");
        Trace::parse(text.as_bytes()).expect("a trace")
    }

    fn logs(job: &Job) -> Vec<(String, String)> {
        job.logs().map(|(name, log)| (name, log.to_string())).collect()
    }

    #[test]
    fn each_process_has_a_section_that_starts_when_the_process_did_and_a_log() {
        let trace = trace(
            "7,one,/a,read,0,4096\n907,one,/a,read,4096,4096\n950,two,/a,mmap,8192,4096\n960,idle,/a,close\n",
        );
        let job = Job::of(&trace, true).expect("one");
        let file = job.file();
        assert_eq!(job.processes(), 2);
        assert!(file.contains("\n[0 one]\nread_iolog=0.log\n\n[1 two]\n"), "{file}");
        assert!(file.ends_with("\nread_iolog=1.log\nstartdelay=943us\n"), "{file}");
        let first = "fio version 3 iolog\n1 /a add\n1 /a open\n1 /a read 0 4096\n901 /a read 4096 4096\n901 /a close\n";
        // The file ends within what is read.
        let second = "fio version 3 iolog\n1 /a add\n1 /a open\n1 /a read 8192 1808\n1 /a close\n";
        assert_eq!(
            logs(&job),
            [("0.log".into(), first.into()), ("1.log".into(), second.to_owned())]
        );
    }

    #[test]
    fn as_fast_as_possible_is_without_times() {
        let trace = trace("0,one,/a,read,0,4096\n900,one,/a,read,4096,4096\n900,two,/a,read,0,1\n");
        let job = Job::of(&trace, false).expect("one");
        assert!(!job.file().contains("startdelay"));
        assert!(logs(&job)[0].1.contains("\n1 /a read 4096 4096\n"));
    }

    #[test]
    fn a_closed_file_is_opened_again_and_each_is_closed_after_its_last_read() {
        let trace = trace("0,p,/a,read,0,1\n1,p,/a,close\n2,p,/a,read,1,1\n3,p,/b,read,0,1\n");
        let job = Job::of(&trace, false).expect("one");
        let log = &logs(&job)[0].1;
        let actions: Vec<&str> =
            log.lines().skip(1).filter_map(|line| line.split(' ').nth(2)).collect();
        let expected = "add open read close open read close add open read close";
        assert_eq!(actions.join(" "), expected);
    }

    #[test]
    fn nothing_is_written_and_what_is_left_out_is_counted() {
        let long = "x".repeat(256);
        let trace = trace(&format!(
            "0,p,/a,read,0,1\n1,p,/a,write,0,99\n2,p,/with blank,read,0,1\n3,p,{long},read,0,1\n4,p,/a,read,99999,1\n5,p,/a,advise random\n"
        ));
        let job = Job::of(&trace, true).expect("one");
        assert_eq!(job.left_out(), LeftOut { writes: 1, unnameable: 2 });
        let log = &logs(&job)[0].1;
        assert_eq!(log.lines().count(), 5, "{log}");
        assert_eq!(job.files().map(|file| &*file.name).collect::<Vec<_>>(), ["/a"]);
    }

    #[test]
    fn names_of_processes_mean_nothing_in_a_job_file() {
        let trace = trace("0,\"x]\u{1b}[global]; #= 1/2\",/a,read,0,1\n");
        let file = Job::of(&trace, true).expect("one").file();
        assert!(file.contains("\n[0 x___global__ __ 1/2]\n"), "{file}");
    }

    #[test]
    fn a_trace_without_reads_or_of_too_many_processes_is_refused() {
        let refused = |records: &str| {
            let trace = trace(records);
            Job::of(&trace, true).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert!(refused("0,p,/a,write,0,9\n").contains("no read"));
        let many: String = (0..4097).map(|n| format!("{n},p{n},/a,read,0,1\n")).collect();
        assert!(refused(&many).contains("4097 processes"), "{}", refused(&many));
    }
}
