//! Every policy, for tests that hold for all of them.

use readahead::adaptive::Limits;
use readahead::{Adaptive, AdaptiveV16, Linux6, Policy, V16Parameters};

/// Bytes that [`adaptive`] may have read ahead of all its streams.
pub(crate) const AHEAD_BYTES: u64 = 16 << 20;

/// Open files followed: few, so that tests make policies forget.
const OPEN_FILES: usize = 16;

/// Makes a policy that has seen nothing yet.
pub(crate) type Make = fn() -> Box<dyn Policy>;

/// Every policy, the historic ones with several parameters.
pub(crate) const ALL: [Make; 6] =
    [adaptive, linux_6, linux_6_small_folios, v16, v16_eager, v16_server];

/// The proposal of 2006, with several parameters.
pub(crate) const V16: [Make; 3] = [v16, v16_eager, v16_server];

/// Policies of kernels, which read ahead what their rules say and nothing else.
pub(crate) const KERNELS: [Make; 3] = [linux_6, linux_6_small_folios, v16];

pub(crate) fn adaptive() -> Box<dyn Policy> {
    Box::new(Adaptive::new(Limits {
        files: OPEN_FILES,
        ahead_bytes: AHEAD_BYTES,
        ..Limits::default()
    }))
}

pub(crate) fn linux_6() -> Box<dyn Policy> {
    Box::new(Linux6::new(OPEN_FILES))
}

fn linux_6_small_folios() -> Box<dyn Policy> {
    Box::new(Linux6::new(OPEN_FILES).with_largest_folio(0))
}

fn v16() -> Box<dyn Policy> {
    v16_with(V16Parameters::default())
}

fn v16_eager() -> Box<dyn Policy> {
    v16_with(V16Parameters {
        readahead_ratio: 100,
        readahead_hit_rate: 8,
        laptop: true,
        ..V16Parameters::default()
    })
}

fn v16_server() -> Box<dyn Policy> {
    v16_with(V16Parameters {
        readahead_hit_rate: 1,
        nfsd: true,
        loop_device: true,
        ..V16Parameters::default()
    })
}

fn v16_with(parameters: V16Parameters) -> Box<dyn Policy> {
    Box::new(AdaptiveV16::new(OPEN_FILES, parameters))
}
