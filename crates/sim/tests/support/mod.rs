//! The machine that tests and the benchmark vary.

use historical::KernelPolicy;
use readahead::DeviceCost;
use sim::{CpuCosts, Parts, Reclaim};

/// A machine of today with so much memory and this device of the catalogue, under a kernel's policy alone.
pub(crate) fn parts(device: &str, memory_pages: u64, kernel: Box<dyn KernelPolicy>) -> Parts {
    let spec = device::load(device).expect("the catalogue has it");
    Parts {
        memory_pages,
        kernel,
        on_top: None,
        kernel_window: 32,
        elevator: iosched::by_name("noop", 2560).expect("it is known"),
        device: spec.build(40 << 30),
        cost: DeviceCost::DISK,
        device_depth: 32,
        request_pages: 320,
        reclaim: Reclaim::UseOnceFirst,
        cpu: CpuCosts { call: 300, page: 400, decision: 200, wake: 5_000, ..CpuCosts::default() },
    }
}
