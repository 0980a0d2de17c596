//! Any bytes are a recorded trace or none; what is one is written as text and read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trace::Trace;
use trace::recorded::{Header, KIND, Recorder};

/// A file of these blocks, with checksums that are right: so the fuzzer comes to what is in them.
fn framed<'a>(blocks: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut file = Vec::new();
    let header = Header { bowwave: String::new(), kernel: String::new(), date: String::new() };
    Recorder::begin(&mut file, &header).expect("memory takes everything");
    for bytes in blocks {
        blocks::write(&mut file, bytes).expect("memory takes everything");
    }
    file
}

/// Each block behind its length.
fn split(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, after) = bytes.split_at_checked(2)?;
        let length = u16::from_le_bytes([length[0], length[1]]) as usize;
        let (block, after) = after.split_at(length.min(after.len()));
        bytes = after;
        Some(block)
    })
}

fn read(bytes: &[u8]) {
    let Ok(trace) = trace::read(bytes) else { return };
    // A run of billions of calls becomes millions of operations.
    if trace.records().len() < 1000 {
        let text = trace.to_string();
        let again = Trace::parse(text.as_bytes()).expect("what is read can be written");
        assert_eq!(again.to_string(), text);
    }
}

fuzz_target!(|bytes: &[u8]| {
    if KIND.begins(bytes) {
        read(bytes);
    }
    read(&framed(split(bytes)));
});
