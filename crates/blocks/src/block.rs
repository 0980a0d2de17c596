//! Blocks: their length, their checksums, their bytes.

use std::io::{self, Read, Write};

/// Size of a block's head in bytes.
const HEAD_BYTES: usize = 12;

/// Largest block: all that a recorder queues (4 MiB), and a little more at the end.
const MOST_BYTES: usize = (4 << 20) + (1 << 17);

/// Result of reading a block.
#[derive(Debug, PartialEq, Eq)]
pub enum Block {
    /// The block is complete. The number is its size in the file in bytes.
    Whole(u64),
    /// The file ends where a block could begin.
    None,
    /// The file ends within the block.
    Cut,
    /// The block is not what was written.
    Damaged,
}

/// Writes a block of at most 4 MiB. Returns its size in the file in bytes.
///
/// # Errors
/// Those of the file; `InvalidInput` if the block is larger.
pub fn write(file: &mut impl Write, bytes: &[u8]) -> io::Result<u64> {
    if bytes.len() > MOST_BYTES {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
    head[4..8].copy_from_slice(&crc32fast::hash(bytes).to_le_bytes());
    let of_head = crc32fast::hash(&head[..8]);
    head[8..].copy_from_slice(&of_head.to_le_bytes());
    file.write_all(&head)?;
    file.write_all(bytes)?;
    Ok((HEAD_BYTES + bytes.len()) as u64)
}

/// Reads the next block into `bytes`.
///
/// # Errors
/// Those of the file.
pub fn read(file: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<Block> {
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
///
/// # Errors
/// Those of the file.
pub fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
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
