//! `bowwave doctor`.

use std::process::ExitCode;

/// Tell what works on this machine, what does not, why, and what to do.
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn main(_args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not built yet")
}
