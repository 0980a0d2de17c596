//! Whatever is mounted wherever: the table of mounts is read.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| linux::any_bytes::mountinfo(bytes));
