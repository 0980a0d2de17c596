//! How to recognise a device after a reboot.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::mounts::{Disk, Mount};

/// A name that a device keeps across reboots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Identity {
    /// A disk, by attributes of its hardware: sysfs attributes with their values.
    Disk(Vec<Attribute>),
    /// A file system without a disk, by its type and its source.
    Mount {
        /// For example `nfs4`.
        fs_type: String,
        /// For example `server:/export`.
        source: String,
    },
}

/// An attribute of a disk's folder in sysfs, or of a device it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribute {
    /// For example `wwid`.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// Attributes that identify a disk uniquely, most reliable first.
const UNIQUE: [&str; 7] =
    ["wwid", "device/wwid", "serial", "device/serial", "device/cid", "dm/uuid", "md/uuid"];

/// Attributes for a disk without a unique name: its image, or its model and size.
const FALLBACK: [&str; 4] = ["loop/backing_file", "device/vendor", "device/model", "size"];

impl Identity {
    /// The identity of what is mounted.
    pub fn of(mount: &Mount, disk: Option<&Disk>) -> Identity {
        disk.map_or_else(
            || Identity::Mount { fs_type: mount.fs_type.clone(), source: mount.source.clone() },
            Identity::of_disk,
        )
    }

    /// The identity of a disk.
    pub fn of_disk(disk: &Disk) -> Identity {
        Self::of_folder(&disk.sysfs)
    }

    fn of_folder(sysfs: &Path) -> Identity {
        let attribute = |name: &&str| {
            let text = fs::read_to_string(sysfs.join(name)).ok()?;
            let value = text.trim().to_owned();
            (!value.is_empty()).then(|| Attribute { name: (*name).into(), value })
        };
        let unique = UNIQUE.iter().find_map(attribute);
        Identity::Disk(match unique {
            Some(unique) => vec![unique],
            None => FALLBACK.iter().filter_map(attribute).collect(),
        })
    }

    /// Whether another disk of the same model would have the same identity.
    pub fn is_weak(&self) -> bool {
        let is_strong = |a: &Attribute| UNIQUE.contains(&&*a.name) || a.name.starts_with("loop/");
        matches!(self, Identity::Disk(attributes) if !attributes.iter().any(is_strong))
    }

    /// Whether the size is all that is known. Any number of disks share a size.
    pub fn is_size_only(&self) -> bool {
        matches!(self, Identity::Disk(attributes) if attributes.iter().all(|a| a.name == "size"))
    }

    /// A name for use in file names: letters, digits, dashes.
    pub fn slug(&self) -> String {
        let text = match self {
            Identity::Disk(attributes) => {
                let values: Vec<&str> = attributes.iter().map(|a| &*a.value).collect();
                values.join("-")
            }
            Identity::Mount { fs_type, source } => format!("{fs_type}-{source}"),
        };
        slug(&text)
    }
}

/// Replaces every run of other characters than letters and digits by one dash. Texts that differ
/// only in those characters get different names.
fn slug(text: &str) -> String {
    let words: Vec<&str> =
        text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let short: String = words.join("-").chars().take(80).collect();
    // FNV-1a, so that names stay the same across releases.
    let hash = text
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{short}-{hash:08x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(attributes: &[(&str, &str)]) -> Identity {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, value) in attributes {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().expect("it has one")).expect("made");
            fs::write(file, format!("{value}\n")).expect("written");
        }
        Identity::of_folder(folder.path())
    }

    #[test]
    fn a_disk_is_identified_by_its_makers_name() {
        let named = disk(&[("wwid", "naa.5000"), ("device/model", "X25"), ("size", "10")]);
        let wwid = Attribute { name: "wwid".into(), value: "naa.5000".into() };
        assert_eq!(named, Identity::Disk(vec![wwid]));
        assert!(!named.is_weak());
        let nameless = disk(&[("serial", ""), ("device/model", "Stick"), ("size", "10")]);
        assert!(nameless.is_weak() && !nameless.is_size_only(), "{nameless:?}");
        assert!(disk(&[("size", "10")]).is_size_only());
        assert!(!disk(&[("dm/uuid", "LVM-x"), ("size", "10")]).is_weak());
    }

    #[test]
    fn file_names_are_safe_and_differ_between_devices() {
        let share =
            |source: &str| Identity::Mount { fs_type: "nfs4".into(), source: source.into() };
        let name = share("server:/../export").slug();
        assert!(name.starts_with("nfs4-server-export-"), "{name}");
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'));
        assert!(share("a:/b").slug() != share("a:/b/").slug());
        assert!(share(&"x".repeat(400)).slug().len() < 100);
    }
}
