//! Entry point for fuzzing: decoding must refuse or read any bytes, and never panic.

use crate::{observe, tracing};

/// Events of the eBPF programs.
pub fn events(bytes: &[u8]) {
    observe::read_any(bytes);
    tracing::read_any(bytes);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_events_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            events(&bytes);
        }
    }
}
