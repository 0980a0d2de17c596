//! Hidden commands: what a bowwave has done in a process of its own, as it may never end.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use live::fetching;
use live::helper::Helper;
use live::prober;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;

use crate::print;

/// `bowwave probe`: measures a disk.
#[derive(clap::Args)]
pub(crate) struct Probe {
    /// The process that wants to know.
    parent: u32,
    /// The disk, as MAJOR:MINOR.
    disk: String,
}

/// `bowwave fetch`: duplicates descriptors of other processes for whoever is at the other end of standard input.
#[derive(clap::Args)]
pub(crate) struct Fetch {
    /// The process that wants them.
    parent: u32,
}

pub(crate) fn probe(args: Probe) -> anyhow::Result<ExitCode> {
    let disk = args.disk.parse().map_err(|_| anyhow::anyhow!("{:?} is no disk", args.disk))?;
    print::line(prober::main(disk, args.parent)?)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn fetch(args: Fetch) -> anyhow::Result<ExitCode> {
    // It is needed until bowwave, which may get them as well, has given its windows back.
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        flag::register(signal, Arc::default())?;
    }
    fetching::main(args.parent)?;
    Ok(ExitCode::SUCCESS)
}

/// The running program, also after another version was installed in its place.
const OWN: &str = "/proc/self/exe";

/// This very program; where it cannot be found, a thread of this process.
pub(crate) fn of_this_program() -> Helper {
    if Path::new(OWN).is_symlink() {
        Helper::Process { program: OWN.into(), arguments: Vec::new() }
    } else {
        Helper::Thread
    }
}
