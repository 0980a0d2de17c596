//! A reader of 20 MB backward in 64 KiB reads, the pattern `backward-64k`: what it asks of a device, with and without
//! bowwave.

/// Requests that it makes by itself.
pub(crate) const READS: u64 = 320;

/// The most requests that it makes if bowwave manages its reads; on a machine that is not busy, a third of that.
pub(crate) const MOST_MANAGED_READS: u64 = READS * 3 / 4;

/// The fewest requests of up to three attempts: on a busy machine, bowwave may come late for one of them.
pub(crate) fn fewest(mut attempt: impl FnMut() -> u64) -> u64 {
    let mut fewest = u64::MAX;
    for _ in 0..3 {
        if fewest >= MOST_MANAGED_READS {
            fewest = fewest.min(attempt());
        }
    }
    fewest
}
