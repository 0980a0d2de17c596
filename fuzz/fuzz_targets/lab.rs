//! Whatever lies in a lab's folder, or its server is told, is read or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| lab::any_bytes::read(bytes));
