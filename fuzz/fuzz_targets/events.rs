//! Any bytes from the kernel half are an event or none.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| ebpf::any_bytes::events(bytes));
