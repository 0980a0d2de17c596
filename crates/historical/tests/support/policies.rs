//! All policies, for tests that apply to each.

use historical::{
    Adaptive2005, AdaptiveV16, KernelPolicy, Linux6, NoReadAhead, OnDemand, OnDemandRelease, Stock,
    StockRelease, V16Parameters,
};

/// Open files to track: few, so that the tests make policies forget.
const OPEN_FILES: usize = 16;

/// Creates a policy without state.
pub(crate) type Make = fn() -> Box<dyn KernelPolicy>;

/// Every policy, some with several parameters.
pub(crate) const ALL: [Make; 13] = [
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

/// The proposal of 2006 with several parameters.
pub(crate) const V16: [Make; 3] = [v16, v16_eager, v16_server];

/// Policies of kernels, which read ahead exactly by their rules.
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

/// Policies that never request more than two kernel windows at once.
pub(crate) const WITHIN_THE_WINDOW: [Make; 7] =
    [stock_2_6_13, stock_2_6_17, v1, v1_generous, on_demand_2_6_23, context_2_6_31, context_3_12];

pub(crate) fn linux_6() -> Box<dyn KernelPolicy> {
    Box::new(Linux6::new(OPEN_FILES))
}

fn linux_6_small_folios() -> Box<dyn KernelPolicy> {
    Box::new(Linux6::new(OPEN_FILES).with_largest_folio(0))
}

fn v16() -> Box<dyn KernelPolicy> {
    v16_with(V16Parameters::default())
}

fn v16_eager() -> Box<dyn KernelPolicy> {
    v16_with(V16Parameters {
        readahead_ratio: 100,
        readahead_hit_rate: 8,
        laptop: true,
        ..V16Parameters::default()
    })
}

fn v16_server() -> Box<dyn KernelPolicy> {
    v16_with(V16Parameters {
        readahead_hit_rate: 1,
        nfsd: true,
        loop_device: true,
        ..V16Parameters::default()
    })
}

fn v16_with(parameters: V16Parameters) -> Box<dyn KernelPolicy> {
    Box::new(AdaptiveV16::new(OPEN_FILES, parameters))
}

fn none() -> Box<dyn KernelPolicy> {
    Box::new(NoReadAhead)
}

fn stock_2_6_13() -> Box<dyn KernelPolicy> {
    Box::new(Stock::new(OPEN_FILES, StockRelease::Linux2_6_13))
}

fn stock_2_6_17() -> Box<dyn KernelPolicy> {
    Box::new(Stock::new(OPEN_FILES, StockRelease::Linux2_6_17))
}

fn v1() -> Box<dyn KernelPolicy> {
    Box::new(Adaptive2005::new(OPEN_FILES, Adaptive2005::DEFAULT_RATIO))
}

/// Its readers also wait for the last page of a chunk.
fn v1_generous() -> Box<dyn KernelPolicy> {
    Box::new(Adaptive2005::new(OPEN_FILES, 102))
}

fn on_demand_2_6_23() -> Box<dyn KernelPolicy> {
    Box::new(OnDemand::new(OPEN_FILES, OnDemandRelease::Linux2_6_23))
}

fn context_2_6_31() -> Box<dyn KernelPolicy> {
    Box::new(OnDemand::new(OPEN_FILES, OnDemandRelease::Linux2_6_31))
}

fn context_3_12() -> Box<dyn KernelPolicy> {
    Box::new(OnDemand::new(OPEN_FILES, OnDemandRelease::Linux3_12))
}
