//! Restores the window after a reboot by the distribution's own means: udev.
//!
//! ```text
//!   a disk    60-bowwave-NAME.rules    hardware attributes and window: works without bowwave
//!   a mount   60-bowwave-mounts.rules  has no hardware attributes: runs `bowwave tune --hook`
//! ```
//!
//! `--hook` prints the remembered window of a device that has appeared. For a device that is not
//! remembered and has the kernel's default, it prints the window that its size suggests, if that is
//! less: small sticks. It leaves any other window alone, since somebody chose it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use linux::identity::{Attribute, Identity};
use linux::mounts::{Disk, Mount};

use crate::formula;
use crate::profile::{self, Profile, ProfileError};

/// The folder of an administrator's rules.
pub const RULES: &str = "/etc/udev/rules.d";

const MOUNTS_RULE: &str = "60-bowwave-mounts.rules";

/// The window of a disk for which nobody has chosen one (`VM_READAHEAD_PAGES`).
const KERNEL_DEFAULT_KB: u64 = 128;

/// A suggested window of one page means no read-ahead. Since Linux 6, a larger read opens a window of
/// its own size all the same; only 0 turns read-ahead off.
const ONE_PAGE_KB: u64 = 4;

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its path.
    pub path: PathBuf,
    /// Its content.
    pub text: String,
}

/// The rule that sets the window of a remembered device, in the folder `rules`. `program` is the
/// path of bowwave.
pub fn rule(profile: &Profile, rules: &Path, program: &Path) -> Rule {
    let kb = profile.tuned.chosen_kb;
    match &profile.tuned.identity {
        Identity::Disk(attributes) => Rule {
            path: disk_rule(&profile.tuned.identity, rules),
            text: format!(
                "# {target}: measured on {date} by bowwave tune, which removes this with --forget.\n\
                 ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{{DEVTYPE}}==\"disk\", {matches}, \
                 ATTR{{queue/read_ahead_kb}}=\"{kb}\"\n",
                target = one_line(&profile.tuned.target.display().to_string()),
                date = one_line(&profile.tuned.date),
                matches = attributes.iter().map(matching).collect::<Vec<_>>().join(", "),
            ),
        },
        Identity::Mount { .. } => Rule {
            path: rules.join(MOUNTS_RULE),
            text: format!(
                "# Windows of file systems without a disk: what `bowwave tune` remembers of each.\n\
                 ACTION==\"add\", SUBSYSTEM==\"bdi\", KERNEL==\"0:*\", PROGRAM=\"{program} tune --hook %k\", \
                 ATTR{{read_ahead_kb}}=\"%c\"\n",
                program = program.display(),
            ),
        },
    }
}

fn disk_rule(identity: &Identity, rules: &Path) -> PathBuf {
    rules.join(format!("60-bowwave-{}.rules", identity.slug()))
}

fn matching(attribute: &Attribute) -> String {
    format!("ATTR{{{}}}==\"{}\"", attribute.name, pattern(&attribute.value))
}

/// A udev pattern that matches the text. Characters with a meaning in patterns, or that would end
/// the string, match any one character.
fn pattern(text: &str) -> String {
    let plain = |c: char| c.is_ascii_graphic() && !"\"\\*?[]|$%{}".contains(c) || c == ' ';
    text.chars().map(|c| if plain(c) { c } else { '?' }).collect()
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

impl Rule {
    /// Writes the rule.
    ///
    /// # Errors
    /// [`ProfileError::File`].
    pub fn write(&self) -> Result<(), ProfileError> {
        linux::whole::write_durably(&self.path, &self.text)
            .map_err(|error| ProfileError::File { path: self.path.clone(), error })
    }
}

/// Checks that profiles and rules can be written, before time is spent on measuring.
///
/// # Errors
/// [`ProfileError::File`] with the folder.
pub fn prepare(profiles: &Path, rules: &Path) -> Result<(), ProfileError> {
    [profiles, rules].iter().try_for_each(|folder| {
        linux::whole::probe(folder)
            .map_err(|error| ProfileError::File { path: folder.to_path_buf(), error })
    })
}

/// Removes a profile from `profiles` and its rule from `rules`. Returns the removed files.
///
/// # Errors
/// [`ProfileError::Unknown`] if there is no such profile.
pub fn forget(name: &str, profiles: &Path, rules: &Path) -> Result<Vec<PathBuf>, ProfileError> {
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let profile = profiles.join(format!("{name}.toml"));
    if !is_name || !profile.exists() {
        return Err(ProfileError::Unknown(name.into()));
    }
    let mut removed = Vec::new();
    let mut remove = |path: PathBuf| match fs::remove_file(&path) {
        Ok(()) => {
            removed.push(path);
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(ProfileError::File { path, error }),
    };
    remove(rules.join(format!("60-bowwave-{name}.rules")))?;
    remove(profile)?;
    // All mounts share one rule.
    if !remembers_mounts(profiles) {
        remove(rules.join(MOUNTS_RULE))?;
    }
    Ok(removed)
}

/// The window in KiB for a disk that has appeared; `None` to keep the one it has.
pub fn window_for_disk(disk: &Disk, profiles: &Path) -> Option<u64> {
    if let Ok(profile) = Profile::of(&Identity::of_disk(disk), profiles) {
        return Some(profile.tuned.chosen_kb);
    }
    if disk.queue("read_ahead_kb")? != KERNEL_DEFAULT_KB {
        return None;
    }
    let suggested = match formula::readahead_kb(disk.bytes().filter(|bytes| *bytes > 0)?) {
        ONE_PAGE_KB => 0,
        kb => kb,
    };
    (suggested < KERNEL_DEFAULT_KB).then_some(suggested)
}

/// Whether a file system without a disk may be remembered: there is such a profile, or one that cannot be read.
pub fn remembers_mounts(profiles: &Path) -> bool {
    let is_of_disk = |profile: &Result<Profile, ProfileError>| {
        profile.as_ref().is_ok_and(|it| matches!(it.tuned.identity, Identity::Disk(_)))
    };
    match profile::list(profiles) {
        Ok(all) => all.iter().any(|(_, profile)| !is_of_disk(profile)),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// The remembered window in KiB of a file system without a disk; `None` to keep the one it has.
pub fn window_for_mount(mount: &Mount, profiles: &Path) -> Option<u64> {
    let profile = Profile::of(&Identity::of(mount, None), profiles).ok()?;
    Some(profile.tuned.chosen_kb)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::profile::tests::profile;

    fn of_disk(name: &str, value: &str) -> Profile {
        let mut profile = profile();
        let attribute = Attribute { name: name.into(), value: value.into() };
        profile.tuned.identity = Identity::Disk(vec![attribute]);
        profile
    }

    #[test]
    fn a_disks_rule_names_its_hardware_and_the_window() {
        let profile = of_disk("wwid", "naa.5000c500");
        let rule = rule(&profile, Path::new(RULES), Path::new("/usr/local/bin/bowwave"));
        assert!(
            rule.path.starts_with(RULES) && rule.path.extension().is_some_and(|e| e == "rules")
        );
        let line = rule.text.lines().nth(1).expect("a comment, then the rule");
        assert_eq!(
            line,
            "ACTION==\"add|change\", SUBSYSTEM==\"block\", ENV{DEVTYPE}==\"disk\", \
             ATTR{wwid}==\"naa.5000c500\", ATTR{queue/read_ahead_kb}=\"512\""
        );
    }

    #[test]
    fn a_name_cannot_break_out_of_the_rule() {
        let profile = of_disk("device/model", "x\", RUN+=\"/bin/sh\n*");
        let text = rule(&profile, Path::new(RULES), Path::new("/usr/bin/bowwave")).text;
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("==\"x?, RUN+=?/bin/sh??\""), "{text}");
    }

    #[test]
    fn a_mounts_rule_asks_bowwave() {
        let rule = rule(&profile(), Path::new(RULES), Path::new("/usr/local/bin/bowwave"));
        assert!(rule.text.contains("PROGRAM=\"/usr/local/bin/bowwave tune --hook %k\""));
        assert!(rule.text.contains("ATTR{read_ahead_kb}=\"%c\""));
    }

    #[test]
    fn forgetting_removes_one_device_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let (profiles, rules) = (folder.path().join("devices"), folder.path().join("rules"));
        let profile = of_disk("wwid", "naa.1");
        profile.write(&profiles).expect("written");
        rule(&profile, &rules, Path::new("/b")).write().expect("written");
        let other = of_disk("wwid", "naa.2").write(&profiles).expect("written");
        let name = profile.tuned.identity.slug();
        assert_eq!(forget(&name, &profiles, &rules).expect("it is there").len(), 2);
        assert!(other.exists());
        for unknown in [&*name, "../x", ""] {
            assert!(matches!(forget(unknown, &profiles, &rules), Err(ProfileError::Unknown(_))));
        }
    }

    #[test]
    fn the_rule_for_mounts_goes_with_the_last_of_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let (profiles, rules) = (folder.path().join("devices"), folder.path().join("rules"));
        let of_source = |source: &str| {
            let mut profile = profile();
            let (fs_type, source) = ("nfs4".into(), source.into());
            profile.tuned.identity = Identity::Mount { fs_type, source };
            profile.write(&profiles).expect("written");
            rule(&profile, &rules, Path::new("/b")).write().expect("written");
            profile.tuned.identity.slug()
        };
        let names = ["server:/x", "server:/y"].map(of_source);
        let of_mounts = rules.join(MOUNTS_RULE);
        assert_eq!(forget(&names[0], &profiles, &rules).expect("it is there").len(), 1);
        assert!(of_mounts.exists());
        assert_eq!(forget(&names[1], &profiles, &rules).expect("it is there").len(), 2);
        assert!(!of_mounts.exists());
    }

    proptest! {
        #[test]
        fn whatever_a_device_calls_itself_stays_within_its_quotes(value in any::<String>()) {
            let text = rule(&of_disk("device/model", &value), Path::new(RULES), Path::new("/b")).text;
            prop_assert_eq!(text.lines().count(), 2);
            prop_assert_eq!(text.matches('"').count(), 10);
        }
    }
}
