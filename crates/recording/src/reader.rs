//! Reads a recording as far as it is complete.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use blocks::{Block, Preamble};
use controller::Nanos;

use crate::KIND;
use crate::header::Header;
use crate::record::{Entry, Event, Record, decode};

/// A recording: its [header](Self::header), and an iterator over its [`Item`]s.
#[derive(Debug)]
pub struct Recording<R> {
    file: R,
    header: Header,
    /// The current block.
    block: Vec<u8>,
    read: usize,
    /// Where the current block begins in the file, and where it ends.
    begins_at: u64,
    ends_at: u64,
    last_at: Nanos,
    number: u64,
    end: Option<End>,
}

/// An item of a recording.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// An event that the controller was told, and its commands.
    Entry(Entry),
    /// This many inputs are missing here.
    Lost(u64),
}

/// How a recording ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Complete.
    Clean,
    /// The writer was killed, or the disk was full.
    Cut {
        /// Number of complete bytes.
        at_byte: u64,
    },
    /// A block is not what was written.
    Damaged {
        /// Number of complete bytes, and start of that block.
        at_byte: u64,
    },
}

/// Why a file cannot be read as a recording.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file system refuses.
    #[error("cannot read it: {0}")]
    Io(io::Error),
    /// It is not a regular file: a device or a pipe may never end.
    #[error("it is not a regular file; name a file that --record made")]
    NoFile,
    /// It is not a recording.
    #[error("it is not a recording of bowwave; name a file that --record made")]
    NotARecording,
    /// It has another format.
    #[error("it has format {0}, not {ours} as this bowwave; use the version that recorded it", ours = KIND.format)]
    Format(u32),
    /// Its header is incomplete.
    #[error("it ends within its header; nothing was recorded")]
    CutHeader,
    /// Its header is not what was written.
    #[error("its header is damaged; copy the file again, in binary mode")]
    DamagedHeader,
}

/// Not a source of the error: its message contains it.
impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        OpenError::Io(error)
    }
}

/// Whether a file that begins like this is a recording.
pub fn is_recording(start: &[u8]) -> bool {
    KIND.begins(start)
}

impl Recording<BufReader<File>> {
    /// Opens a file.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        if !std::fs::metadata(path)?.is_file() {
            return Err(OpenError::NoFile);
        }
        Self::read(BufReader::new(File::open(path)?))
    }
}

impl<R: Read> Recording<R> {
    /// Reads a recording from any source.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn read(mut file: R) -> Result<Self, OpenError> {
        match KIND.read_preamble(&mut file)? {
            Preamble::Whole => {}
            Preamble::Other => return Err(OpenError::NotARecording),
            Preamble::Cut => return Err(OpenError::CutHeader),
            Preamble::Format(format) => return Err(OpenError::Format(format)),
        }
        let mut block = Vec::new();
        let bytes = match blocks::read(&mut file, &mut block)? {
            Block::Whole(bytes) => bytes,
            Block::None | Block::Cut => return Err(OpenError::CutHeader),
            Block::Damaged => return Err(OpenError::DamagedHeader),
        };
        let header = postcard::from_bytes(&block).map_err(|_| OpenError::DamagedHeader)?;
        let ends_at = KIND.preamble_bytes() + bytes;
        Ok(Recording {
            file,
            header,
            read: block.len(),
            block,
            begins_at: ends_at,
            ends_at,
            last_at: 0,
            number: 0,
            end: None,
        })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How it ends; `None` until everything was read.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// Makes sure that there is an unread part of a block, unless the recording ends.
    fn next_block(&mut self) -> io::Result<()> {
        while self.end.is_none() && self.read == self.block.len() {
            self.begins_at = self.ends_at;
            self.read = 0;
            let at_byte = self.begins_at;
            match blocks::read(&mut self.file, &mut self.block)? {
                Block::Whole(bytes) => self.ends_at += bytes,
                Block::None | Block::Cut => self.end = Some(End::Cut { at_byte }),
                Block::Damaged => self.end = Some(End::Damaged { at_byte }),
            }
        }
        Ok(())
    }

    fn next_item(&mut self) -> io::Result<Option<Item>> {
        self.next_block()?;
        if self.end.is_some() {
            return Ok(None);
        }
        let damaged = End::Damaged { at_byte: self.begins_at };
        let Some((record, rest)) = decode(&self.block[self.read..]) else {
            self.end = Some(damaged);
            return Ok(None);
        };
        self.read = self.block.len() - rest.len();
        let (since, event, commands) = match record {
            Record::Begun { since, commands } => (since, Event::Begun, commands),
            Record::Input { since, input, commands } => (since, Event::Input(input), commands),
            Record::Finishing { since } => (since, Event::Finishing, Vec::new()),
            Record::Lost(inputs) => return Ok(Some(Item::Lost(inputs))),
            Record::End => {
                let is_last = rest.is_empty() && blocks::fill(&mut self.file, &mut [0])? == 0;
                self.end = Some(if is_last { End::Clean } else { damaged });
                return Ok(None);
            }
        };
        self.last_at = self.last_at.wrapping_add(since as u64);
        let entry = Entry { number: self.number, at: self.last_at, event, commands };
        self.number += 1;
        Ok(Some(Item::Entry(entry)))
    }
}

impl<R: Read> Iterator for Recording<R> {
    type Item = io::Result<Item>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_item().transpose();
        if matches!(next, Some(Err(_))) {
            self.end = Some(End::Cut { at_byte: self.begins_at });
        }
        next
    }
}
