//! Any text is an experiment or an error, and published figures or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sim::published::read_any_experiment;

fuzz_target!(|text: &str| read_any_experiment(text));
