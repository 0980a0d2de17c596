//! Hidden commands: jobs that may hang, so bowwave starts them as helper processes (`live::helper`).

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
    /// The process that started this one.
    parent: u32,
    /// The disk, as MAJOR:MINOR.
    disk: String,
}

/// `bowwave fetch`: duplicates descriptors of other processes for the process at the other end of standard input.
#[derive(clap::Args)]
pub(crate) struct Fetch {
    /// The process that started this one.
    parent: u32,
}

pub(crate) fn probe(args: Probe) -> anyhow::Result<ExitCode> {
    let disk = args.disk.parse().map_err(|_| anyhow::anyhow!("{:?} is not a disk", args.disk))?;
    print::line(prober::main(disk, args.parent)?)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn fetch(args: Fetch) -> anyhow::Result<ExitCode> {
    // Ignore the signals that end bowwave, which may reach this process, too: bowwave needs it to restore windows.
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        flag::register(signal, Arc::default())?;
    }
    fetching::main(args.parent)?;
    Ok(ExitCode::SUCCESS)
}

/// Helpers run this same program, even after another version was installed in its place.
pub(crate) fn of_this_program() -> Helper {
    Helper { program: "/proc/self/exe".into(), arguments: Vec::new() }
}
