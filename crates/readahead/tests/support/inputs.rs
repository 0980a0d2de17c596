//! Any accesses, often near to one another.

use proptest::collection::vec;
use proptest::prelude::*;
use readahead::{Access, DeviceCost, FileId, Hint, Nanos, OpenFileId, Page, Via, VolumeId};

use super::liar::Liar;

/// Largest page of a file: 2^52 bytes.
const MOST_PAGES: u64 = 1 << 40;

/// Pages near each other, near the ends of a file, and anywhere.
fn page(file_pages: u64) -> impl Strategy<Value = Page> {
    prop_oneof![
        4 => 0..64u64,
        4 => 1_000..1_064u64,
        2 => (0..40u64).prop_map(move |below| file_pages.saturating_sub(below)),
        1 => 0..=MOST_PAGES,
    ]
}

fn file_pages() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), 2..80u64, 1_000..2_000u64, 0..=MOST_PAGES]
}

fn request() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), 1..=4u32, 1..=512u32, any::<u32>()]
}

/// Time, which may stand still, leap, or run backwards.
pub(crate) fn moment() -> impl Strategy<Value = Nanos> {
    prop_oneof![0..1_000_000u64, any::<u64>()]
}

fn hint() -> impl Strategy<Value = Hint> {
    prop_oneof![Just(Hint::Normal), Just(Hint::Sequential), Just(Hint::Random)]
}

fn access<T: Copy + std::fmt::Debug + 'static>(
    triggers: &'static [T],
) -> impl Strategy<Value = Access<T>> {
    let trigger = proptest::sample::select(triggers);
    let via = prop_oneof![3 => Just(Via::Read), 1 => Just(Via::Mmap)];
    let window = prop_oneof![Just(0), 1..=256u32, any::<u32>()];
    let how = (request(), trigger, via, hint(), window, moment());
    (file_pages(), 0..3u64, 0..40u64, how).prop_flat_map(|(file_pages, file, open_file, how)| {
        let (request, trigger, via, hint, kernel_window, now) = how;
        let previous = proptest::option::of(page(file_pages));
        (page(file_pages), previous).prop_map(move |(page, previous)| Access {
            file: FileId(file),
            volume: VolumeId(1),
            open_file: OpenFileId(open_file),
            page,
            request,
            previous,
            trigger,
            via,
            hint,
            file_pages,
            kernel_window,
            now,
        })
    })
}

pub(crate) fn cost() -> impl Strategy<Value = DeviceCost> {
    (0..7i32, 3..12i32, 0..4i32).prop_map(|(latency, bandwidth, concurrency)| DeviceCost {
        latency_s: 10f64.powi(-latency),
        bandwidth: 10f64.powi(bandwidth),
        concurrency: 10f64.powi(concurrency),
    })
}

fn liar() -> impl Strategy<Value = Liar> {
    let room = prop_oneof![Just(0), 0..1_000u64, Just(u64::MAX)];
    (any::<u64>(), 0..=8u64, cost(), room).prop_map(|(seed, bluntness, cost, room_pages)| Liar {
        seed,
        bluntness,
        cost,
        room_pages,
        thrashing: 16,
    })
}

/// Accesses with any of these triggers, each with a page cache.
pub(crate) fn accesses<T: Copy + std::fmt::Debug + 'static>(
    triggers: &'static [T],
) -> impl Strategy<Value = Vec<(Access<T>, Liar)>> {
    vec((access(triggers), liar()), 1..60)
}
