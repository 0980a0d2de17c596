//! The format of the file: its preamble and its blocks.
//!
//! ```text
//!   magic (8 bytes)  format (4)
//!   length (4)  checksum of the bytes (4)  checksum of these eight (4)  bytes (length)
//!   length (4)  ...
//! ```
//!
//! Numbers are little-endian, checksums CRC-32. The head's own checksum distinguishes a changed
//! length from a file that ends too early.

use std::io::{self, Read, Write};

/// The first bytes of every recording. They are not text, and a transfer as text changes them.
pub(crate) const MAGIC: [u8; 8] = *b"\x8bbowrec\n";

/// The version of all that follows. Raise it when the header, an input or a command changes its
/// form (`tests/golden.rs` tells when).
pub(crate) const FORMAT: u32 = 4;

/// Size of a block's head in bytes.
const HEAD_BYTES: usize = 12;

/// Largest block: everything that can be queued, and a little more at the end.
pub(crate) const MOST_BYTES: usize = crate::QUEUE_BYTES + (1 << 17);

/// Result of reading a block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Block {
    /// The block is complete. The number is its size in the file in bytes.
    Whole(u64),
    /// The file ends where a block could begin.
    None,
    /// The file ends within the block.
    Cut,
    /// The block is not what was written.
    Damaged,
}

/// Writes the preamble. Returns its size in bytes.
pub(crate) fn write_preamble(file: &mut impl Write) -> io::Result<u64> {
    file.write_all(&MAGIC)?;
    file.write_all(&FORMAT.to_le_bytes())?;
    Ok((MAGIC.len() + 4) as u64)
}

/// Writes a block. Returns its size in the file in bytes.
pub(crate) fn write(file: &mut impl Write, bytes: &[u8]) -> io::Result<u64> {
    let length = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&length.to_le_bytes());
    head[4..8].copy_from_slice(&crc32fast::hash(bytes).to_le_bytes());
    let of_head = crc32fast::hash(&head[..8]);
    head[8..].copy_from_slice(&of_head.to_le_bytes());
    file.write_all(&head)?;
    file.write_all(bytes)?;
    Ok((HEAD_BYTES + bytes.len()) as u64)
}

/// Reads the next block into `bytes`.
pub(crate) fn read(file: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<Block> {
    bytes.clear();
    let mut head = [0; HEAD_BYTES];
    match fill(file, &mut head)? {
        0 => return Ok(Block::None),
        HEAD_BYTES => {}
        _ => return Ok(Block::Cut),
    }
    let number =
        |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let length = number(0) as usize;
    if crc32fast::hash(&head[..8]) != number(8) || length > MOST_BYTES {
        return Ok(Block::Damaged);
    }
    file.take(length as u64).read_to_end(bytes)?;
    match () {
        () if bytes.len() < length => Ok(Block::Cut),
        () if crc32fast::hash(bytes) != number(4) => Ok(Block::Damaged),
        () => Ok(Block::Whole((HEAD_BYTES + length) as u64)),
    }
}

/// Reads until the buffer is full or the file ends. Returns the number of bytes read.
pub(crate) fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
