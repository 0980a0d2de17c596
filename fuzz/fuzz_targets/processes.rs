//! Whatever processes call themselves, their files and their cgroups: what the kernel tells of it is read.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| linux::any_bytes::processes(bytes));
