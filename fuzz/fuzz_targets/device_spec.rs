//! Any text is a device or an error, and every device can serve.
#![no_main]

use device::{Request, Spec};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(spec) = Spec::parse(text, "fuzz") else { return };
    let mut model = spec.build(1 << 30);
    model.submit(0, Request { id: 1, offset: 4096, bytes: 4096 });
    let mut done = Vec::new();
    if let Some(at) = model.next_event() {
        model.advance(at, &mut done);
    }
});
