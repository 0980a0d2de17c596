//! Scans of mapped files: pages stay mapped behind them, and what is mapped cannot be dropped.
//!
//! The kernel can be asked to take pages out of a process's page tables and reclaim those that nobody
//! else has mapped. It cannot tell whether they are used through the mapping again and again, as those
//! of a loaded model are, so this is done only where the user wants every stream to drop behind. Parts
//! that the process may have changed privately are left alone: they would go to swap; and so is what it
//! executes.

use readahead::PAGE_BYTES;
use readahead::behind::Span;

use crate::observe::{DeviceNumber, FileKey, StreamKey};
use crate::sys::Process;

/// Takes the pages of these spans out of the stream's page tables; where that cannot be, they stay.
pub(super) fn unmap(stream: StreamKey, spans: &[Span]) {
    // Before its table of mappings is read: its number may be another's when it has ended.
    let Ok(process) = Process::open(stream.tgid) else { return };
    let table = files::table::read(format!("/proc/{}/maps", stream.tgid)).unwrap_or_default();
    let parts_of = |line| spans.iter().filter_map(move |span| part(line, stream.file, *span));
    let parts: Vec<(u64, u64)> = table.lines().flat_map(parts_of).collect();
    if !parts.is_empty() {
        // It may have ended, or be none of ours to touch.
        let _ = process.page_out(&parts);
    }
}

/// Address and length of what a line of `/proc/PID/maps` maps of the span:
/// `7f..-7f.. r--s 00010000 fe:00 131  /a/file`.
pub(super) fn part(line: &str, file: FileKey, span: Span) -> Option<(u64, u64)> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let rights = fields.next()?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end, offset) = (hex(start)?, hex(end)?, hex(fields.next()?)?);
    let (major, minor) = fields.next()?.split_once(':')?;
    let dev = DeviceNumber { major: hex(major)? as u32, minor: hex(minor)? as u32 };
    let ino = fields.next()?.parse().ok()?;
    let may_be_changed = rights.contains('w') && !rights.ends_with('s');
    if (FileKey { dev, ino }) != file || may_be_changed || rights.contains('x') {
        return None;
    }
    let from = (span.start * PAGE_BYTES).max(offset);
    let to = (span.end * PAGE_BYTES).min(offset.checked_add(end.checked_sub(start)?)?);
    (from < to).then(|| (start + (from - offset), to - from))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileKey = FileKey { dev: DeviceNumber { major: 0xfe, minor: 0 }, ino: 131 };

    #[test]
    fn a_mapping_is_cut_to_the_span() {
        let line = "7f0000000000-7f0000010000 r--s 00004000 fe:00 131  /a file";
        let cut = |start, end| part(line, FILE, Span { start, end });
        assert_eq!(cut(0, 100), Some((0x7f00_0000_0000, 0x10000)));
        assert_eq!(cut(5, 6), Some((0x7f00_0000_1000, 0x1000)));
        assert_eq!(cut(0, 4), None);
    }

    #[test]
    fn other_files_and_private_changes_are_left_alone() {
        let span = Span { start: 0, end: 100 };
        for line in [
            "7f0000000000-7f0000010000 rw-p 00000000 fe:00 131 /a",
            "7f0000000000-7f0000010000 r--p 00000000 fe:00 132 /b",
            "7f0000000000-7f0000010000 r--p 00000000 00:00 0",
            "7f0000000000-7f0000010000 r-xp 00000000 fe:00 131 /a",
            "7f00",
            "7f0000010000-7f0000000000 r--p 00000000 fe:00 131 /turned/round",
            "0-ffffffffffffffff r--p ffffffffffffffff fe:00 131 /beyond/the/end",
        ] {
            assert_eq!(part(line, FILE, span), None, "{line}");
        }
        let private = "7f0000000000-7f0000010000 r--p 00000000 fe:00 131 /a";
        assert!(part(private, FILE, span).is_some());
    }
}
