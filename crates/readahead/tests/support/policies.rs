//! Every policy, for tests that hold for all of them.

use readahead::adaptive::Limits;
use readahead::{
    Adaptive, Adaptive2005, AdaptiveV16, Linux6, NoReadAhead, OnDemand, OnDemandRelease, Policy,
    Stock, StockRelease, V16Parameters,
};

/// Bytes that [`adaptive`] may have read ahead of all its streams.
pub(crate) const AHEAD_BYTES: u64 = 16 << 20;

/// What a reader that is alone may have ahead.
pub(crate) const ALONE_BYTES: u64 = 2 * AHEAD_BYTES;

/// What all may have ahead together: what is asked for last, `own`, leaves `own + 4/5 (all - own)`
/// within what one may have alone.
pub(crate) const ALL_BYTES: u64 = ALONE_BYTES / 4 * 5;

/// Open files followed: few, so that tests make policies forget.
const OPEN_FILES: usize = 16;

/// Makes a policy that has seen nothing yet.
pub(crate) type Make = fn() -> Box<dyn Policy>;

/// Every policy, the historic ones with several parameters.
pub(crate) const ALL: [Make; 14] = [
    adaptive,
    linux_6,
    linux_6_small_folios,
    v16,
    v16_eager,
    v16_server,
    none,
    stock_2_6_13,
    stock_2_6_17,
    v1,
    v1_generous,
    on_demand_2_6_23,
    context_2_6_31,
    context_3_12,
];

/// The proposal of 2006, with several parameters.
pub(crate) const V16: [Make; 3] = [v16, v16_eager, v16_server];

/// Policies of kernels, which read ahead what their rules say and nothing else.
pub(crate) const KERNELS: [Make; 10] = [
    linux_6,
    linux_6_small_folios,
    v16,
    none,
    stock_2_6_13,
    stock_2_6_17,
    v1,
    on_demand_2_6_23,
    context_2_6_31,
    context_3_12,
];

/// Policies that never ask for more at once than two of the kernel's windows.
pub(crate) const WITHIN_THE_WINDOW: [Make; 7] =
    [stock_2_6_13, stock_2_6_17, v1, v1_generous, on_demand_2_6_23, context_2_6_31, context_3_12];

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

fn none() -> Box<dyn Policy> {
    Box::new(NoReadAhead)
}

fn stock_2_6_13() -> Box<dyn Policy> {
    Box::new(Stock::new(OPEN_FILES, StockRelease::Linux2_6_13))
}

fn stock_2_6_17() -> Box<dyn Policy> {
    Box::new(Stock::new(OPEN_FILES, StockRelease::Linux2_6_17))
}

fn v1() -> Box<dyn Policy> {
    Box::new(Adaptive2005::new(OPEN_FILES, Adaptive2005::DEFAULT_RATIO))
}

/// Its readers wait for the last page of a chunk, too.
fn v1_generous() -> Box<dyn Policy> {
    Box::new(Adaptive2005::new(OPEN_FILES, 102))
}

fn on_demand_2_6_23() -> Box<dyn Policy> {
    Box::new(OnDemand::new(OPEN_FILES, OnDemandRelease::Linux2_6_23))
}

fn context_2_6_31() -> Box<dyn Policy> {
    Box::new(OnDemand::new(OPEN_FILES, OnDemandRelease::Linux2_6_31))
}

fn context_3_12() -> Box<dyn Policy> {
    Box::new(OnDemand::new(OPEN_FILES, OnDemandRelease::Linux3_12))
}
