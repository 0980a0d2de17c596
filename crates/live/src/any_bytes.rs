//! Every parser of what others have written, given any bytes: none panics. A property test does so for a
//! moment, and `fuzz/` for as long as one likes.

use crate::{act, behind, daemons, disk, knob, memory, mounts, observe, privilege};

/// The table of mounts.
pub fn mountinfo(bytes: &[u8]) {
    mounts::read_any(&String::from_utf8_lossy(bytes));
}

/// What `/proc` and `/sys` tell of processes and their cgroups, by the names they have given.
pub fn processes(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    act::read_any(&text);
    behind::read_any(&text);
    daemons::read_any(bytes);
    memory::read_any(&text);
    privilege::Privilege::in_status(&text).losses();
}

/// Journals, ledgers and notes in the state folder.
pub fn notes(bytes: &[u8]) {
    act::read_any_ledger(bytes);
    disk::read_any_note(bytes);
    knob::read_any(bytes);
}

/// The daemon's configuration, and paths held against its patterns.
pub fn configuration(text: &str) {
    behind::match_any(text);
    if let Ok(rules) = behind::Rules::parse(text) {
        assert_eq!(rules.check(), Ok(()), "it was refused");
    }
}

/// What comes from the kernel half.
pub fn events(bytes: &[u8]) {
    observe::read_any(bytes);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Texts that look like what is expected, here and there changed, and others.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let samples = [
            "24 22 7:3 / /mnt/with\\040blank rw - overlay overlay rw,lowerdir=/a:/b,upperdir=/u\n",
            "7f0000000000-7f0000010000 r--s 00004000 fe:00 131  /a file\n",
            "7 (x) R) Z 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 99\n",
            "7:memory:/a/small\n0::/user.slice\n",
            "some avg10=40.00 avg60=3.10\nMemAvailable: 16 kB\nino:\t131\nCapEff:\t00000000a80425fb\n",
            "bowwave\0daemon\0--path\0/srv\0",
            r#"{"tgid":1,"started":2,"major":3,"minor":4,"ino":5,"knob":"/k","kb_before":6,"at":7,"is_bound":true}"#,
            r#"{"knob":"/k","ino":5,"kb":6,"pid":7}"#,
            r#"{"identity":"8:0 1 2","origin":"measured","latency_us":1.0,"bandwidth_mb_s":1.0,"concurrency":1.0}"#,
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
        let numbers = ("[0-9]{0,20}", "[0-9a-f]{0,17}").prop_map(|(decimal, hex)| {
            let parts = [
                format!("MemAvailable: {decimal} kB\nino:{decimal}\n0-{hex} r--s {hex} 0:0 1 /a"),
                format!("{{\"knob\":\"/k\",\"ino\":{decimal},\"kb\":{decimal},\"pid\":1}}"),
                format!(
                    "{{\"tgid\":1,\"started\":{decimal},\"major\":0,\"minor\":0,\"ino\":{decimal},"
                ),
                format!(
                    "\"knob\":\"/k\",\"kb_before\":{decimal},\"at\":{decimal},\"is_bound\":true}}"
                ),
            ];
            format!("{}\n{}\n{}{}", parts[0], parts[1], parts[2], parts[3]).into_bytes()
        });
        prop_oneof![4 => changed, 1 => numbers, 1 => prop::collection::vec(any::<u8>(), 0..400)]
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in bytes()) {
            mountinfo(&bytes);
            processes(&bytes);
            notes(&bytes);
            events(&bytes);
            configuration(&String::from_utf8_lossy(&bytes));
        }
    }
}
