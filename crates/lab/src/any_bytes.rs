//! Feeds any bytes to every parser of outside input: none may panic. A property test does this for a moment, `fuzz/`
//! for as long as you like.

use std::path::Path;

use crate::{control, layers, remove, state, status, users};

/// Parses the bytes as everything that may be in a lab's folder, or that users, the kernel and other processes say.
pub fn read(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(state) = state::State::parse(&text) {
        let written = serde_json::to_string(&state).expect("it was read");
        assert!(state::State::parse(&written).is_ok(), "{written}");
    }
    if let Ok(status) = serde_json::from_slice::<status::Status>(bytes) {
        assert!(status.depth_mean() >= 0.0, "{status:?}");
        status.error_us();
    }
    control::Order::read(bytes);
    remove::is_serving(bytes, Path::new("/run/bowwave/lab/one/fuse"));
    layers::is_mounted_in(&text, Path::new("/run/bowwave/lab/one/mnt"));
    layers::schedulers_in(&text);
    users::paths_in(&text).count();
    let name = state::name_for(&text);
    assert!(name.is_empty() || state::check_name(&name).is_ok(), "{name:?}");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Texts that are almost as expected, and others.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let samples = [
            "bowwave\0lab\0serve\0--folder\0/run/bowwave/lab/one/fuse\0",
            "/dev/loop0 /run/bowwave/lab/one/mnt ext4 rw,noatime 0 0\n",
            "7f0000000000-7f0000010000 r--s 00004000 fe:00 131  /a file\n",
            "none [mq-deadline] kyber\n",
            "timed",
            r#"{"reads":1,"writes":2,"bytes_read":3,"bytes_written":4,"seeks":5,"timed":6,"late_sum_us":7.0,"late_max_us":8.0,"depth_sum":9,"depth_max":10}"#,
            r#"{"name":"x","device":"net","spec":{"description":"x","channels":{"latency_us":1.0,"bandwidth_mb_s":1.0,"concurrency":1}},"size_bytes":1,"server_pid":1,"block_device":"/dev/loop0"}"#,
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
        prop_oneof![4 => changed, 1 => prop::collection::vec(any::<u8>(), 0..400)]
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in bytes()) {
            read(&bytes);
        }
    }
}
