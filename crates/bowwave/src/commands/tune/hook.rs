//! Answers udev when a device has appeared.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use linux::mounts::{self, Changes, Disk, Mount};
use readahead::DeviceNumber;
use tune::persist;

use crate::print;

/// A backing device appears a moment before its file system is mounted. One that is mounted where udev cannot see it,
/// as in a container, occupies one of udev's workers for this time, if any mount is remembered.
const MOUNT_TIMEOUT: Duration = Duration::from_millis(500);

/// Prints the window for `device`, a disk's name or a backing device's number. Fails silently if it should keep its
/// window.
pub(super) fn answer(device: &str, profiles: &Path) -> anyhow::Result<ExitCode> {
    let Some(kb) = window(device, profiles, mount_of)? else { return Ok(ExitCode::FAILURE) };
    print::line(kb)?;
    Ok(ExitCode::SUCCESS)
}

/// The window for `device` in KiB. `await_mount` may take long; users can have it called as often as they mount.
fn window(
    device: &str,
    profiles: &Path,
    await_mount: impl FnOnce(DeviceNumber) -> anyhow::Result<Option<Mount>>,
) -> anyhow::Result<Option<u64>> {
    Ok(match device.parse::<DeviceNumber>() {
        Ok(dev) if dev.major == 0 && !persist::remembers_mounts(profiles) => None,
        Ok(dev) if dev.major == 0 => {
            await_mount(dev)?.and_then(|mount| persist::window_for_mount(&mount, profiles))
        }
        number => {
            let disk = number.map_or_else(|_| disk_named(device), Disk::of);
            disk.and_then(|disk| persist::window_for_disk(&disk, profiles))
        }
    })
}

fn disk_named(name: &str) -> Option<Disk> {
    let name = Path::new(name).file_name()?;
    let number = std::fs::read_to_string(Path::new("/sys/block").join(name).join("dev")).ok()?;
    Disk::of(number.trim().parse().ok()?)
}

/// The file system with this number. Waits for it if it is about to be mounted.
fn mount_of(dev: DeviceNumber) -> anyhow::Result<Option<Mount>> {
    let until = Instant::now() + MOUNT_TIMEOUT;
    let changes = Changes::watch()?;
    loop {
        let found = mounts::of_number(dev)?;
        let left = until.saturating_duration_since(Instant::now());
        if found.is_some() || left.is_zero() {
            return Ok(found);
        }
        changes.wait(left)?;
    }
}

#[cfg(test)]
mod tests {
    use linux::identity::Identity;

    use super::*;

    #[test]
    fn a_disk_that_is_not_there_is_not_found() {
        assert!(disk_named("no-such-disk").is_none());
    }

    #[test]
    fn a_mount_is_awaited_only_if_one_is_remembered() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut waits = 0;
        let mut ask = || {
            let await_mount = |_| {
                waits += 1;
                Ok(None)
            };
            assert_eq!(window("0:4000", folder.path(), await_mount).expect("no error"), None);
            waits
        };
        assert_eq!(ask(), 0);
        let mount = Identity::Mount { fs_type: "nfs4".into(), source: "server:/export".into() };
        std::fs::write(folder.path().join(format!("{}.toml", mount.slug())), "damaged")
            .expect("written");
        assert_eq!(ask(), 1, "a profile that cannot be read may be of a mount");
    }
}
