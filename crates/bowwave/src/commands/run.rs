//! `bowwave run`.

use std::process::ExitCode;

/// Run a command with adaptive read-ahead for it and its descendants only.
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn main(_args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not built yet")
}
