//! Reads a trace as far as it is complete.

use std::collections::HashMap;
use std::io::Read;

use blocks::{Block, Preamble};
use readahead::Nanos;

use super::expand::expand;
use super::item::{Header, Item, Operation, Run};
use super::{KIND, MAX_OPERATIONS};
use crate::error::RecordedError;
use crate::{
    MAX_FILE_BYTES, MAX_NAMES, MAX_OP_BYTES, MAX_TIME, Origin, Record, Trace, TraceError, TraceOp,
    TracedFile,
};

type Owned = Item<String>;

/// Everything up to the last whole block.
#[derive(Default)]
struct Contents {
    files: Vec<TracedFile>,
    file_names: Names,
    processes: Vec<String>,
    process_names: Names,
    /// For each file, the largest end of an operation.
    ends: Vec<u64>,
    runs: Vec<Run>,
    last_at: Nanos,
    lost: u64,
    is_complete: bool,
}

/// Reads a trace from its first byte on.
pub(crate) fn read(file: &mut impl Read) -> Result<Trace, TraceError> {
    match KIND.read_preamble(file).map_err(RecordedError::from)? {
        Preamble::Whole => {}
        Preamble::Other => return Err(RecordedError::OtherKind.into()),
        Preamble::Cut => return Err(RecordedError::CutHeader.into()),
        Preamble::Format(found) => return Err(RecordedError::Format(found).into()),
    }
    let mut block = Vec::new();
    let mut at_byte = KIND.preamble_bytes();
    match blocks::read(file, &mut block).map_err(RecordedError::from)? {
        Block::Whole(bytes) => at_byte += bytes,
        Block::None | Block::Cut => return Err(RecordedError::CutHeader.into()),
        Block::Damaged => return Err(RecordedError::Damaged { at_byte }.into()),
    }
    let header: Header =
        postcard::from_bytes(&block).map_err(|_| RecordedError::Damaged { at_byte: 12 })?;
    let mut contents = Contents::default();
    loop {
        match blocks::read(file, &mut block).map_err(RecordedError::from)? {
            Block::None | Block::Cut => break,
            Block::Whole(_) if contents.is_complete => {
                return Err(RecordedError::Damaged { at_byte }.into());
            }
            Block::Damaged => return Err(RecordedError::Damaged { at_byte }.into()),
            Block::Whole(bytes) => {
                contents.add(&block).ok_or(RecordedError::Damaged { at_byte })?;
                at_byte += bytes;
            }
        }
    }
    contents.into_trace(header)
}

impl Contents {
    /// Adds the items of a block; `None` if it is not what a recorder writes.
    fn add(&mut self, mut block: &[u8]) -> Option<()> {
        while !block.is_empty() {
            if self.is_complete {
                return None;
            }
            let (item, rest) = postcard::take_from_bytes::<Owned>(block).ok()?;
            block = rest;
            match item {
                Item::File { name, bytes } => self.add_file(&name, bytes)?,
                Item::Process { name } => {
                    let name = self.process_names.unique(&name);
                    self.processes.push(name);
                    (self.processes.len() <= MAX_NAMES).then_some(())?;
                }
                Item::Once(operation) => self.add_run(&operation, 1, 0)?,
                Item::Run { all, calls, lasted } => self.add_run(&all, calls, lasted)?,
                Item::Lost(operations) => self.lost = self.lost.checked_add(operations)?,
                Item::End => self.is_complete = true,
            }
        }
        Some(())
    }

    fn add_file(&mut self, name: &str, bytes: u64) -> Option<()> {
        let name = self.file_names.unique(name);
        self.files.push(TracedFile { name, bytes });
        self.ends.push(0);
        (self.files.len() <= MAX_NAMES).then_some(())
    }

    fn add_run(&mut self, all: &Operation, calls: u32, lasted: Nanos) -> Option<()> {
        let Operation { since, took, process, file, op, offset, bytes } = *all;
        let at = self.last_at.wrapping_add(since as u64);
        self.last_at = at;
        let end = offset.checked_add(bytes)?;
        let is_known =
            (process as usize) < self.processes.len() && (file as usize) < self.files.len();
        let is_in_time = [at, took, lasted].into_iter().all(|time| time <= MAX_TIME);
        let is_in_file = end <= MAX_FILE_BYTES && bytes / u64::from(calls.max(1)) <= MAX_OP_BYTES;
        let has_room = (self.runs.len() as u64) < MAX_OPERATIONS;
        if calls == 0 || !is_known || !is_in_time || !is_in_file || !has_room {
            return None;
        }
        let op = TraceOp::from(op);
        if op.has_place() && bytes > 0 {
            let seen = &mut self.ends[file as usize];
            *seen = end.max(*seen);
        }
        let record = Record { at, took, process, file, op, offset, bytes };
        self.runs.push(Run { record, calls, lasted });
        Some(())
    }

    fn into_trace(mut self, header: Header) -> Result<Trace, TraceError> {
        self.choose_sizes()?;
        let (records, calls_per_record) = expand(&self.runs);
        let origin = Origin {
            bowwave: header.bowwave,
            kernel: header.kernel,
            date: header.date,
            lost: self.lost,
            is_complete: self.is_complete,
            calls_per_record,
        };
        let mut trace =
            Trace { files: self.files, processes: self.processes, records, origin: Some(origin) };
        if !trace.records.iter().any(|record| trace.has_bytes(record)) {
            return Err(RecordedError::NothingRead.into());
        }
        trace.put_in_order();
        Ok(trace)
    }

    /// A file ends where the recorder saw its end, or where its last operation does, if that is later. A machine may
    /// have larger files than the simulator: then all files end with their last operation.
    fn choose_sizes(&mut self) -> Result<(), TraceError> {
        let ends = self.files.iter().zip(&self.ends);
        let whole = ends.map(|(file, end)| file.bytes.max(*end));
        let sum = whole.clone().try_fold(0u64, u64::checked_add);
        let is_small = sum.is_some_and(|sum| sum <= MAX_FILE_BYTES);
        let sizes: Vec<u64> = if is_small { whole.collect() } else { self.ends.clone() };
        for (file, bytes) in self.files.iter_mut().zip(sizes) {
            file.bytes = bytes;
        }
        crate::check_sizes(&self.files)
    }
}

/// Names that are taken, each with the number behind its next double.
#[derive(Default)]
struct Names(HashMap<String, u32>);

impl Names {
    /// The name without line breaks and blanks around it; with a number behind it if it is taken.
    fn unique(&mut self, name: &str) -> String {
        let name = name.replace('\n', "\u{fffd}");
        let name = if name.trim().is_empty() { "?" } else { name.trim() };
        let mut free = name.to_owned();
        while self.0.contains_key(&free) {
            let number = self.0.entry(name.to_owned()).or_insert(2);
            free = format!("{name} ({number})");
            *number += 1;
        }
        self.0.insert(free.clone(), 2);
        free
    }
}
