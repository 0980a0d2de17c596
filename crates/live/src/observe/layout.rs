//! The contract with the kernel half, as bytes: mirrors `bpf/interface.h`.

use readahead::behind::Block;
use readahead::{DeviceNumber, FileKey};

use super::event::{Event, Kind};
use super::{Interest, StreamKey};

pub(super) const DISK_SLOTS: usize = 64;
pub(super) const CHUNK_PAGES: u64 = 32;

/// Size of `struct event`.
pub(super) const EVENT_BYTES: usize = 88;

const NO_PAGE: u64 = u64::MAX;
const FLAG_RANDOM: u8 = 1;
const FLAG_SEQUENTIAL: u8 = 2;
const FLAG_MMAP: u8 = 4;
const FLAG_NOREUSE: u8 = 8;
const FLAG_WRITTEN: u8 = 64;
const FLAG_FOREIGN: u8 = 128;

const MARKED_INODES_LOG2: u32 = 12;
/// Words of 64 bits in `marked_inodes`.
pub(super) const MARKED_INODES_WORDS: usize = 1 << (MARKED_INODES_LOG2 - 6);
const INODE_HASH: u64 = 0x9E37_79B9_7F4A_7C15;

const FAILED_INODES_LOG2: u32 = 12;

/// Index of an inode in `failed_inodes`.
pub(super) fn failed_slot(ino: u64) -> usize {
    (ino.wrapping_mul(INODE_HASH) >> (64 - FAILED_INODES_LOG2)) as usize
}

/// Word and bit of an inode in `marked_inodes`.
pub(super) fn marked_inode(ino: u64) -> (usize, u64) {
    let bit = ino.wrapping_mul(INODE_HASH) >> (64 - MARKED_INODES_LOG2);
    ((bit / 64) as usize, 1 << (bit % 64))
}

/// Decodes `struct event`; `None` if the bytes are not one.
pub(super) fn decode_event(bytes: &[u8]) -> Option<Event> {
    let bytes: &[u8; EVENT_BYTES] = bytes.get(..EVENT_BYTES)?.try_into().ok()?;
    let long = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    let (kind, flags) = (bytes[68], bytes[69]);
    let previous = long(24);
    Some(Event {
        now: long(0),
        file: FileKey { ino: long(8), dev: DeviceNumber::from_kernel(word(48)) },
        page: long(16),
        previous: (previous != NO_PAGE).then_some(previous),
        file_bytes: long(32),
        open_file: long(40),
        generation: word(52),
        tgid: word(56),
        request_pages: word(60),
        kernel_window: word(64),
        kind: decode_kind(kind, flags)?,
        mapped: flags & FLAG_MMAP != 0,
        advised_random: flags & FLAG_RANDOM != 0,
        advised_sequential: flags & FLAG_SEQUENTIAL != 0,
        advised_noreuse: flags & FLAG_NOREUSE != 0,
        window_left: u32::from(u16::from_ne_bytes([bytes[70], bytes[71]])),
        mark: (long(72), long(80)),
    })
}

fn decode_kind(kind: u8, flags: u8) -> Option<Kind> {
    Some(match kind {
        0 => Kind::Miss,
        1 => Kind::KernelMark,
        2 => Kind::Mark,
        3 => Kind::Fault,
        16 => {
            Kind::Passed { written: flags & FLAG_WRITTEN != 0, foreign: flags & FLAG_FOREIGN != 0 }
        }
        _ => return None,
    })
}

/// Encodes `enum interest`.
pub(super) fn encode_interest(interest: Interest) -> u32 {
    match interest {
        Interest::All => 1,
        Interest::NotForward => 2,
    }
}

/// Encodes `struct file_key`.
pub(super) fn encode_file_key(file: FileKey) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&file.ino.to_ne_bytes());
    bytes[8..12].copy_from_slice(&file.dev.to_kernel().to_ne_bytes());
    bytes
}

/// Encodes `struct mark_key`.
pub(super) fn encode_mark_key(file: FileKey, chunk: u64) -> [u8; 24] {
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&file.ino.to_ne_bytes());
    bytes[8..16].copy_from_slice(&chunk.to_ne_bytes());
    bytes[16..20].copy_from_slice(&file.dev.to_kernel().to_ne_bytes());
    bytes
}

/// Encodes `struct block_key`, which has the layout of `struct mark_key`.
pub(super) fn encode_block_key(file: FileKey, block: u64) -> [u8; 24] {
    encode_mark_key(file, block)
}

/// Decodes `struct block`; `None` if the bytes are not one, or one of another epoch.
pub(super) fn decode_block(bytes: &[u8], epoch: u32) -> Option<Block> {
    let bytes: &[u8; 24] = bytes.try_into().ok()?;
    let long = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    let block = Block { brought: long(0), used: long(8), owner: word(16) };
    (word(20) == epoch).then_some(block)
}

/// The pages touched, of `struct stream`.
pub(super) fn decode_touched(bytes: &[u8]) -> Option<(u64, u64)> {
    let bytes: &[u8; 80] = bytes.try_into().ok()?;
    let long = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    Some((long(24), long(32)))
}

/// Encodes `struct stream_key`.
pub(super) fn encode_stream_key(stream: StreamKey) -> [u8; 24] {
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&stream.file.ino.to_ne_bytes());
    bytes[8..12].copy_from_slice(&stream.file.dev.to_kernel().to_ne_bytes());
    bytes[12..16].copy_from_slice(&stream.tgid.to_ne_bytes());
    bytes[16..20]
        .copy_from_slice(&(u32::from(stream.written) * u32::from(FLAG_WRITTEN)).to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_decoded_field_by_field() {
        let mut bytes = [0u8; EVENT_BYTES];
        bytes[0..8].copy_from_slice(&7u64.to_ne_bytes());
        bytes[8..16].copy_from_slice(&131u64.to_ne_bytes());
        bytes[16..24].copy_from_slice(&23u64.to_ne_bytes());
        bytes[24..32].copy_from_slice(&NO_PAGE.to_ne_bytes());
        bytes[32..40].copy_from_slice(&8191u64.to_ne_bytes());
        bytes[48..52].copy_from_slice(&(7u32 << 20 | 3).to_ne_bytes());
        bytes[60..64].copy_from_slice(&16u32.to_ne_bytes());
        bytes[68] = 3;
        bytes[69] = FLAG_MMAP | FLAG_NOREUSE;
        bytes[70..72].copy_from_slice(&300u16.to_ne_bytes());
        let event = decode_event(&bytes).expect("a whole event");
        assert_eq!(event.now, 7);
        assert_eq!(event.file.ino, 131);
        assert_eq!(event.file.dev, DeviceNumber { major: 7, minor: 3 });
        assert_eq!((event.page, event.request_pages, event.previous), (23, 16, None));
        assert_eq!(event.file_bytes, 8191);
        assert_eq!(event.kind, Kind::Fault);
        assert!(event.mapped && !event.advised_random && event.advised_noreuse);
        assert_eq!(event.window_left, 300);
    }

    #[test]
    fn a_truncated_or_unknown_event_is_refused() {
        assert_eq!(decode_event(&[0; EVENT_BYTES - 1]), None);
        let mut bytes = [0u8; EVENT_BYTES];
        bytes[68] = 9;
        assert_eq!(decode_event(&bytes), None);
    }
}
