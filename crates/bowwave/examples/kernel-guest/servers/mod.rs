//! What servers read from: a volume of LVM over LUKS over md, and a folder of NFS.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::mount::mount_bind_recursive;

use crate::Result;
use crate::machine::{DISK, PLAIN, bowwave, disk_named, mount_disk};

mod depth;
mod nfs;
mod stack;
mod stream;

pub(crate) use stream::stream;

/// Where scripts/test-kernels has put the programs of Debian that set up disks, with their libraries.
const TOOLS: &str = "/tools";
const MODULES: [&str; 7] =
    ["raid1", "dm-mod", "dm-crypt", "algif_skcipher", "xts", "nfsd", "nfsv4"];

/// In the first column of the results.
const COLUMN: &str = "servers";

pub(crate) fn look() -> Result<()> {
    for folder in ["/proc", "/sys", "/dev", "/run", "/tmp"] {
        let place = format!("{TOOLS}{folder}");
        fs::create_dir_all(&place)?;
        mount_bind_recursive(folder, place)?;
    }
    run("modprobe", &[&["-a"][..], &MODULES].concat())?;
    mount_disk(&disk_named(PLAIN)?)?;
    stack::set_up(DISK.folder)?;
    let doctor = bowwave("", &["doctor"])?;
    println!("{}", String::from_utf8_lossy(&doctor.stdout));
    stack::report_names(&doctor)?;
    depth::report()?;
    nfs::report()
}

/// Runs a program of [`TOOLS`] to its end.
fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("/proc/self/exe");
    let output = command.arg("tool").arg(program).args(arguments).output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(said);
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} {}: {}: {said}{why}", arguments.join(" "), output.status).into())
}

/// Becomes a program of [`TOOLS`], which sees only its own libraries.
pub(crate) fn tool(program: &str, arguments: &[&str]) -> Result<()> {
    rustix::process::chroot(TOOLS)?;
    std::env::set_current_dir("/")?;
    let mut command = Command::new(format!("/usr/sbin/{program}"));
    // Nobody answers for udev here.
    command.args(arguments).env("DM_DISABLE_UDEV", "1").env("MDADM_NO_UDEV", "1");
    Err(command.env("PATH", "/usr/sbin:/usr/bin").exec().into())
}
