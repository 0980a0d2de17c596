//! A start-up list with any bytes in it is read or refused, and what is read can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| remembered::read_any(bytes));
