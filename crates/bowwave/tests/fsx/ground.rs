//! File systems on a lab disk, with bowwave beside them.

use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lab::LabGuard;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use tempfile::TempDir;

use crate::managed::{self, Daemon};
use crate::own::Own;
use crate::stage::{self, Alone, skipped, wait_until};

/// A folder to work in. What is mounted over the lab goes first.
pub(crate) struct Ground {
    name: String,
    over: Option<Over>,
    lab: LabGuard,
    state: TempDir,
    _alone: Alone,
}

/// A file system whose files are the lab's.
struct Over {
    folder: TempDir,
    kind: Kind,
    /// Of FUSE. It ends when its mount is gone.
    server: Option<Own>,
}

enum Kind {
    /// With these options.
    Overlay(CString),
    /// That shows this folder.
    Fuse(PathBuf),
}

impl Over {
    /// `None` where it does not work.
    fn new(kind: Kind) -> Option<Self> {
        let mut over = Over { folder: tempfile::tempdir().expect("a folder"), kind, server: None };
        over.mount()?;
        Some(over)
    }

    fn mount(&mut self) -> Option<()> {
        let folder = self.folder.path();
        match &self.kind {
            Kind::Overlay(options) => {
                match mount("overlay", folder, "overlay", MountFlags::empty(), &**options) {
                    Ok(()) => Some(()),
                    Err(error) => skipped(&format!("no overlay can be mounted: {error}")),
                }
            }
            Kind::Fuse(from) => {
                if Command::new("bindfs").arg("--version").output().is_err() {
                    return skipped("no bindfs; `scripts/setup tests` installs it");
                }
                let mut bindfs = Command::new("bindfs");
                self.server = Some(Own::start(bindfs.arg("-f").arg(from).arg(folder)));
                wait_until("it is mounted", Duration::from_secs(60), || is_mounted(folder));
                Some(())
            }
        }
    }

    fn unmount(&mut self) {
        unmount(self.folder.path(), UnmountFlags::empty()).expect("nobody has a file open");
        if let Some(mut server) = self.server.take() {
            server.wait().expect("it ends");
        }
    }
}

impl Drop for Over {
    fn drop(&mut self) {
        let _ = unmount(self.folder.path(), UnmountFlags::DETACH);
        drop(self.server.take());
    }
}

fn is_mounted(folder: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("/proc");
    mounts.contains(&format!(" {} ", folder.display()))
}

impl Ground {
    /// A file system on the lab disk itself; `None` where it, labs or eBPF do not work.
    pub(crate) fn disk(fs_type: &str) -> Option<Self> {
        managed::possible()?;
        if Command::new(format!("mkfs.{fs_type}")).arg("-V").output().is_err() {
            return skipped(&format!("no mkfs.{fs_type}; `scripts/setup tests` installs it"));
        }
        let (alone, lab) = stage::lab("fsx", "net", 512 << 20, fs_type);
        let name = fs_type.to_owned();
        Some(Ground { name, over: None, lab, state: stage::state(), _alone: alone })
    }

    /// An overlay; files are made in its upper layer, which is an ext4.
    pub(crate) fn overlay() -> Option<Self> {
        let ground = Ground::disk("ext4")?;
        let layers = ["lower", "upper", "work"].map(|name| ground.lab.mount_point().join(name));
        layers.iter().for_each(|layer| fs::create_dir(layer).expect("room on the lab"));
        let [lower, upper, work] = layers.map(|layer| layer.display().to_string());
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
        ground.below("overlay", Kind::Overlay(CString::new(options).expect("no zero")))
    }

    /// bindfs, which shows a folder of an ext4 through FUSE.
    pub(crate) fn fuse() -> Option<Self> {
        let ground = Ground::disk("ext4")?;
        let from = ground.lab.mount_point().join("from");
        fs::create_dir(&from).expect("room on the lab");
        ground.below("FUSE", Kind::Fuse(from))
    }

    fn below(self, name: &str, kind: Kind) -> Option<Self> {
        Some(Ground { name: name.into(), over: Some(Over::new(kind)?), ..self })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.over.as_ref().map_or(self.lab.mount_point(), |over| over.folder.path().to_owned())
    }

    /// A daemon that drops behind always, and has met the disk with its delays; that has none from then on.
    pub(crate) fn daemon(&self) -> Daemon {
        self.lab.set_fast(false).expect("slow");
        let mut daemon =
            managed::daemon(&self.lab, self.state.path(), &["--drop-behind", "always"]);
        if self.name == "FUSE" {
            // Its files are cached once more, as files of its own.
            daemon.arg("--path").arg(self.folder());
        }
        let daemon = Daemon::begin(&mut daemon);
        managed::wait_measured(&self.lab, self.state.path());
        self.lab.set_fast(true).expect("fast");
        daemon
    }

    /// Empties the page cache, by unmounting and mounting everything.
    pub(crate) fn evict(&mut self) {
        if let Some(over) = &mut self.over {
            over.unmount();
        }
        self.lab.evict().expect("nobody has a file open");
        if let Some(over) = &mut self.over {
            over.mount().expect("it could be before");
        }
        self.lab.set_fast(true).expect("fast");
    }
}
