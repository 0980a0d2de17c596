//! Any text is a device or an error, and every device serves what comes one after another, in time that
//! goes forward.
#![no_main]

use device::{Request, Spec};
use libfuzzer_sys::fuzz_target;

/// Requests, each of them when the one before has been served.
const REQUESTS: u64 = 8;

fuzz_target!(|text: &str| {
    let Ok(spec) = Spec::parse(text, "fuzz") else { return };
    let mut model = spec.build(1 << 30);
    let (mut now, mut done) = (0u64, Vec::new());
    for id in 0..REQUESTS {
        let (offset, bytes) = (4096 + id * 0x0301_7000, 4096 << id);
        model.submit(now, Request { id, offset, bytes });
        while let Some(at) = model.next_event() {
            assert!(at >= now, "from {now} to {at}");
            now = at;
            model.advance(now, &mut done);
        }
        now = now.saturating_add(1_000_000_000);
    }
    assert_eq!(done.len() as u64, REQUESTS);
});
