//! One access with all that is needed to judge it.

use super::allowance::Allowance;
use super::device::Device;
use super::kernel_window::NARROW_PAGES;
use super::rules::{Rule, Rules};
use crate::access::{Access, Trigger, Via};
use crate::cache::CacheView;

/// A reader that skips a few pages is still reading on (unaligned records, holes).
pub(super) const READ_SLACK_PAGES: u64 = 4;

/// Half of the default read-around (32 pages), and what the kernel's fault-around maps at once (16 pages).
const MMAP_SLACK_PAGES: u64 = 32;

/// How far the eBPF programs look for marks ahead of a read in progress (`CHUNKS_PER_READ`): 2 MiB. Unless the kernel's
/// window is larger, it asks a device for less at once, by default 1280 KiB at most.
const SEEN_PAGES: u64 = 512;

/// One access with all that is needed to judge it.
pub(super) struct AccessContext<'a> {
    pub(super) access: &'a Access,
    pub(super) cache: &'a dyn CacheView,
    pub(super) rules: &'a Rules,
    pub(super) device: &'a Device,
    /// The first page of the access.
    pub(super) first: u64,
    /// The page after its last.
    pub(super) end: u64,
    /// The page after the last that the kernel reads at once: it reads a long request piece by piece.
    pub(super) read_to: u64,
    /// How far two accesses may lie apart and still be neighbours, in pages.
    pub(super) slack: u64,
    /// How much may be asked for.
    pub(super) allowance: Allowance,
}

impl<'a> AccessContext<'a> {
    pub(super) fn new(
        access: &'a Access,
        cache: &'a dyn CacheView,
        rules: &'a Rules,
        device: &'a Device,
        allowance: Allowance,
    ) -> Self {
        let (first, end, slack) = (access.page, access.end(), slack(access));
        let read_to = end.min(first.saturating_add(read_at_once(access, device, rules)));
        AccessContext { access, cache, rules, device, first, end, read_to, slack, allowance }
    }

    /// Whether an access may cost less than the device's mean, as to a near place of a disk. If so, what a miss costs
    /// is what its reader has waited. Where accesses overlap, no place is near, and others' misses come between.
    pub(super) fn has_near_places(&self) -> bool {
        self.device.pages.is_serial && self.rules.have(Rule::Near)
    }
}

/// Pages of a request that are taken for read at once: the kernel's window, or what the device transfers during an
/// access, whichever is more, and 2 MiB at least. Where accesses overlap, a program waits for an access with each piece
/// of a longer request, so what is beyond the first piece can be read ahead. A disk reads one piece right after the
/// other.
fn read_at_once(access: &Access, device: &Device, rules: &Rules) -> u64 {
    let waits_for_pieces = !device.pages.is_serial && !device.cost.outpaces_user_space();
    if waits_for_pieces && rules.have(Rule::Pieces) {
        let worth = SEEN_PAGES.max(device.cost.latency_pages() as u64);
        worth.max(u64::from(access.kernel_window))
    } else {
        u64::MAX
    }
}

/// How far an access may lie from its neighbour, in pages. In a mapping, the next absent page lies beyond what the
/// kernel has read around the last fault. While the kernel reads ahead of a `read(2)`, only its marks are reported,
/// which lie about a window apart.
fn slack(access: &Access) -> u64 {
    let kernel_window = u64::from(access.kernel_window);
    match (access.via, access.trigger) {
        (Via::Mmap, _) if kernel_window <= u64::from(NARROW_PAGES) => READ_SLACK_PAGES,
        (Via::Mmap, _) => kernel_window.max(MMAP_SLACK_PAGES),
        (Via::Read, Trigger::Mark) => (2 * kernel_window).max(READ_SLACK_PAGES),
        (Via::Read, _) => READ_SLACK_PAGES,
    }
}
