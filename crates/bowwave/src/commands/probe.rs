//! `bowwave probe`, hidden: measures a disk for a bowwave that must not wait for it.

use std::process::ExitCode;

use live::prober::{self, Prober};

use crate::print;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The disk, as MAJOR:MINOR.
    disk: String,
    /// The process that wants to know.
    parent: u32,
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    let disk = args.disk.parse().map_err(|_| anyhow::anyhow!("{:?} is no disk", args.disk))?;
    print::line(prober::main(disk, args.parent)?)?;
    Ok(ExitCode::SUCCESS)
}

/// This very program, called so; where that cannot be found, a thread of this process.
pub(crate) fn by_process() -> Prober {
    match std::env::current_exe() {
        Ok(program) => Prober::Process { program, arguments: vec!["probe".into()] },
        Err(_) => Prober::Thread,
    }
}
