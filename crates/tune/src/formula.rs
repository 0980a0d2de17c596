//! The read-ahead size that a device's capacity suggests, as proposed for the kernel in 2011.
//!
//! ```text
//!   capacity   64 MiB   256 MiB   1 GiB   4 GiB   16 GiB   64 GiB   256 GiB   1 TiB
//!   KiB            64       128     256     512     1024     2048      4096    8192
//! ```
//!
//! The window doubles for every fourfold capacity. This is a guess from the days when small devices
//! were slow. A measurement is better; the formula serves where none is possible. The proposal left
//! devices below 256 KiB undefined; here they get one page.

/// Sectors of 512 bytes in the formula's unit of 256 KiB, as a power of two.
const UNIT_SECTORS_LOG2: u32 = 9;

/// KiB in a page.
const PAGE_KB: u64 = 4;

/// Read-ahead in KiB for a device of `bytes` bytes.
pub fn readahead_kb(bytes: u64) -> u64 {
    let sectors = bytes / 512;
    let units = sectors >> UNIT_SECTORS_LOG2;
    let doublings = units.checked_ilog2().unwrap_or(0) / 2;
    PAGE_KB << doublings
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;
    const TIB: u64 = 1 << 40;

    #[test]
    fn every_size_of_the_proposal() {
        let published = [
            (505_000, 4),
            (MIB, 8),
            (4 * MIB, 16),
            (16 * MIB, 32),
            (64_000_000, 32),
            (64 * MIB, 64),
            (255 * MIB, 64),
            (256 * MIB, 128),
            (GIB, 256),
            (2_000_000_000, 256),
            (4_000_000_000, 256),
            (4 * GIB, 512),
            (16 * GIB, 1024),
            (22_000_000_000, 1024),
            (32_000_000_000, 1024),
            (64 * GIB, 2048),
            (80_000_000_000, 2048),
            (256 * GIB, 4096),
            (TIB, 8192),
        ];
        for (bytes, kb) in published {
            assert_eq!(readahead_kb(bytes), kb, "{bytes} bytes");
        }
    }

    #[test]
    fn sizes_the_proposal_left_undefined_get_a_page() {
        for bytes in [0, 1, 512, 255 * KIB, 256 * KIB, 256 * KIB - 512] {
            assert_eq!(readahead_kb(bytes), 4, "{bytes} bytes");
        }
    }

    #[test]
    fn the_largest_devices_do_not_overflow() {
        assert_eq!(readahead_kb(2 * TIB), 8192);
        assert_eq!(readahead_kb(4 * TIB), 16_384);
        assert_eq!(readahead_kb(u64::MAX), 4 << 22, "16 EiB less a byte");
    }
}
