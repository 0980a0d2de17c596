//! ext4 on LVM on LUKS on md, and ext4 on a bare disk of the same kind.
//!
//! ```text
//!   /bare    ext4 --> disk bare
//!   /stack   ext4 --> LVM (linear) --> LUKS (aes-xts) --> md (RAID 1) --> disks first, second
//! ```

use std::fs;
use std::process::Output;

use rustix::mount::{MountFlags, mount};

use super::{COLUMN, run};
use crate::Result;
use crate::machine::disk_named;

/// A file for a stream, and one for a reader of random places.
pub(super) const STREAM_FILE: &str = "f100";
pub(super) const RANDOM_FILE: &str = "random";
pub(super) const BARE: &str = "/bare";
pub(super) const STACK: &str = "/stack";

const KEY: &str = "/run/key";
/// The key is known, and a processor without hardware takes seconds for the usual number.
const FEW_ITERATIONS: [&str; 3] =
    ["--pbkdf=pbkdf2", "--pbkdf-force-iterations=1000", "--batch-mode"];

/// Makes both, with the files, whose contents are those of `f100` in `from`.
pub(super) fn set_up(from: &str) -> Result<()> {
    let bare = format!("/dev/{}", disk_named("bare")?);
    let [first, second] = [disk_named("first")?, disk_named("second")?];
    let [first, second] = [format!("/dev/{first}"), format!("/dev/{second}")];
    let mirror = ["--create", "/dev/md0", "--level=1", "--raid-devices=2", "--assume-clean"];
    run("mdadm", &[&mirror[..], &["--run", "--metadata=1.2", &first, &second]].concat())?;
    fs::write(KEY, [7; 64])?;
    fs::create_dir_all("/run/cryptsetup")?;
    let format = ["luksFormat", "--type=luks2", "--key-file", KEY, "/dev/md0"];
    run("cryptsetup", &[&FEW_ITERATIONS[..], &format].concat())?;
    run("cryptsetup", &["open", "--key-file", KEY, "/dev/md0", "crypt"])?;
    run("lvm", &["pvcreate", "/dev/mapper/crypt"])?;
    run("lvm", &["vgcreate", "servers", "/dev/mapper/crypt"])?;
    run("lvm", &["lvcreate", "--extents=100%FREE", "--name=data", "servers"])?;
    for (device, folder) in [(&*bare, BARE), ("/dev/mapper/servers-data", STACK)] {
        run("mkfs.ext4", &["-q", "-F", device])?;
        fs::create_dir(folder)?;
        mount(device, folder, "ext4", MountFlags::empty(), None)?;
        for name in [STREAM_FILE, RANDOM_FILE] {
            fs::copy(format!("{from}/f100"), format!("{folder}/{name}"))?;
        }
    }
    Ok(())
}

/// Whether doctor tells what the volume is made of.
pub(super) fn report_names(doctor: &Output) -> Result<()> {
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    let line = said.lines().find_map(|line| Some(line.split_once(STACK)?.1)).unwrap_or("not there");
    let mut disks = [disk_named("first")?, disk_named("second")?];
    disks.sort();
    let expected = format!("(on md0, of {})", disks.join(", "));
    crate::report(COLUMN, "disks below", line.contains(&expected), line.trim_start_matches(": "));
    Ok(())
}
