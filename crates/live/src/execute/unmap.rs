//! Unmaps pages behind a scan of a mapped file, since mapped pages cannot be dropped.
//!
//! `process_madvise(MADV_PAGEOUT)` takes pages out of a process's page tables and reclaims those that nobody else has
//! mapped. The kernel does not tell whether a program uses them again and again through the mapping, as it does with a
//! loaded model. So this is done only if the user wants every stream to drop behind. Private writable mappings are left
//! alone, as their changes would go to swap, and so is executable code.

use linux::process::{self, Mapping, Process};
use readahead::behind::Span;
use readahead::{FileKey, PAGE_BYTES};

use controller::ids::StreamKey;

/// Takes the pages of these spans out of the page tables of the stream's process, as far as possible.
pub(super) fn unmap(stream: StreamKey, spans: &[Span]) {
    // Open the process before reading its mappings: when it ends, its number may go to another process.
    let Ok(process) = Process::open(stream.tgid) else { return };
    let mappings = process::mappings(stream.tgid);
    let parts_of = |mapping| spans.iter().filter_map(move |span| part(mapping, stream.file, *span));
    let parts: Vec<(u64, u64)> = mappings.iter().flat_map(parts_of).collect();
    if !parts.is_empty() {
        // This fails if it has ended, or if bowwave lacks the capability.
        let _ = process.page_out(&parts);
    }
}

/// Address and length, in bytes, of the part of a mapping that shows the span.
fn part(mapping: &Mapping, file: FileKey, span: Span) -> Option<(u64, u64)> {
    if mapping.file != file || mapping.is_private_writable || mapping.is_executable {
        return None;
    }
    let from = (span.start * PAGE_BYTES).max(mapping.offset);
    let to = (span.end * PAGE_BYTES).min(mapping.offset.checked_add(mapping.bytes)?);
    (from < to).then(|| (mapping.address + (from - mapping.offset), to - from))
}

#[cfg(test)]
mod tests {
    use readahead::DeviceNumber;

    use super::*;

    const FILE: FileKey = FileKey { dev: DeviceNumber { major: 0xfe, minor: 0 }, ino: 131 };

    const MAPPING: Mapping = Mapping {
        address: 0x7f00_0000_0000,
        bytes: 0x10000,
        offset: 0x4000,
        file: FILE,
        is_private_writable: false,
        is_executable: false,
    };

    #[test]
    fn a_mapping_is_cut_to_the_span() {
        let cut = |start, end| part(&MAPPING, FILE, Span { start, end });
        assert_eq!(cut(0, 100), Some((0x7f00_0000_0000, 0x10000)));
        assert_eq!(cut(5, 6), Some((0x7f00_0000_1000, 0x1000)));
        assert_eq!(cut(0, 4), None);
    }

    #[test]
    fn other_files_private_changes_and_programs_are_left_alone() {
        let whole = |mapping: &Mapping| part(mapping, FILE, Span { start: 0, end: 100 });
        for mapping in [
            Mapping { is_private_writable: true, ..MAPPING },
            Mapping { is_executable: true, ..MAPPING },
            Mapping { file: FileKey { ino: 132, ..FILE }, ..MAPPING },
            Mapping { offset: u64::MAX, ..MAPPING },
        ] {
            assert_eq!(whole(&mapping), None, "{mapping:?}");
        }
        assert!(whole(&MAPPING).is_some());
    }
}
