//! `bowwave doctor`.

use std::process::ExitCode;

use live::doctor::{self, Health};
use serde_json::json;

/// Tell what works on this machine, what does not, why, and what to do.
///
/// Ends with 0 if `bowwave run` and `bowwave daemon` work here.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// JSON instead of text.
    #[arg(long)]
    json: bool,
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    let checks = doctor::examine();
    let is_able = doctor::is_able(&checks);
    if args.json {
        println!(
            "{}",
            serde_json::to_string_pretty(&json!({ "able": is_able, "checks": checks }))?
        );
    } else {
        for check in &checks {
            let health = match check.health {
                Health::Ok => "ok",
                Health::Degraded => "degraded",
                Health::Missing => "MISSING",
            };
            println!("{health:<9}{}: {}", check.name, check.finding);
            if !check.remedy.is_empty() {
                println!("         -> {}", check.remedy);
            }
        }
        let verdict = if is_able { "will work here" } else { "will not work here" };
        println!("bowwave run and bowwave daemon {verdict}");
    }
    Ok(if is_able { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
