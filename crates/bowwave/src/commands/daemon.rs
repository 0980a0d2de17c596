//! `bowwave daemon`.

use std::process::ExitCode;

/// Adaptive read-ahead for every program on the machine.
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn main(_args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not built yet")
}
