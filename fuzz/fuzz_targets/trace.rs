//! Any bytes are a trace or an error; what is a trace is read back as the same, and can be replayed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sim::replay::{Pace, Setup, replay};
use trace::Trace;

fuzz_target!(|bytes: &[u8]| {
    let Ok(trace) = Trace::parse(bytes) else { return };
    assert_eq!(Trace::parse(trace.to_string().as_bytes()).as_ref(), Ok(&trace));
    let pages: u64 = trace.files().iter().map(|file| file.bytes / 4096 + 1).sum();
    if pages < 1 << 14 && trace.records().len() < 100 {
        let setup = Setup { pace: Pace::None, memory_bytes: Some(1 << 22), ..Setup::default() };
        let replay = replay(&trace, "adaptive", &setup).expect("all of it exists");
        assert!(replay.seconds.is_finite());
    }
});
