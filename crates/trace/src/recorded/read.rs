//! Reads a trace as far as it is complete.

use std::collections::HashMap;
use std::io::Read;

use blocks::{Block, Preamble};
use readahead::Nanos;

use super::expand::expand;
use super::item::{Brought, Completed, Header, Item, Operation, Run};
use super::{KIND, MAX_OPERATIONS, MAX_REQUESTS, MAX_WINDOWS, OLDER_FORMATS};
use crate::error::RecordedError;
use crate::{
    MAX_FILE_BYTES, MAX_NAME_BYTES, MAX_NAMES, Origin, Record, Request, Trace, TraceError, TraceOp,
    TracedFile, Window, names,
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
    windows: Vec<Window>,
    /// The number of each process's last window, of which the next one may be a part.
    last_windows: HashMap<u32, usize>,
    devices: Vec<String>,
    device_names: Names,
    requests: Vec<Request>,
    /// The time of the last run, window or request in the file.
    last_at: Nanos,
    lost: u64,
    lost_pages: u64,
    lost_requests: u64,
    /// Operations that reach beyond what can be simulated.
    left_out: u64,
    is_complete: bool,
}

/// Reads a trace from its first byte on.
pub(crate) fn read(file: &mut impl Read) -> Result<Trace, TraceError> {
    match KIND.read_preamble(file).map_err(RecordedError::from)? {
        Preamble::Whole => {}
        Preamble::Format(older) if OLDER_FORMATS.contains(&older) => {}
        Preamble::Other => return Err(RecordedError::OtherKind.into()),
        Preamble::Cut => return Err(RecordedError::CutHeader.into()),
        Preamble::Format(found) => return Err(RecordedError::Format(found).into()),
    }
    let mut block = Vec::new();
    let header_at = KIND.preamble_bytes();
    let mut at_byte = header_at;
    match blocks::read(file, &mut block).map_err(RecordedError::from)? {
        Block::Whole(bytes) => at_byte += bytes,
        Block::None | Block::Cut => return Err(RecordedError::CutHeader.into()),
        Block::Damaged => return Err(RecordedError::Damaged { at_byte }.into()),
    }
    let header: Header =
        postcard::from_bytes(&block).map_err(|_| RecordedError::Damaged { at_byte: header_at })?;
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
                Item::Window(brought) => self.add_window(&brought)?,
                Item::LostPages(pages) => self.lost_pages = self.lost_pages.checked_add(pages)?,
                Item::Device { name } => {
                    self.devices.push(self.device_names.unique(&name));
                    (self.devices.len() <= MAX_NAMES).then_some(())?;
                }
                Item::Request(completed) => self.add_request(&completed)?,
                Item::LostRequests(requests) => self.lose_requests(requests)?,
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
        let is_known = self.knows(process, file);
        let has_room = (self.runs.len() as u64) < MAX_OPERATIONS;
        if calls == 0 || !is_known || !has_room {
            return None;
        }
        let op = TraceOp::from(op);
        let record = Record { at, took, process, file, op, offset, bytes };
        let run = Run { record, calls, lasted };
        if !run.is_within_limits() {
            self.left_out += u64::from(calls);
            return Some(());
        }
        if op.has_place() && bytes > 0 {
            let seen = &mut self.ends[file as usize];
            *seen = record.end().max(*seen);
        }
        self.runs.push(run);
        Some(())
    }

    fn knows(&self, process: u32, file: u32) -> bool {
        (process as usize) < self.processes.len() && (file as usize) < self.files.len()
    }

    fn add_window(&mut self, brought: &Brought) -> Option<()> {
        let Brought { since, process, file, why, first, pages, skipped, asked } = *brought;
        let at = self.last_at.wrapping_add(since as u64);
        self.last_at = at;
        let has_room = (self.windows.len() as u64) < MAX_WINDOWS;
        if !has_room || !self.knows(process, file) {
            return None;
        }
        // Too large sums are beyond the limits.
        let range = |first: u64, pages| first..first.saturating_add(pages);
        let (pages, asked) = (range(first, pages), range(first.saturating_add(skipped), asked));
        let asked = if asked.is_empty() { first..first } else { asked };
        let reason = why.into();
        let window = Window { at, process: Some(process), file, pages, asked, reason };
        if !window.is_within_limits() {
            self.lost_pages = self.lost_pages.checked_add(window.len())?;
            return Some(());
        }
        let last = self.last_windows.get(&process).map(|last| &mut self.windows[*last]);
        if !last.is_some_and(|last| last.extend(&window)) {
            self.last_windows.insert(process, self.windows.len());
            self.windows.push(window);
        }
        Some(())
    }

    fn add_request(&mut self, completed: &Completed) -> Option<()> {
        let Completed { since, took, device, what, bytes } = *completed;
        let at = self.last_at.wrapping_add(since as u64);
        self.last_at = at;
        let has_room = (self.requests.len() as u64) < MAX_REQUESTS;
        if !has_room || device as usize >= self.devices.len() {
            return None;
        }
        let request = Request { at, took, device, op: what.into(), bytes };
        if !request.is_within_limits() {
            return self.lose_requests(1);
        }
        self.requests.push(request);
        Some(())
    }

    fn lose_requests(&mut self, requests: u64) -> Option<()> {
        self.lost_requests = self.lost_requests.checked_add(requests)?;
        Some(())
    }

    fn into_trace(mut self, header: Header) -> Result<Trace, TraceError> {
        self.leave_out_largest();
        self.choose_sizes();
        let (records, calls_per_record) = expand(&self.runs);
        let origin = Origin {
            bowwave: names::plain(&header.bowwave).into_owned(),
            kernel: names::plain(&header.kernel).into_owned(),
            date: names::plain(&header.date).into_owned(),
            lost: self.lost,
            lost_pages: self.lost_pages,
            lost_requests: self.lost_requests,
            left_out: self.left_out,
            is_complete: self.is_complete,
            calls_per_record,
        };
        let mut trace = Trace {
            files: self.files,
            processes: self.processes,
            records,
            windows: self.windows,
            devices: self.devices,
            requests: self.requests,
            origin: Some(origin),
        };
        if !trace.records.iter().any(|record| trace.has_bytes(record)) {
            return Err(match self.left_out {
                0 => RecordedError::NothingRead,
                _ => RecordedError::NothingWithinLimits,
            }
            .into());
        }
        trace.put_in_order();
        Ok(trace)
    }

    /// Leaves out the operations on the largest files until what is read of all others fits the simulator.
    fn leave_out_largest(&mut self) {
        let mut sum: u128 = self.ends.iter().map(|end| u128::from(*end)).sum();
        let mut largest_last: Vec<usize> = (0..self.ends.len()).collect();
        largest_last.sort_by_key(|file| self.ends[*file]);
        let mut is_left_out = vec![false; self.ends.len()];
        while sum > MAX_FILE_BYTES.into() {
            let Some(file) = largest_last.pop() else { break };
            sum -= u128::from(std::mem::take(&mut self.ends[file]));
            self.files[file].bytes = 0;
            is_left_out[file] = true;
        }
        self.runs.retain(|run| {
            let is_out = is_left_out[run.record.file as usize];
            self.left_out += if is_out { run.calls.into() } else { 0 };
            !is_out
        });
        self.windows.retain(|window| {
            let is_out = is_left_out[window.file as usize];
            let pages = if is_out { window.len() } else { 0 };
            self.lost_pages = self.lost_pages.saturating_add(pages);
            !is_out
        });
    }

    /// A file ends where the recorder saw its end, or where its last operation does, if that is later. A machine may
    /// have larger files than the simulator: then all files end with their last operation.
    fn choose_sizes(&mut self) {
        let ends = self.files.iter().zip(&self.ends);
        // A file that nobody reads or writes needs no room.
        let whole = ends.map(|(file, end)| if *end > 0 { file.bytes.max(*end) } else { 0 });
        let sum = whole.clone().try_fold(0u64, u64::checked_add);
        let is_small = sum.is_some_and(|sum| sum <= MAX_FILE_BYTES);
        let sizes: Vec<u64> = if is_small { whole.collect() } else { self.ends.clone() };
        for (file, bytes) in self.files.iter_mut().zip(sizes) {
            file.bytes = bytes;
        }
    }
}

/// Room for the number behind a double.
const NUMBER_BYTES: usize = 16;

/// Names that are taken, each with the number behind its next double.
#[derive(Default)]
struct Names(HashMap<String, u32>);

impl Names {
    /// The name without control characters and blanks around it, and no longer than names are; with a number behind it
    /// if it is taken.
    fn unique(&mut self, name: &str) -> String {
        let name = names::plain(name);
        let name = names::cut(&name, MAX_NAME_BYTES - NUMBER_BYTES);
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
