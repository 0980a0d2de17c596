//! Encodes and decodes the structs that the eBPF programs share with us: mirrors `bpf/interface.h`.

use controller::ids::{CgroupId, DeviceNumber, FileKey, FileRef, OpenFile, StreamKey};
use controller::{
    Access, Advice, DirectoryRef, FileMiss, Input, Interest, Kind, Listening, Nanos, Passed,
};
use readahead::Past;
use readahead::behind::{Block, Span};

pub(super) const DISK_SLOTS: usize = 64;

/// Size of `struct event`.
pub(super) const EVENT_BYTES: usize = 104;

const NO_PAGE: u64 = u64::MAX;
const FLAG_RANDOM: u8 = 1;
const FLAG_SEQUENTIAL: u8 = 2;
const FLAG_MMAP: u8 = 4;
const FLAG_NOREUSE: u8 = 8;
const FLAG_WRITTEN: u8 = 64;
const FLAG_FOREGROUND: u8 = 128;
const KIND_FILE: u8 = 4;
const KIND_PASSED: u8 = 16;

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

/// Decodes the file and directory in a `struct event`; `None` if it names no directory.
pub(super) fn decode_file_miss(bytes: &[u8]) -> Option<(Nanos, Input)> {
    let bytes: &[u8; EVENT_BYTES] = bytes.get(..EVENT_BYTES)?.try_into().ok()?;
    let long = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    let dev = DeviceNumber::from_kernel(word(48));
    let directory = long(88);
    if directory == 0 || !matches!(bytes[68], 0 | KIND_FILE) {
        return None;
    }
    let miss = FileMiss {
        of: FileRef { file: FileKey { ino: long(8), dev }, generation: word(52), tgid: word(56) },
        cgroup: CgroupId::default(),
        directory: DirectoryRef { key: FileKey { ino: directory, dev }, generation: word(96) },
        file_bytes: long(32),
        request_pages: word(60),
    };
    Some((long(0), Input::FileMiss(miss)))
}

/// Decodes `struct event` into its time and input; `None` if the bytes are invalid, or if the event only names a
/// directory. Leaves out the reader's cgroup.
pub(super) fn decode_event(bytes: &[u8]) -> Option<(Nanos, Input)> {
    let bytes: &[u8; EVENT_BYTES] = bytes.get(..EVENT_BYTES)?.try_into().ok()?;
    let long = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    let (kind, flags) = (bytes[68], bytes[69]);
    let file = FileKey { ino: long(8), dev: DeviceNumber::from_kernel(word(48)) };
    let of = FileRef { file, generation: word(52), tgid: word(56) };
    let (cgroup, file_bytes) = (CgroupId::default(), long(32));
    let (first, last) = (long(72), long(80));
    let mapped = flags & FLAG_MMAP != 0;
    if kind == KIND_PASSED {
        let span = Span { start: first, end: last };
        let (written, foreground) = (flags & FLAG_WRITTEN != 0, flags & FLAG_FOREGROUND != 0);
        let passed = Passed { of, cgroup, file_bytes, written, mapped, foreground, span };
        return Some((long(0), Input::Passed(passed)));
    }
    let kind = match kind {
        0 => Kind::Miss,
        1 => Kind::KernelMark,
        2 => Kind::Mark,
        3 => Kind::Fault,
        _ => return None,
    };
    let past = match bytes[70] {
        0 => Past::Unknown,
        1 => Past::Evicted,
        2 => Past::EvictedNext,
        3 => Past::EvictedUnused,
        _ => return None,
    };
    let (previous, open_file) = (long(24), long(40));
    let access = Access {
        kind,
        of,
        open_file: (open_file != 0).then_some(OpenFile(open_file)),
        cgroup,
        page: long(16),
        request_pages: word(60),
        previous: (previous != NO_PAGE).then_some(previous),
        file_bytes,
        kernel_window: word(64),
        mapped,
        advice: Advice {
            random: flags & FLAG_RANDOM != 0,
            sequential: flags & FLAG_SEQUENTIAL != 0,
            noreuse: flags & FLAG_NOREUSE != 0,
        },
        past,
        mark: (kind == Kind::Mark).then_some((first, last)),
    };
    Some((long(0), Input::Access(access)))
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

/// Decodes `struct block`; `None` if the bytes are invalid or from another epoch.
pub(super) fn decode_block(bytes: &[u8], epoch: u32) -> Option<Block> {
    let bytes: &[u8; 24] = bytes.try_into().ok()?;
    let long = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    let block = Block { brought: long(0), used: long(8), owner: word(16) };
    (word(20) == epoch).then_some(block)
}

/// Decodes the pages touched from `struct stream`.
pub(super) fn decode_touched(bytes: &[u8]) -> Option<Span> {
    let bytes: &[u8; 80] = bytes.try_into().ok()?;
    let long = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    Some(Span { start: long(24), end: long(32) })
}

/// Encodes `struct file_state`.
pub(super) fn encode_listening(listening: Listening) -> [u8; 24] {
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&listening.marked_chunks.to_ne_bytes());
    bytes[8..16].copy_from_slice(&listening.muted_until.to_ne_bytes());
    bytes[16..20].copy_from_slice(&u32::from(listening.managed).to_ne_bytes());
    bytes
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
        bytes[70] = 3;
        let (at, input) = decode_event(&bytes).expect("a whole event");
        let Input::Access(access) = input else { panic!("{input:?} is no access") };
        assert_eq!(at, 7);
        assert_eq!(access.of.file.ino, 131);
        assert_eq!(access.of.file.dev, DeviceNumber { major: 7, minor: 3 });
        assert_eq!((access.page, access.request_pages, access.previous), (23, 16, None));
        assert_eq!((access.file_bytes, access.open_file, access.mark), (8191, None, None));
        assert_eq!(access.kind, Kind::Fault);
        assert!(access.mapped && !access.advice.random && access.advice.noreuse);
        assert_eq!(access.past, Past::EvictedUnused);
    }

    #[test]
    fn a_passed_event_has_the_pages_passed() {
        let mut bytes = [0u8; EVENT_BYTES];
        bytes[68] = KIND_PASSED;
        bytes[69] = FLAG_WRITTEN;
        bytes[72..80].copy_from_slice(&1024u64.to_ne_bytes());
        bytes[80..88].copy_from_slice(&2048u64.to_ne_bytes());
        let Some((0, Input::Passed(passed))) = decode_event(&bytes) else { panic!("a step") };
        assert_eq!(passed.span, Span { start: 1024, end: 2048 });
        assert!(passed.written && !passed.foreground);
    }

    #[test]
    fn a_truncated_or_unknown_event_is_refused() {
        assert_eq!(decode_event(&[0; EVENT_BYTES - 1]), None);
        let mut bytes = [0u8; EVENT_BYTES];
        bytes[68] = 9;
        assert_eq!(decode_event(&bytes), None);
    }
}
