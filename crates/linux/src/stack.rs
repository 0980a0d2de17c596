//! What a disk is made of: volumes of LVM, LUKS and md pass what they are asked for on to disks below them.
//!
//! ```text
//!   dm-1 (LVM) --> dm-0 (LUKS) --> md0 --> nvme0n1      members: nvme0n1, nvme1n1; carrier: md0
//!                                   '----> nvme1n1
//! ```

use std::fs;

use crate::mounts::Disk;

/// More disks on top of each other than anybody has.
const MOST_LEVELS: usize = 16;

impl Disk {
    /// The disks that serve its requests, sorted by number: itself, unless it has no requests of its own.
    pub fn members(&self) -> Vec<Disk> {
        let mut found = Vec::new();
        self.collect_members(MOST_LEVELS, &mut found);
        found.sort_by_key(|disk| disk.dev);
        found.dedup();
        found
    }

    fn collect_members(&self, levels: usize, found: &mut Vec<Disk>) {
        let below = if self.has_requests() || levels == 0 { Vec::new() } else { self.below() };
        if below.is_empty() {
            found.push(self.clone());
        }
        below.iter().for_each(|disk| disk.collect_members(levels - 1, found));
    }

    /// The lowest disk to which all its requests go. Volumes with the same carrier wait for each other.
    pub fn carrier(&self) -> Disk {
        if let [only] = &self.members()[..] {
            return only.clone();
        }
        let mut lowest = self.clone();
        for _ in 0..MOST_LEVELS {
            match &lowest.below()[..] {
                [only] => lowest = only.clone(),
                _ => break,
            }
        }
        lowest
    }

    /// Whether it has a queue of requests. LVM, LUKS and md have none; multipath has one.
    fn has_requests(&self) -> bool {
        self.sysfs.join("mq").exists()
    }

    /// The disks immediately below, each once, even if several partitions of it are.
    fn below(&self) -> Vec<Disk> {
        let entries = fs::read_dir(self.sysfs.join("slaves")).ok();
        let folders = entries.into_iter().flatten().flatten();
        let folders = folders.filter_map(|entry| fs::canonicalize(entry.path()).ok());
        let mut disks: Vec<Disk> = folders.filter_map(Disk::in_folder).collect();
        disks.sort_by_key(|disk| disk.dev);
        disks.dedup();
        disks
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};

    use super::*;

    /// A sysfs with these devices: name, number, whether it has requests, and what is below it.
    fn sysfs(devices: &[(&str, &str, bool, &[&str])]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        for (name, number, has_requests, below) in devices {
            let folder = root.path().join(name);
            fs::create_dir_all(folder.join("slaves")).expect("made");
            fs::write(folder.join("dev"), format!("{number}\n")).expect("written");
            if *has_requests {
                fs::create_dir(folder.join("mq")).expect("made");
            }
            for target in *below {
                let link = folder.join("slaves").join(Path::new(target).file_name().expect("one"));
                symlink(root.path().join(target), link).expect("linked");
            }
        }
        root
    }

    fn partition(root: &Path, path: &str, number: &str) {
        fs::create_dir_all(root.join(path)).expect("made");
        fs::write(root.join(path).join("dev"), number).expect("written");
        fs::write(root.join(path).join("partition"), "1").expect("written");
    }

    /// The carrier's and the members' names.
    fn of(root: &Path, name: &str) -> (String, Vec<String>) {
        let folder: PathBuf = fs::canonicalize(root.join(name)).expect("there");
        let disk = Disk::in_folder(folder).expect("a disk");
        let members = disk.members().into_iter().map(|member| member.name).collect();
        (disk.carrier().name, members)
    }

    #[test]
    fn lvm_over_luks_over_md_is_carried_by_md_and_served_by_its_disks() {
        let root = sysfs(&[
            ("dm-1", "253:1", false, &["dm-0"]),
            ("dm-0", "253:0", false, &["md0"]),
            ("md0", "9:0", false, &["nvme1n1", "nvme0n1/nvme0n1p1"]),
            ("nvme0n1", "259:0", true, &[]),
            ("nvme1n1", "259:2", true, &[]),
        ]);
        partition(root.path(), "nvme0n1/nvme0n1p1", "259:1");
        for volume in ["dm-1", "dm-0", "md0"] {
            let (carrier, members) = of(root.path(), volume);
            assert_eq!((&*carrier, members), ("md0", vec!["nvme0n1".into(), "nvme1n1".into()]));
        }
        assert_eq!(of(root.path(), "nvme1n1"), ("nvme1n1".into(), vec!["nvme1n1".into()]));
    }

    #[test]
    fn volumes_and_partitions_of_one_disk_are_carried_by_it() {
        let root = sysfs(&[
            ("dm-0", "253:0", false, &["sda/sda2"]),
            ("dm-1", "253:1", false, &["sda/sda3", "sda/sda2"]),
            ("dm-2", "253:2", false, &["dm-0", "dm-1"]),
            ("sda", "8:0", true, &[]),
        ]);
        partition(root.path(), "sda/sda2", "8:2");
        partition(root.path(), "sda/sda3", "8:3");
        for volume in ["dm-0", "dm-1", "dm-2", "sda", "sda/sda2"] {
            assert_eq!(of(root.path(), volume), ("sda".into(), vec!["sda".into()]), "{volume}");
        }
    }

    #[test]
    fn the_paths_of_a_multipath_disk_carry_its_requests_but_it_counts_them_itself() {
        let root = sysfs(&[
            ("dm-1", "253:1", false, &["dm-0"]),
            ("dm-0", "253:0", true, &["sda", "sdb"]),
            ("sda", "8:0", true, &[]),
            ("sdb", "8:16", true, &[]),
        ]);
        assert_eq!(of(root.path(), "dm-1"), ("dm-0".into(), vec!["dm-0".into()]));
    }

    #[test]
    fn a_disk_that_is_below_itself_ends_the_search() {
        let root = sysfs(&[("dm-0", "253:0", false, &["dm-0"])]);
        assert_eq!(of(root.path(), "dm-0"), ("dm-0".into(), vec!["dm-0".into()]));
    }
}
