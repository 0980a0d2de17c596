//! A journal, a ledger or a note with any bytes in it is read or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    linux::any_bytes::journal(bytes);
    live::any_bytes::notes(bytes);
});
