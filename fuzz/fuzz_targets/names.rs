//! Any name and parameters make a policy and an elevator that can replay a trace, or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sim::replay::{Setup, replay};
use trace::{EXAMPLE, Trace};

// A policy in the first line, an elevator in the second.
fuzz_target!(|text: &str| {
    let (policy, elevator) = text.split_once('\n').unwrap_or((text, "noop"));
    let setup = Setup { elevator: Some(elevator.to_owned()), ..Setup::default() };
    let trace = Trace::parse(EXAMPLE.as_bytes()).expect("it is one");
    if let Ok(replay) = replay(&trace, policy, &setup) {
        assert!(replay.seconds.is_finite());
    }
});
