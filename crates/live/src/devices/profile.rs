//! Reads the profiles that `bowwave tune --persist` writes.

use std::path::Path;

use linux::identity::Identity;
use linux::state::profile_of;
use readahead::DeviceCost;

/// The cost in this device's profile; `None` if there is no valid profile that is certainly of this device.
pub(super) fn cost(identity: &Identity, folder: &Path) -> Option<DeviceCost> {
    let file = profile_of(identity, folder);
    let spec = device::load(file.to_str()?).ok()?;
    let noted: Identity = spec.tuned.as_ref()?.get("identity")?.clone().try_into().ok()?;
    let cost = spec.cost();
    let is_sane = cost.latency_s > 0.0 && cost.bandwidth > 0.0 && cost.concurrency >= 1.0;
    (is_sane && noted == *identity && !identity.is_weak()).then_some(cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remembered_device_costs_what_was_measured() {
        let folder = tempfile::tempdir().expect("a folder");
        let share = Identity::Mount { fs_type: "nfs4".into(), source: "server:/export".into() };
        assert_eq!(cost(&share, folder.path()), None);
        let file = profile_of(&share, folder.path());
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
