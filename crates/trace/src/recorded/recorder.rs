//! Writes a trace while it happens.

use std::io::{self, Write};

use readahead::Nanos;

use super::item::{Brought, Completed, Header, Item, Operation, Run};
use super::{KIND, MAX_OPERATIONS, MAX_REQUESTS, MAX_WINDOWS};
use crate::{MAX_NAMES, Request, Window};

/// Usual size of a block.
const BLOCK_BYTES: usize = 64 << 10;

/// Writes a trace in blocks, the first with its header. Call [`finish`](Self::finish) to complete it.
#[derive(Debug)]
pub struct Recorder<W: Write> {
    to: W,
    /// Items that are not written yet.
    block: Vec<u8>,
    /// The time of the last run, window or request.
    last_at: Nanos,
    totals: Totals,
}

/// What a trace holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Operations, each of a run counted.
    pub operations: u64,
    /// Runs.
    pub runs: u64,
    /// Operations that were lost.
    pub lost: u64,
    /// Windows.
    pub windows: u64,
    /// The pages of these.
    pub pages: u64,
    /// Pages of windows that were lost.
    pub lost_pages: u64,
    /// Requests of devices.
    pub requests: u64,
    /// Requests that were lost.
    pub lost_requests: u64,
    /// Files.
    pub files: u32,
    /// Processes.
    pub processes: u32,
    /// Block devices.
    pub devices: u32,
    /// Size in the file.
    pub bytes: u64,
}

impl<W: Write> Recorder<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// Those of the file.
    pub fn begin(mut to: W, header: &Header) -> io::Result<Self> {
        let header = postcard::to_allocvec(header).map_err(io::Error::other)?;
        let bytes = KIND.write_preamble(&mut to)? + blocks::write(&mut to, &header)?;
        let totals = Totals { bytes, ..Totals::default() };
        Ok(Recorder { to, block: Vec::new(), last_at: 0, totals })
    }

    /// Adds a file. Returns its number, or `None` if there are [`MAX_NAMES`] already.
    pub fn file(&mut self, name: &str, bytes: u64) -> Option<u32> {
        let number = next_number(&mut self.totals.files)?;
        self.append(&Item::File { name, bytes });
        Some(number)
    }

    /// Adds a process. Returns its number, or `None` if there are [`MAX_NAMES`] already.
    pub fn process(&mut self, name: &str) -> Option<u32> {
        let number = next_number(&mut self.totals.processes)?;
        self.append(&Item::Process { name });
        Some(number)
    }

    /// Adds a block device. Returns its number, or `None` if there are [`MAX_NAMES`] already.
    pub fn device(&mut self, name: &str) -> Option<u32> {
        let number = next_number(&mut self.totals.devices)?;
        self.append(&Item::Device { name });
        Some(number)
    }

    /// Whether there are fewer than [`MAX_OPERATIONS`] runs yet.
    pub fn has_room(&self) -> bool {
        self.totals.runs < MAX_OPERATIONS
    }

    /// Adds operations, in any order of time. What could not be read back counts as lost: more than [`MAX_OPERATIONS`]
    /// runs, and what reaches beyond the limits of a trace.
    ///
    /// # Errors
    /// Those of the file.
    pub fn run(&mut self, run: &Run) -> io::Result<()> {
        if !self.has_room() || !run.is_within_limits() {
            return self.lose(run.calls.into());
        }
        let record = &run.record;
        let all = Operation {
            since: record.at.wrapping_sub(self.last_at) as i64,
            took: record.took,
            process: record.process,
            file: record.file,
            op: record.op.into(),
            offset: record.offset,
            bytes: record.bytes,
        };
        self.append(&match run.calls {
            1 => Item::Once(all),
            calls => Item::Run { all, calls, lasted: run.lasted },
        });
        self.last_at = record.at;
        self.totals.runs += 1;
        self.totals.operations += u64::from(run.calls);
        self.write_if(BLOCK_BYTES)
    }

    /// Notes that operations were lost here.
    ///
    /// # Errors
    /// Those of the file.
    pub fn lose(&mut self, operations: u64) -> io::Result<()> {
        self.append(&Item::Lost(operations));
        self.totals.lost += operations;
        self.write_if(BLOCK_BYTES)
    }

    /// Adds pages that the kernel brought in, in any order of time. Parts of one window that come one after the other,
    /// with the same time, are read back as one. What could not be read back counts as lost: more than [`MAX_WINDOWS`],
    /// what reaches beyond the limits of a trace, and a window without a process.
    ///
    /// # Errors
    /// Those of the file.
    pub fn window(&mut self, window: &Window) -> io::Result<()> {
        let has_room = self.totals.windows < MAX_WINDOWS && window.is_within_limits();
        let Some(process) = window.process.filter(|_| has_room) else {
            return self.lose_pages(window.len());
        };
        let asked = window.asked.end.saturating_sub(window.asked.start);
        self.append(&Item::Window(Brought {
            since: window.at.wrapping_sub(self.last_at) as i64,
            process,
            file: window.file,
            why: window.reason.into(),
            first: window.pages.start,
            pages: window.len(),
            skipped: if asked > 0 { window.asked.start - window.pages.start } else { 0 },
            asked,
        }));
        self.last_at = window.at;
        self.totals.windows += 1;
        self.totals.pages += window.len();
        self.write_if(BLOCK_BYTES)
    }

    /// Notes that so many pages of windows were lost here.
    ///
    /// # Errors
    /// Those of the file.
    pub fn lose_pages(&mut self, pages: u64) -> io::Result<()> {
        self.append(&Item::LostPages(pages));
        self.totals.lost_pages += pages;
        self.write_if(BLOCK_BYTES)
    }

    /// Adds a request of a device, in any order of time. What could not be read back counts as lost: more than
    /// [`MAX_REQUESTS`], and what reaches beyond the limits of a trace.
    ///
    /// # Errors
    /// Those of the file.
    pub fn request(&mut self, request: &Request) -> io::Result<()> {
        if self.totals.requests == MAX_REQUESTS || !request.is_within_limits() {
            return self.lose_requests(1);
        }
        self.append(&Item::Request(Completed {
            since: request.at.wrapping_sub(self.last_at) as i64,
            took: request.took,
            device: request.device,
            what: request.op.into(),
            bytes: request.bytes,
        }));
        self.last_at = request.at;
        self.totals.requests += 1;
        self.write_if(BLOCK_BYTES)
    }

    /// Notes that so many requests were lost here.
    ///
    /// # Errors
    /// Those of the file.
    pub fn lose_requests(&mut self, requests: u64) -> io::Result<()> {
        self.append(&Item::LostRequests(requests));
        self.totals.lost_requests += requests;
        self.write_if(BLOCK_BYTES)
    }

    /// Writes what was added so far, so that a kill does not lose it.
    ///
    /// # Errors
    /// Those of the file.
    pub fn flush(&mut self) -> io::Result<()> {
        self.write_if(1)
    }

    /// What was added so far, and the bytes written.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Writes the rest and the end mark.
    ///
    /// # Errors
    /// Those of the file.
    pub fn finish(mut self) -> io::Result<Totals> {
        self.append(&Item::End);
        self.flush()?;
        Ok(self.totals)
    }

    fn append(&mut self, item: &Item<&str>) {
        let written = postcard::to_extend(item, std::mem::take(&mut self.block));
        // Only a sequence of unknown length or lack of memory could make this fail.
        self.block = written.expect("an item has a known length");
    }

    /// Writes the block if it has so many bytes.
    fn write_if(&mut self, least_bytes: usize) -> io::Result<()> {
        if self.block.len() >= least_bytes {
            self.totals.bytes += blocks::write(&mut self.to, &self.block)?;
            self.to.flush()?;
            self.block.clear();
        }
        Ok(())
    }
}

fn next_number(count: &mut u32) -> Option<u32> {
    let number = *count;
    let has_room = (number as usize) < MAX_NAMES;
    *count += u32::from(has_room);
    has_room.then_some(number)
}
