//! Turns the structs that the eBPF programs share with us into ours, and back. They are generated from
//! `programs/interface.h`.
#![allow(unsafe_code)]

use controller::ids::{CgroupId, DeviceNumber, FileKey, FileRef, OpenFile, StreamKey};
use controller::{
    Access, Advice, DirectoryRef, FileMiss, Input, Interest, Kind, Listening, Passed,
};
use readahead::Past;
use readahead::behind::{Block, Span};

use super::bpf::types::{
    block, block_key, event, file_key, file_state, file_system, mark, mark_key, stream, stream_key,
};
use super::{Observed, OfCommand, Spender};

/// A struct that is shared as bytes.
///
/// # Safety
/// It is `repr(C)`, and consists of integers without padding.
pub(super) unsafe trait Shared: Copy {}

// SAFETY: `interface.h` names all padding, and asserts the sizes of these structs.
unsafe impl Shared for block {}
unsafe impl Shared for block_key {}
unsafe impl Shared for event {}
unsafe impl Shared for file_key {}
unsafe impl Shared for file_state {}
unsafe impl Shared for file_system {}
unsafe impl Shared for mark {}
unsafe impl Shared for mark_key {}
unsafe impl Shared for stream {}
unsafe impl Shared for stream_key {}

/// The bytes of a struct.
pub(super) fn bytes_of<T: Shared>(value: &T) -> &[u8] {
    // SAFETY: all bytes of a `Shared` are initialized, and the slice borrows it.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// The struct at the start of these bytes; `None` if they are too few.
fn read<T: Shared>(bytes: &[u8]) -> Option<T> {
    // SAFETY: there are enough bytes, and any of them make a valid `Shared`.
    (bytes.len() >= size_of::<T>()).then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

// As in programs/interface.h, which says what they mean.
const NO_PAGE: u64 = u64::MAX;
const FLAG_RANDOM: u8 = 1;
const FLAG_SEQUENTIAL: u8 = 2;
const FLAG_MMAP: u8 = 4;
const FLAG_NOREUSE: u8 = 8;
const FLAG_WRITTEN: u8 = 64;
const FLAG_FOREGROUND: u8 = 128;
const KIND_FILE: u8 = 4;
const RULE_FRESH: u8 = 0x80;
const KIND_PASSED: u8 = 16;

const MARKED_INODES_LOG2: u32 = 12;
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

/// Decodes an event into its inputs: a miss of a file's first page also names the file's directory. Bytes that are no
/// event give none.
pub(super) fn decode_event(bytes: &[u8]) -> impl Iterator<Item = Observed> {
    let inputs = read(bytes).map(|event| {
        let both = [file_miss(&event).map(Input::FileMiss), access_or_passed(&event)];
        let spender = Spender { cgroup: event.spender_cgroup, uid: event.spender_uid };
        let command = usize::from(event.rule & !RULE_FRESH).checked_sub(1);
        let is_fresh = event.rule & RULE_FRESH != 0;
        let command = command.map(|command| OfCommand { command, is_fresh });
        let observed = move |input| Observed { at: event.now_ns, input, spender, command };
        both.into_iter().flatten().map(observed)
    });
    inputs.into_iter().flatten()
}

fn file_of(event: &event) -> FileRef {
    let file = FileKey { ino: event.ino, dev: DeviceNumber::from_kernel(event.dev) };
    FileRef { file, generation: event.generation, tgid: event.tgid }
}

/// The file and directory; `None` if the event names no directory.
fn file_miss(event: &event) -> Option<FileMiss> {
    if event.directory == 0 || !matches!(event.kind, 0 | KIND_FILE) {
        return None;
    }
    let of = file_of(event);
    let key = FileKey { ino: event.directory, dev: of.file.dev };
    Some(FileMiss {
        of,
        cgroup: CgroupId::default(),
        directory: DirectoryRef { key, generation: event.directory_generation },
        file_bytes: event.file_bytes,
        request_pages: event.request_pages,
    })
}

/// `None` if the event only names a directory, or is of no known kind.
fn access_or_passed(event: &event) -> Option<Input> {
    let of = file_of(event);
    let has = |flag: u8| event.flags & flag != 0;
    let (cgroup, file_bytes, mapped) = (CgroupId::default(), event.file_bytes, has(FLAG_MMAP));
    if event.kind == KIND_PASSED {
        let span = Span { start: event.mark_first, end: event.mark_last };
        let (written, foreground) = (has(FLAG_WRITTEN), has(FLAG_FOREGROUND));
        let passed = Passed { of, cgroup, file_bytes, written, mapped, foreground, span };
        return Some(Input::Passed(passed));
    }
    let kind = match event.kind {
        0 => Kind::Miss,
        1 => Kind::KernelMark,
        2 => Kind::Mark,
        3 => Kind::Fault,
        _ => return None,
    };
    let past = match event.past {
        0 => Past::Unknown,
        1 => Past::Evicted,
        2 => Past::EvictedNext,
        3 => Past::EvictedUnused,
        _ => return None,
    };
    Some(Input::Access(Access {
        kind,
        of,
        open_file: (event.open_file != 0).then_some(OpenFile(event.open_file)),
        cgroup,
        page: event.page,
        request_pages: event.request_pages,
        previous: (event.previous != NO_PAGE).then_some(event.previous),
        file_bytes,
        kernel_window: event.kernel_window,
        mapped,
        advice: Advice {
            random: has(FLAG_RANDOM),
            sequential: has(FLAG_SEQUENTIAL),
            noreuse: has(FLAG_NOREUSE),
        },
        past,
        mark: (kind == Kind::Mark).then_some((event.mark_first, event.mark_last)),
    }))
}

pub(super) fn encode_interest(interest: Interest) -> file_system {
    match interest {
        Interest::All => file_system { interest: 1, most_window: 0 },
        Interest::NotForward { most_window } => file_system { interest: 2, most_window },
    }
}

pub(super) fn encode_file_key(FileKey { ino, dev }: FileKey) -> file_key {
    file_key { ino, dev: dev.to_kernel(), reserved: 0 }
}

pub(super) fn encode_mark_key(FileKey { ino, dev }: FileKey, chunk: u64) -> mark_key {
    mark_key { ino, chunk, dev: dev.to_kernel(), reserved: 0 }
}

pub(super) fn encode_block_key(FileKey { ino, dev }: FileKey, block: u64) -> block_key {
    block_key { ino, block, dev: dev.to_kernel(), reserved: 0 }
}

pub(super) fn encode_stream_key(stream: StreamKey) -> stream_key {
    stream_key {
        ino: stream.file.ino,
        dev: stream.file.dev.to_kernel(),
        tgid: stream.tgid,
        written: u32::from(stream.written) * u32::from(FLAG_WRITTEN),
        reserved: 0,
    }
}

pub(super) fn encode_listening(listening: Listening) -> file_state {
    file_state {
        marked_chunks: listening.marked_chunks,
        muted_until_ns: listening.muted_until,
        managed: listening.managed.into(),
        reserved: 0,
    }
}

/// Decodes `struct block`; `None` if the bytes are invalid or from another epoch.
pub(super) fn decode_block(bytes: &[u8], epoch: u32) -> Option<Block> {
    let block { brought, used, owner, epoch: of_block } = read(bytes)?;
    (of_block == epoch).then_some(Block { brought, used, owner })
}

/// Decodes the pages touched from `struct stream`.
pub(super) fn decode_touched(bytes: &[u8]) -> Option<Span> {
    let stream { low, high, .. } = read(bytes)?;
    Some(Span { start: low, end: high })
}

#[cfg(test)]
mod tests {
    use controller::Nanos;

    use super::*;

    fn decoded(event: &event) -> Vec<(Nanos, Input)> {
        decode_event(bytes_of(event)).map(|observed| (observed.at, observed.input)).collect()
    }

    #[test]
    fn an_event_is_decoded_field_by_field() {
        let fault = event {
            now_ns: 7,
            ino: 131,
            page: 23,
            previous: NO_PAGE,
            file_bytes: 8191,
            dev: 7 << 20 | 3,
            request_pages: 16,
            kind: 3,
            flags: FLAG_MMAP | FLAG_NOREUSE,
            past: 3,
            spender_uid: 1000,
            spender_cgroup: 5,
            rule: 2 | RULE_FRESH,
            ..event::default()
        };
        let of_command = OfCommand { command: 1, is_fresh: true };
        let whose: Vec<_> =
            decode_event(bytes_of(&fault)).map(|it| (it.spender, it.command)).collect();
        assert_eq!(whose, [(Spender { cgroup: 5, uid: 1000 }, Some(of_command))]);
        let [(7, Input::Access(access))] = decoded(&fault)[..] else { panic!("an access") };
        assert_eq!(access.of.file.ino, 131);
        assert_eq!(access.of.file.dev, DeviceNumber { major: 7, minor: 3 });
        assert_eq!((access.page, access.request_pages, access.previous), (23, 16, None));
        assert_eq!((access.file_bytes, access.open_file, access.mark), (8191, None, None));
        assert_eq!(access.kind, Kind::Fault);
        assert!(access.mapped && !access.advice.random && access.advice.noreuse);
        assert_eq!(access.past, Past::EvictedUnused);
    }

    #[test]
    fn a_miss_of_a_first_page_also_names_the_directory() {
        let miss = event { directory: 2, directory_generation: 9, ..event::default() };
        let [(0, Input::FileMiss(of_file)), (0, Input::Access(_))] = decoded(&miss)[..] else {
            panic!("two inputs")
        };
        assert_eq!((of_file.directory.key.ino, of_file.directory.generation), (2, 9));
        let named = event { kind: KIND_FILE, ..miss };
        assert!(matches!(decoded(&named)[..], [(0, Input::FileMiss(_))]));
    }

    #[test]
    fn a_passed_event_has_the_pages_passed() {
        let (kind, flags) = (KIND_PASSED, FLAG_WRITTEN);
        let step = event { kind, flags, mark_first: 1024, mark_last: 2048, ..event::default() };
        let [(0, Input::Passed(passed))] = decoded(&step)[..] else { panic!("a step") };
        assert_eq!(passed.span, Span { start: 1024, end: 2048 });
        assert!(passed.written && !passed.foreground);
    }

    #[test]
    fn a_truncated_or_unknown_event_is_refused() {
        let unknown = event { kind: 9, ..event::default() };
        assert!(decoded(&unknown).is_empty());
        let bytes = bytes_of(&unknown);
        assert!(decode_event(&bytes[1..]).next().is_none());
    }
}
