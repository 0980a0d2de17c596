//! Any bytes are a recording or none; what one holds is shown, and decided again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use recording::{KIND, Recording, verify};

/// The preamble and these blocks, with checksums that are right: so the fuzzer comes to what is in them.
fn framed<'a>(blocks: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut file = Vec::new();
    KIND.write_preamble(&mut file).expect("memory takes everything");
    for bytes in blocks {
        blocks::write(&mut file, bytes).expect("memory takes everything");
    }
    file
}

/// A policy's tables are built for each recording; larger ones only take longer.
const MOST_FILES: usize = 64;

fn read(bytes: &[u8]) {
    let Ok(recording) = Recording::read(bytes) else { return };
    let is_small = recording.header().limits.files <= MOST_FILES;
    for item in recording {
        item.expect("memory can be read");
    }
    if is_small {
        let mut recording = Recording::read(bytes).expect("it was read before");
        // A recording that was made by nobody differs, most of the time.
        let _ = verify(&mut recording);
    }
}

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    // The seed's form: its blocks without their frame, each behind its length.
    let mut rest = bytes;
    let blocks = std::iter::from_fn(|| {
        let (length, after) = rest.split_at_checked(2)?;
        let length = u16::from_le_bytes([length[0], length[1]]) as usize;
        let (block, after) = after.split_at(length.min(after.len()));
        rest = after;
        Some(block)
    });
    read(&framed(blocks));
});
