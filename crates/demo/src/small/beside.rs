//! A second reader that follows the first: pages of the first must still be cached when the second comes.

use std::fmt::Write;

use serde_json::json;

use super::machine::{Machine, Setup, Tool};
use super::sizes::{BIG, Sizes};
use super::{Section, note};
use crate::error::DemoError;
use crate::row::median;
use crate::worker::jobs::Job;

/// The distance in bytes, as between two clients that request the same file from a server one after the other.
const BEHIND_BYTES: u64 = 8 << 20;

/// The table: which share of the pages the second reader finds cached, on the stock kernel and under bowwave.
pub(super) fn show(setup: &Setup<'_>, sizes: &Sizes, rounds: u32) -> Result<Section, DemoError> {
    let mut section = Section {
        text: format!("follower: a second reader {} MB behind the first\n", BEHIND_BYTES >> 20),
        rows: Vec::new(),
    };
    for tool in [Tool::Stock, Tool::DropBehind] {
        let mut shares = Vec::new();
        for round in 1..=rounds {
            note(format_args!("follower, round {round} of {rounds}: {tool}"));
            shares.push(run(setup, sizes, tool)?);
        }
        let share = median(shares.into_iter());
        let _ = writeln!(section.text, "{tool:<9}found {:.2}% cached", share * 100.0);
        let row = json!({ "pattern": "follower", "tool": tool.to_string(), "cached": share });
        section.rows.push(row);
    }
    Ok(section)
}

fn run(setup: &Setup<'_>, sizes: &Sizes, tool: Tool) -> Result<f64, DemoError> {
    let machine = Machine::boot(setup, sizes.memory, &sizes.files())?;
    let mut process = machine.process(tool)?;
    let path = setup.target.folder().join(BIG);
    let done = process.perform(&Job::Follow { path, behind: BEHIND_BYTES })?;
    process.finish()?;
    done.cached_share.ok_or_else(|| DemoError::Process("the follower told nothing".into()))
}
