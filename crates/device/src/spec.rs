//! A device's description, as its TOML file gives it.

use readahead::DeviceCost;
use serde::{Deserialize, Serialize};

use crate::channels::{Channels, ChannelsSpec};
use crate::disk::{Disk, DiskSpec};
use crate::error::SpecError;
use crate::model::Model;
use crate::raid5::{Raid5, Raid5Spec};
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
    /// Several disks with rotating parity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raid5: Option<Raid5Spec>,
    /// What `bowwave tune` noted of the very device that it measured; no model heeds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuned: Option<toml::Table>,
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
        match (&spec.disk, &spec.channels, &spec.raid5) {
            (Some(disk), None, None) => disk.check(),
            (None, Some(channels), None) => channels.check(),
            (None, None, Some(raid5)) => raid5.check(),
            _ => Err("it needs one table, either [disk], [channels] or [raid5]".into()),
        }
        .map_err(|reason| impossible(&reason))?;
        Ok(spec)
    }

    /// A new device of this description, `size` bytes large.
    pub fn build(&self, size: u64) -> Box<dyn Model> {
        match (&self.disk, &self.channels, &self.raid5) {
            (Some(disk), ..) => Box::new(Disk::new(disk.clone(), size)),
            (_, Some(channels), _) => Box::new(Channels::new(channels.clone())),
            (.., Some(raid5)) => Box::new(Raid5::new(raid5.clone(), size)),
            (None, None, None) => unreachable!("parse() refuses such a description"),
        }
    }

    /// Whether it has a head to move.
    pub fn is_rotational(&self) -> bool {
        self.channels.is_none()
    }

    /// What the device charges, in the terms of the policies.
    pub fn cost(&self) -> DeviceCost {
        match (&self.disk, &self.channels, &self.raid5) {
            (Some(disk), ..) => disk.cost(),
            (_, Some(channels), _) => channels.cost(),
            (.., Some(raid5)) => raid5.cost(),
            (None, None, None) => unreachable!("parse() refuses such a description"),
        }
    }

    /// The least seconds in which the device can deliver `bytes`: one device access, then streaming.
    pub fn limit_seconds(&self, bytes: u64) -> f64 {
        let cost = self.cost();
        cost.latency_s + bytes as f64 / cost.bandwidth
    }
}
