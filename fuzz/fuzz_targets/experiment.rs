//! Any text is the experiment file of each table or an error, makes machines that can read or an error, and
//! is each table's published figures or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use experiments::read_any_experiment;

fuzz_target!(|text: &str| read_any_experiment(text));
