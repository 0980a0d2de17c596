//! A device's description, as its TOML file gives it.

use serde::{Deserialize, Serialize};

use crate::channels::{Channels, ChannelsSpec};
use crate::disk::{Disk, DiskSpec};
use crate::model::Model;
use crate::text;

/// A device's description.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// One line for the catalogue.
    pub description: String,
    /// Mechanics, for a disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskSpec>,
    /// Channels, for everything that does not turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<ChannelsSpec>,
}

/// What a device charges, in the terms of the policies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Seconds of one more visit, positioning included.
    pub latency_s: f64,
    /// Bytes per second while streaming.
    pub bandwidth: f64,
    /// Visits that proceed at once.
    pub concurrency: f64,
}

/// What is wrong with a device's description.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// No such name and no such file.
    #[error(
        "there is no device {0:?}; `bowwave lab --list` names those there are, and a path to a TOML file works too"
    )]
    Unknown(String),
    /// The file cannot be read.
    #[error("cannot read the device file {path}: {error}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// The text is not a description.
    #[error("{path}, line {line}: {reason}; docs/devices.md describes the format")]
    Malformed {
        /// The file, or the catalogue's name.
        path: String,
        /// Where.
        line: usize,
        /// Why.
        reason: String,
    },
    /// The numbers make no device.
    #[error("{path} describes no possible device: {reason}; docs/devices.md describes the format")]
    Impossible {
        /// The file, or the catalogue's name.
        path: String,
        /// Which number, and what it has to be.
        reason: String,
    },
}

impl Spec {
    /// Reads a description; `path` names it in errors.
    ///
    /// # Errors
    /// [`SpecError::Malformed`] and [`SpecError::Impossible`].
    pub fn parse(text: &str, path: &str) -> Result<Self, SpecError> {
        let spec: Spec =
            toml::from_str(text).map_err(|error| SpecError::malformed(text, path, &error))?;
        let impossible =
            |reason: &str| SpecError::Impossible { path: path.into(), reason: reason.into() };
        if let Some(name) = text::name_of_not_finite(text) {
            return Err(impossible(&format!("{name} must be a finite number")));
        }
        match (&spec.disk, &spec.channels) {
            (Some(disk), None) => disk.check(),
            (None, Some(channels)) => channels.check(),
            _ => Err("it needs either a [disk] or a [channels] table".into()),
        }
        .map_err(|reason| impossible(&reason))?;
        Ok(spec)
    }

    /// A new device of this description, `size` bytes large.
    pub fn build(&self, size: u64) -> Box<dyn Model> {
        match (&self.disk, &self.channels) {
            (Some(disk), _) => Box::new(Disk::new(disk.clone(), size)),
            (None, Some(channels)) => Box::new(Channels::new(channels.clone())),
            (None, None) => unreachable!("parse() refuses such a description"),
        }
    }

    /// Whether it has a head to move.
    pub fn is_rotational(&self) -> bool {
        self.disk.is_some()
    }

    /// What the device charges.
    pub fn cost(&self) -> Cost {
        match (&self.disk, &self.channels) {
            (Some(disk), _) => disk.cost(),
            (None, Some(channels)) => channels.cost(),
            (None, None) => unreachable!("parse() refuses such a description"),
        }
    }

    /// The least seconds in which the device can deliver `bytes`: one visit, then streaming.
    pub fn limit_seconds(&self, bytes: u64) -> f64 {
        let cost = self.cost();
        cost.latency_s + bytes as f64 / cost.bandwidth
    }
}
