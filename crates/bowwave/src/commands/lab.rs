//! `bowwave lab`.

use std::process::ExitCode;

/// Make a slow disk: a device model behind a real block device.
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn main(_args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not built yet")
}
