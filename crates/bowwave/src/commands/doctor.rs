//! `bowwave doctor`.

pub(crate) mod checks;

use std::process::ExitCode;

use serde_json::json;

use checks::{Check, Health};

use crate::print;
use crate::settings;

/// Show what works on this machine, what does not, why, and what to do.
///
/// Exits with 0 if `bowwave run` and `bowwave daemon` work here.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    let mut found = checks::examine();
    found.push(configuration(settings::examine(None)));
    let is_able = checks::is_able(&found);
    if args.json {
        print::json(&json!({ "able": is_able, "checks": found }))?;
    } else {
        found.iter().try_for_each(|check| print::line(describe(check)))?;
        let verdict = if is_able { "will work here" } else { "will not work here" };
        print::line(format_args!("bowwave run and bowwave daemon {verdict}"))?;
    }
    Ok(if is_able { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether the daemon would take its configuration.
fn configuration(found: anyhow::Result<String>) -> Check {
    let (health, finding, remedy) = match found {
        Ok(finding) => (Health::Ok, finding, String::new()),
        Err(error) => (Health::Missing, format!("{error:#}"), "correct the file".into()),
    };
    Check { name: "configuration".into(), health, finding, remedy, is_essential: true }
}

fn describe(check: &Check) -> String {
    let health = match check.health {
        Health::Ok => "ok",
        Health::Degraded => "degraded",
        Health::Missing => "MISSING",
    };
    let remedy = match check.remedy.as_str() {
        "" => String::new(),
        remedy => format!("\n         -> {remedy}"),
    };
    // A user who mounts with FUSE chooses the name.
    let name = print::visible(&check.name);
    format!("{health:<9}{name}: {}{remedy}", check.finding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_point_cannot_forge_a_line() {
        let check = Check {
            name: "/mnt/a\n\x1b[2Jok".into(),
            health: Health::Degraded,
            finding: "fuse".into(),
            remedy: "nothing".into(),
            is_essential: false,
        };
        let expected = "degraded /mnt/a\\n\\u{1b}[2Jok: fuse\n         -> nothing";
        assert_eq!(describe(&check), expected);
    }
}
