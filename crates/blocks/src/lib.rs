//! Files of checked blocks: recordings of decisions (crates/recording) and recorded traces (crates/trace).
//!
//! ```text
//!   magic (8 bytes)  format (4)
//!   length (4)  checksum of the bytes (4)  checksum of these eight (4)  bytes (length)
//!   length (4)  ...
//! ```
//!
//! Numbers are little-endian, checksums CRC-32. The head's own checksum distinguishes a changed length from a file that
//! ends too early. So if the writer was killed or the disk was full, the file can be read up to its last complete
//! block.
//!
//! [`Place`] creates such a file: for its owner only, and never over a file of another kind. [`Draft`] leaves an older
//! file in its place for the time being.

mod block;
mod place;

use std::io::{self, Read, Write};

pub use block::{Block, fill, read, write};
pub use place::{CreateError, Draft, Place};

/// What such a file holds.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// What users call it, for example `recording`.
    pub name: &'static str,
    /// Its first bytes. They are not text, and a transfer as text changes them.
    pub magic: [u8; 8],
    /// The version of all that follows.
    pub format: u32,
}

/// How every magic of ours begins.
const OURS: &[u8] = b"\x8bbow";

/// How a file begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preamble {
    /// It is of this kind and format.
    Whole,
    /// It is of this kind, and ends before its format.
    Cut,
    /// It is of this kind, with another format.
    Format(u32),
    /// It is something else.
    Other,
}

impl Kind {
    /// Whether a file that begins like this is of this kind.
    pub fn begins(&self, start: &[u8]) -> bool {
        start.starts_with(&self.magic)
    }

    /// Writes the preamble. Returns its size in bytes.
    ///
    /// # Errors
    /// Those of the file.
    pub fn write_preamble(&self, file: &mut impl Write) -> io::Result<u64> {
        file.write_all(&self.magic)?;
        file.write_all(&self.format.to_le_bytes())?;
        Ok(self.preamble_bytes())
    }

    /// Reads the preamble.
    ///
    /// # Errors
    /// Those of the file.
    pub fn read_preamble(&self, file: &mut impl Read) -> io::Result<Preamble> {
        let (mut magic, mut format) = ([0; 8], [0; 4]);
        fill(file, &mut magic)?;
        if magic != self.magic {
            return Ok(Preamble::Other);
        }
        if fill(file, &mut format)? < format.len() {
            return Ok(Preamble::Cut);
        }
        let format = u32::from_le_bytes(format);
        Ok(if format == self.format { Preamble::Whole } else { Preamble::Format(format) })
    }

    /// Size of the preamble in bytes.
    pub fn preamble_bytes(&self) -> u64 {
        (self.magic.len() + size_of_val(&self.format)) as u64
    }
}

/// Whether a file that begins like this is of any of our kinds.
pub fn is_ours(start: &[u8]) -> bool {
    start.starts_with(OURS)
}
