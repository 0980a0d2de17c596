//! Entry points for fuzzing: every parser of foreign bytes must refuse or read them, and never panic. A property test
//! calls them briefly, `fuzz/` for as long as one likes.

use controller::behind::match_any;

use crate::{config, devices, execute, histories};

/// Ledgers, device notes and histories in the state folder.
pub fn notes(bytes: &[u8]) {
    execute::read_any_ledger(bytes);
    devices::read_any_note(bytes);
    histories::read_any_note(bytes);
}

/// The daemon's configuration and its path patterns.
pub fn configuration(text: &str) {
    match_any(text);
    if let Ok(config) = config::parse(text) {
        let refused = config.drop_behind.rules.iter().find_map(|rule| rule.check().err());
        assert_eq!(refused, None);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Valid samples with a few bytes changed, extreme numbers, and noise.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let samples = [
            r#"{"tgid":1,"started":2,"major":3,"minor":4,"ino":5,"knob":"/k","kb_before":6,"at":7,"is_bound":true}"#,
            r#"{"identity":"8:0 1 2","origin":"Measured","latency_us":1.0,"bandwidth_mb_s":1.0,"concurrency":1.0}"#,
            r#"{"format":1,"history":{"completion_rate":{"begun":2.0,"ended":1.0},"starts":{"misses":3.0,"forward":1.0,"backward":0.0},"curve":[[7,1.0,2.0,9]]}}"#,
            "[drop-behind]\nmode = \"never\"\n[[drop-behind.rule]]\npath = \"/srv/**/?*\"\nmode = \"auto\"\n",
        ];
        let changed = (
            prop::sample::select(samples.to_vec()),
            prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        );
        let changed = changed.prop_map(|(sample, changes)| {
            let mut bytes = sample.as_bytes().to_vec();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes
        });
        let numbers = "[0-9]{0,20}".prop_map(|decimal| {
            let parts = [
                format!(
                    "{{\"tgid\":1,\"started\":{decimal},\"major\":0,\"minor\":0,\"ino\":{decimal},"
                ),
                format!(
                    "\"knob\":\"/k\",\"kb_before\":{decimal},\"at\":{decimal},\"is_bound\":true}}"
                ),
            ];
            parts.concat().into_bytes()
        });
        prop_oneof![4 => changed, 1 => numbers, 1 => prop::collection::vec(any::<u8>(), 0..400)]
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in bytes()) {
            notes(&bytes);
            configuration(&String::from_utf8_lossy(&bytes));
        }
    }
}
