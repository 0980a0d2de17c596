//! Devices that were measured thoroughly and are remembered across boots: `bowwave tune --persist`.
//!
//! Each is a device file, as the catalogue has them, under the name of its identity.

use std::path::{Path, PathBuf};

use readahead::DeviceCost;

use crate::identity::Identity;

/// Where profiles are kept.
pub const FOLDER: &str = "/var/lib/bowwave/devices";

/// The profile of a device in `folder`, whether or not it is there.
pub fn file_of(identity: &Identity, folder: &Path) -> PathBuf {
    folder.join(format!("{}.toml", identity.slug()))
}

/// What a remembered device charges; `None` if it is not remembered for certain, or its file is damaged.
pub fn cost(identity: &Identity, folder: &Path) -> Option<DeviceCost> {
    let file = file_of(identity, folder);
    let spec = device::load(file.to_str()?).ok()?;
    let noted: Identity = spec.tuned.as_ref()?.get("identity")?.clone().try_into().ok()?;
    let cost = spec.cost();
    let is_sane = cost.latency_s > 0.0 && cost.bandwidth > 0.0 && cost.concurrency >= 1.0;
    (is_sane && noted == *identity && !identity.is_weak()).then_some(DeviceCost {
        latency_s: cost.latency_s,
        bandwidth: cost.bandwidth,
        concurrency: cost.concurrency,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remembered_device_charges_what_was_measured() {
        let folder = tempfile::tempdir().expect("a folder");
        let share = Identity::Mount { fs_type: "nfs4".into(), source: "server:/export".into() };
        assert_eq!(cost(&share, folder.path()), None);
        let file = file_of(&share, folder.path());
        let text = "description = 'x'\n[channels]\nlatency_us = 800.0\nbandwidth_mb_s = 900.0\nconcurrency = 8\n\
                    [tuned.identity.mount]\nfs_type = 'nfs4'\nsource = 'server:/export'\n";
        std::fs::write(&file, text).expect("written");
        let found = cost(&share, folder.path()).expect("it is remembered");
        assert!((found.latency_s - 800e-6).abs() < 1e-9 && (found.concurrency - 8.0).abs() < 1e-9);
        for other in [text.replace("/export", "/other"), text.replace("800.0", "0.0")] {
            std::fs::write(&file, other).expect("written");
            assert_eq!(cost(&share, folder.path()), None);
        }
        std::fs::write(&file, "nonsense").expect("written");
        assert_eq!(cost(&share, folder.path()), None);
    }
}
