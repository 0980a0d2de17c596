//! A fixed mixture of accesses, for tests that count allocations.

use readahead::{Access, DeviceCost, FileId, Hint, OpenFileId, Via, VolumeId};

use super::liar::Liar;

/// The n-th access of the mixture: sequences forward and backward, strides, random and dense reads, and faults, over
/// more files than a policy remembers.
pub(crate) fn access<T>(n: u64, trigger: T) -> Access<T> {
    let scattered = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
    let step = n / 8;
    let page = match n % 8 {
        0 => step,
        1 => 500_000_u64.saturating_sub(step),
        2 => 600_000 + 64 * step,
        3 => 900_000 - 64 * (step % 10_000),
        4 => scattered % 1_000_000,
        5 => 700_000 + scattered % 512,
        _ => 100_000 + step,
    };
    let file = if n % 8 == 4 { scattered % 500 } else { n % 4 };
    Access {
        file: FileId(file),
        volume: VolumeId(1),
        open_file: OpenFileId(file),
        page,
        request: 1 + (scattered % 40) as u32,
        previous: page.checked_sub(1),
        trigger,
        via: if n % 8 == 7 { Via::Mmap } else { Via::Read },
        hint: Hint::Normal,
        file_pages: 1_000_000,
        kernel_window: 32,
        now: n * 1_000,
    }
}

/// The page cache and device of the n-th access.
pub(crate) fn view(n: u64) -> Liar {
    Liar {
        seed: n,
        bluntness: 6,
        cost: if n.is_multiple_of(2) { DeviceCost::FLASH } else { DeviceCost::DISK },
        room_pages: 100_000,
        thrashing: 20_000,
    }
}
