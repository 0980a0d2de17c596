//! `bowwave demo`.

use std::process::ExitCode;

/// Show the effect on slow disks made on the spot.
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn main(_args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not built yet")
}
