//! The small machine: what a large file, or many slow readers, do to little memory.
//!
//! ```text
//!   memory cgroup (the machine)
//!     +-- a program that scans a mapped file          the working set: must stay
//!     +-- a job: read, copy, backup, streams          stock, or under `bowwave run`
//! ```
//!
//! Memory is that of a small machine, and files are in proportion, so that the lab's disks deliver them in seconds.
//! Each run begins with cold caches and in a new cgroup.

mod beside;
mod disturbance;
mod drop_behind;
mod machine;
mod nocache;
mod sizes;
mod thrash;

use std::io::{self, Write};

use serde_json::Value;

use crate::error::DemoError;
use crate::files;
use crate::stop::Stop;
use crate::target::Place;
use machine::Setup;
use sizes::Sizes;

/// The patterns of a small machine, with a definition.
pub const SHOWS: [(&str, &str); 2] = [
    ("drop-behind", "a working set beside reads and copies of a big file, and against nocache"),
    ("thrash", "800 slow streams in 64 MB of memory"),
];

/// One table of a report.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// As text.
    pub text: String,
    /// Its rows as JSON objects.
    pub rows: Vec<Value>,
}

/// The patterns to run.
pub(crate) struct Wanted {
    pub(crate) drop_behind: bool,
    pub(crate) thrash: bool,
    /// With larger memory and files, see [`Sizes::of`].
    pub(crate) full: bool,
    pub(crate) rounds: u32,
}

impl Wanted {
    pub(crate) fn is_nothing(&self) -> bool {
        !self.drop_behind && !self.thrash
    }

    /// Runs them on a device that is made for them.
    pub(crate) fn show(
        &self,
        device: &str,
        place: &Place,
        stop: &Stop,
    ) -> Result<Vec<Section>, DemoError> {
        let sizes = Sizes::of(self.full);
        note(format_args!("{device}: making the device of a small machine"));
        let target = place.open(0.0)?;
        let state =
            crate::leftovers::temporary_folder().map_err(DemoError::file("temporary folder"))?;
        let setup = Setup { target: &target, state: state.path(), stop };
        let mut sections = Vec::new();
        if self.drop_behind {
            note("writing files");
            target.set_fast(true)?;
            files::prepare(&target.folder(), &sizes.files(), stop)?;
            target.set_fast(false)?;
            sections.push(drop_behind::show(&setup, &sizes, self.rounds)?);
            sections.push(beside::show(&setup, &sizes, self.rounds)?);
            sections.push(nocache::show(&setup, &sizes, self.rounds)?);
        }
        if self.thrash {
            sections.push(thrash::show(&setup, &sizes, self.rounds, place.is_rotational())?);
        }
        Ok(sections)
    }
}

/// Says what is being done: this takes minutes.
fn note(what: impl std::fmt::Display) {
    // Nobody may be listening.
    let _ = writeln!(io::stderr(), "{what}");
}
