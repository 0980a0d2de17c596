//! A device's description as in its TOML file.

use readahead::DeviceCost;
use serde::{Deserialize, Serialize};

use crate::channels::{Channels, ChannelsSpec};
use crate::disk::{Disk, DiskSpec};
use crate::error::SpecError;
use crate::model::Model;
use crate::raid5::{Raid5, Raid5Spec};
use crate::text;

/// The description of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// One line of text for the catalogue.
    pub description: String,
    /// A disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskSpec>,
    /// Channels, for devices without moving parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<ChannelsSpec>,
    /// An array of disks with rotating parity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raid5: Option<Raid5Spec>,
    /// Results of `bowwave tune` for the device it measured. Models ignore them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuned: Option<toml::Table>,
}

impl Spec {
    /// Parses a description. Errors name it `path`.
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

    /// Creates an idle device of `size` bytes.
    pub fn build(&self, size: u64) -> Box<dyn Model> {
        match (&self.disk, &self.channels, &self.raid5) {
            (Some(disk), ..) => Box::new(Disk::new(disk.clone(), size)),
            (_, Some(channels), _) => Box::new(Channels::new(channels.clone())),
            (.., Some(raid5)) => Box::new(Raid5::new(raid5.clone(), size)),
            (None, None, None) => unreachable!("parse() refuses such a description"),
        }
    }

    /// Whether it has a moving head.
    pub fn is_rotational(&self) -> bool {
        self.channels.is_none()
    }

    /// The device's cost as the policies use it.
    pub fn cost(&self) -> DeviceCost {
        match (&self.disk, &self.channels, &self.raid5) {
            (Some(disk), ..) => disk.cost(),
            (_, Some(channels), _) => channels.cost(),
            (.., Some(raid5)) => raid5.cost(),
            (None, None, None) => unreachable!("parse() refuses such a description"),
        }
    }

    /// Least time to deliver `bytes`, in seconds: one device access, then streaming.
    pub fn limit_seconds(&self, bytes: u64) -> f64 {
        let cost = self.cost();
        cost.latency_s + bytes as f64 / cost.bandwidth
    }
}
