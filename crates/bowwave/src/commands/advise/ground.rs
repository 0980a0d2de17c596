//! Where a load runs: the device, and the window that it has today.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use device::Spec;
use linux::identity::Identity;
use linux::knob::Knob;
use linux::mounts::{self, Disk};
use linux::shell::quoted;
use linux::state;
use readahead::STOCK_WINDOW_KB;
use trace::Trace;
use tune::profile::{self, Profile, ProfileError};

/// `bowwave tune` measures a known latency up to 9 % too long (docs/tune.md).
const LEAST_ERROR: f64 = 0.1;

const NAME_ONE: &str =
    "name a device that is like yours: --device hdd, net, ssd (`bowwave lab --list` shows all)";

/// Looking at a file takes a system call, so look at this many only, those of which most is read.
const MOST_FILES: usize = 100;

/// The device on which to replay.
pub(super) struct Device {
    /// What the user calls it.
    pub(super) name: String,
    pub(super) spec: Spec,
    /// How far latency and bandwidth may be off, as a share.
    pub(super) error: f64,
    /// Whether these are figures of this very device.
    pub(super) is_measured: bool,
}

/// The machine on which the load runs.
pub(super) struct Ground {
    pub(super) device: Device,
    /// Today's window.
    pub(super) readahead_kb: u64,
    /// The window that is set now, if the trace's files are on this machine. The user may ask about another one.
    pub(super) set_kb: Option<u64>,
    /// Where it is set, if the trace's files are on this machine.
    pub(super) knob: Option<Knob>,
    /// Where the file system with the trace's files is mounted, if they are on this machine.
    pub(super) mount_point: Option<PathBuf>,
}

/// The device that the user names.
pub(super) fn given(name: &str) -> anyhow::Result<Device> {
    let spec = device::load(name)?;
    let tuned = Profile::read(Path::new(name)).ok().map(|profile| profile.tuned);
    let error = tuned.as_ref().map_or(LEAST_ERROR, |tuned| error_of(tuned.fit_error_percent));
    Ok(Device { name: name.to_owned(), is_measured: tuned.is_some(), spec, error })
}

impl Ground {
    /// Takes what the user has given, and the rest from the disk where the trace's files are.
    pub(super) fn of(
        trace: &Trace,
        given: Option<Device>,
        readahead_kb: Option<u64>,
    ) -> anyhow::Result<Ground> {
        let here = Here::of(trace);
        let device = match given {
            Some(device) => device,
            None => remembered(here.as_ref(), Path::new(state::PROFILES))?,
        };
        let knob = here.as_ref().and_then(|here| here.knob.clone());
        let today = knob.as_ref().and_then(|knob| knob.kb().ok());
        let readahead_kb = readahead_kb.or(today).unwrap_or(STOCK_WINDOW_KB);
        let mount_point = here.map(|here| here.mount_point);
        Ok(Ground { device, readahead_kb, set_kb: today, knob, mount_point })
    }
}

/// Files of the trace on this machine.
struct Here {
    mount_point: PathBuf,
    identity: Identity,
    knob: Option<Knob>,
}

impl Here {
    /// The file system that has most of what is read.
    fn of(trace: &Trace) -> Option<Here> {
        let mut by_device: HashMap<u64, (u64, PathBuf)> = HashMap::new();
        for (file, bytes) in most_read(trace) {
            let path = Path::new(&trace.files()[file].name);
            let Ok(about) = path.symlink_metadata() else { continue };
            if path.is_absolute() && about.is_file() {
                by_device.entry(about.dev()).or_insert_with(|| (0, path.to_owned())).0 += bytes;
            }
        }
        let (_, path) = by_device.into_values().max()?;
        let layer = mounts::upper_layer(&path).ok()?;
        let mount = mounts::of_path(layer.as_deref().unwrap_or(&path)).ok()?;
        let disk = Disk::under(&mount);
        let knob = Knob::at(&mounts::read_ahead_knob(&mount));
        let identity = Identity::of(&mount, disk.as_ref());
        Some(Here { mount_point: mount.mount_point, identity, knob })
    }
}

/// The files of which most is read, and how many bytes, most first.
fn most_read(trace: &Trace) -> Vec<(usize, u64)> {
    let mut bytes: Vec<(usize, u64)> = (0..trace.files().len()).map(|file| (file, 0)).collect();
    for record in trace.records().iter().filter(|record| record.op.is_read()) {
        bytes[record.file as usize].1 += record.bytes;
    }
    bytes.sort_by_key(|(file, bytes)| (std::cmp::Reverse(*bytes), *file));
    bytes.truncate(MOST_FILES);
    bytes
}

/// Refuses, before anything is recorded, if no device of this machine has been measured.
pub(super) fn demand_a_profile(profiles: &Path) -> anyhow::Result<()> {
    let known = profile::list(profiles)
        .with_context(|| format!("cannot read {}; {NAME_ONE}", profiles.display()))?;
    if known.is_empty() {
        bail!(
            "nobody has measured a device of this machine yet; do so with `sudo bowwave tune DEVICE_OR_FOLDER \
             --persist`, or {NAME_ONE}"
        );
    }
    Ok(())
}

/// What `bowwave tune` has remembered of the device where the files are.
fn remembered(here: Option<&Here>, profiles: &Path) -> anyhow::Result<Device> {
    let Some(here) = here else {
        bail!(
            "the files of the trace are not on this machine, so their device is not known; {NAME_ONE}"
        );
    };
    let place = quoted(&here.mount_point);
    match Profile::of(&here.identity, profiles) {
        Ok(profile) => Ok(Device {
            name: here.identity.slug(),
            error: error_of(profile.tuned.fit_error_percent),
            spec: profile.spec,
            is_measured: true,
        }),
        Err(ProfileError::Unknown(_)) => bail!(
            "nobody has measured the device of {place}; do so with `sudo bowwave tune {place} --persist`, or {NAME_ONE}"
        ),
        Err(error) => Err(error).context(NAME_ONE),
    }
}

fn error_of(fit_error_percent: f64) -> f64 {
    (fit_error_percent / 100.0).max(LEAST_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_recorded_where_no_device_is_remembered() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let error = demand_a_profile(folder.path()).expect_err("there is none").to_string();
        assert!(error.contains("tune DEVICE_OR_FOLDER --persist"), "{error}");
        std::fs::write(folder.path().join("some.toml"), "").expect("writable");
        demand_a_profile(folder.path()).expect("one is there, whether or not it can be read");
    }

    #[test]
    fn the_disk_is_that_of_what_is_read_and_not_of_what_is_written() {
        let text =
            "time_us,process,file,op,offset,bytes\n0,p,/b,write,0,9000000\n1,p,/a,read,0,4096\n";
        let trace = Trace::parse(text.as_bytes()).expect("valid");
        let (file, bytes) = most_read(&trace)[0];
        assert_eq!((trace.files()[file].name.as_str(), bytes), ("/a", 4096));
    }
}
