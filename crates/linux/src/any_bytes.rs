//! Feeds any bytes to every parser of text that the kernel or others wrote. None may panic. A
//! property test does this briefly; `fuzz/` does it for as long as you like.

use crate::{cgroup, daemons, handles, knob, meminfo, mounts, privilege, process, psi};

/// Parses a mount table.
pub fn mountinfo(bytes: &[u8]) {
    mounts::read_any(&String::from_utf8_lossy(bytes));
}

/// Parses what `/proc` and `/sys` say about memory, processes and cgroups, names chosen by others
/// included.
pub fn processes(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    cgroup::read_any(&text);
    daemons::read_any(bytes);
    handles::read_any(&text);
    meminfo::read_any(&text);
    process::read_any(&text);
    psi::read_any(&text);
    privilege::Privilege::in_status(&text).losses();
}

/// Parses the journal of a borrowed window.
pub fn journal(bytes: &[u8]) {
    knob::read_any(bytes);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Expected texts with a few bytes changed, numbers of any length, and arbitrary bytes.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let samples = [
            "24 22 7:3 / /mnt/with\\040blank rw - overlay overlay rw,lowerdir=/a:/b,upperdir=/u\n",
            "7f0000000000-7f0000010000 r--s 00004000 fe:00 131  /a file\n",
            "7 (x) R) Z 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 99\n",
            "7:memory:/a/small\n0::/user.slice\n",
            "some avg10=40.00 avg60=3.10\nMemAvailable: 16 kB\nino:\t131\nCapEff:\t00000000a80425fb\n",
            "bowwave\0daemon\0--path\0/srv\0",
            r#"{"knob":"/k","ino":5,"kb":6,"pid":7}"#,
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
            let table = format!("MemAvailable: {decimal} kB\nino:{decimal}\n");
            let mapping = format!("0-{hex} r--s {hex} 0:0 1 /a\n");
            let journal =
                format!("{{\"knob\":\"/k\",\"ino\":{decimal},\"kb\":{decimal},\"pid\":1}}");
            format!("{table}{mapping}{journal}").into_bytes()
        });
        prop_oneof![4 => changed, 1 => numbers, 1 => prop::collection::vec(any::<u8>(), 0..400)]
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in bytes()) {
            mountinfo(&bytes);
            processes(&bytes);
            journal(&bytes);
        }
    }
}
