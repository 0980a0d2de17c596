//! Any text is a configuration or an error, and any path can be held against any pattern.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| live::any_bytes::configuration(text));
