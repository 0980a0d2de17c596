//! The paths of files, from where their file systems are mounted and what eBPF programs report of them.
//!
//! ```text
//!   file system 8:1     /  home  ann  notes          what a program reports: home, ann, notes
//!   mounted at /ann        ^^^^^^^^^                 root of the mount
//!   path                   /ann/notes
//! ```

use std::collections::HashMap;
use std::time::Duration;

use readahead::DeviceNumber;

use crate::mounts::{self, Changes, Mount};

/// Bytes of a component in an event, with a zero at its end (programs/path.h of the crate ebpf).
const COMPONENT_BYTES: usize = 64;

/// Where file systems with a page cache are mounted now.
#[derive(Debug, Default)]
pub struct MountPoints {
    /// The mounts of each, that of the largest part first.
    of: HashMap<DeviceNumber, Vec<MountPoint>>,
    /// `None` where the kernel does not report them.
    changes: Option<Changes>,
}

/// Where a part of a file system is mounted.
#[derive(Debug)]
pub struct MountPoint {
    /// Components of the directory or file that is mounted, none if it is the whole file system.
    root: Vec<String>,
    /// The path at which it is mounted.
    pub path: String,
    /// What is mounted, for example `/dev/sda1`.
    pub source: String,
}

impl MountPoints {
    /// Of this machine.
    pub fn now() -> Self {
        // First, so that no change is missed.
        let changes = Changes::watch().ok();
        MountPoints { changes, ..MountPoints::of(mounts::all().unwrap_or_default()) }
    }

    /// Of this table.
    pub fn of(mounts: Vec<Mount>) -> Self {
        let mut of: HashMap<_, Vec<MountPoint>> = HashMap::new();
        for mount in mounts {
            let root = mount.root.display().to_string();
            let root = root.split('/').filter(|component| !component.is_empty());
            of.entry(mount.dev).or_default().push(MountPoint {
                root: root.map(str::to_owned).collect(),
                path: mount.mount_point.display().to_string(),
                source: mount.source,
            });
        }
        of.values_mut().for_each(|places| places.sort_by_key(|place| place.root.len()));
        MountPoints { of, changes: None }
    }

    /// Reads the mount table again if it has changed.
    fn renew(&mut self) {
        let has_changed = |changes: &Changes| changes.wait(Duration::ZERO).unwrap_or(false);
        if self.changes.as_ref().is_some_and(has_changed)
            && let Ok(mounts) = mounts::all()
        {
            self.of = MountPoints::of(mounts).of;
        }
    }

    /// Where the largest part of a file system is mounted; `None` if it is mounted elsewhere only, as in a container.
    pub fn of_file_system(&mut self, dev: DeviceNumber) -> Option<&MountPoint> {
        self.renew();
        self.of.get(&dev)?.first()
    }

    /// Where a file is below which begins with these components at the root of its file system.
    pub fn above(&mut self, dev: DeviceNumber, components: &[String]) -> Option<&MountPoint> {
        self.renew();
        self.of.get(&dev)?.iter().find(|place| begins(components, &place.root))
    }
}

impl MountPoint {
    /// The path of a file that this mount is above, and that has these components from the root of its file system.
    pub fn path_of(&self, components: &[String]) -> String {
        match components.get(self.root.len()..).unwrap_or_default() {
            [] => self.path.clone(),
            rest => format!("{}/{}", self.path.trim_end_matches('/'), rest.join("/")),
        }
    }
}

/// Whether a path begins with these components. The eBPF programs cut long ones.
fn begins(path: &[String], root: &[String]) -> bool {
    let is_cut =
        |known: &str, whole: &str| known.len() >= COMPONENT_BYTES - 1 && whole.starts_with(known);
    root.len() <= path.len() && path.iter().zip(root).all(|(a, b)| a == b || is_cut(a, b))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const DISK: DeviceNumber = DeviceNumber { major: 8, minor: 1 };

    fn mount(root: &str, mount_point: &str) -> Mount {
        let [root, mount_point] = [root, mount_point].map(PathBuf::from);
        Mount { dev: DISK, root, mount_point, fs_type: "ext4".into(), source: "/dev/sda1".into() }
    }

    fn path(mounts: &mut MountPoints, components: &[&str]) -> Option<String> {
        let components: Vec<String> = components.iter().map(|text| (*text).into()).collect();
        Some(mounts.above(DISK, &components)?.path_of(&components))
    }

    #[test]
    fn a_bind_mount_or_subvolume_has_only_what_is_below_its_root() {
        let long = "x".repeat(100);
        let mut mounts = MountPoints::of(vec![
            mount("/home/ann", "/ann"),
            mount("/vol", "/"),
            mount("/etc/hosts", "/run/hosts"),
            mount(&format!("/{long}"), "/long"),
        ]);
        let mut of = |components: &[&str]| path(&mut mounts, components).unwrap_or_default();
        assert_eq!(of(&["vol", "f"]), "/f");
        assert_eq!(of(&["home", "ann", "d", "f"]), "/ann/d/f");
        assert_eq!(of(&["etc", "hosts"]), "/run/hosts");
        assert_eq!(of(&[&long[..63], "f"]), "/long/f");
        assert_eq!(of(&["home", "bob", "f"]), "", "it is mounted nowhere");
        assert_eq!(of(&["home"]), "");
    }

    #[test]
    fn of_several_mounts_the_largest_part_counts_and_of_equal_ones_the_first() {
        let mut mounts =
            MountPoints::of(vec![mount("/home", "/h"), mount("/", "/srv"), mount("/", "/again")]);
        assert_eq!(path(&mut mounts, &["home", "f"]).as_deref(), Some("/srv/home/f"));
        assert_eq!(mounts.of_file_system(DISK).expect("mounted").path, "/srv");
        let other = DeviceNumber { major: 999, minor: 7 };
        assert!(mounts.of_file_system(other).is_none());
    }
}
