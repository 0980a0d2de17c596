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

    /// The same device with `times` as long until the first byte of a request, everything else being equal. A disk
    /// turns as fast as before.
    pub fn with_latency(mut self, times: f64) -> Self {
        if let Some(channels) = &mut self.channels {
            channels.latency_us *= times;
        }
        for disk in self.disks() {
            disk.command_us *= times;
            disk.settle_us *= times;
            disk.full_stroke_us *= times;
        }
        self
    }

    /// The same device with `times` the rate at which data comes once it flows.
    pub fn with_bandwidth(mut self, times: f64) -> Self {
        if let Some(channels) = &mut self.channels {
            channels.bandwidth_mb_s *= times;
        }
        for disk in self.disks() {
            disk.media_mb_s *= times;
            let others = [&mut disk.inner_mb_s, &mut disk.bus_mb_s];
            others.into_iter().flatten().for_each(|rate| *rate *= times);
        }
        if let Some(rate) = self.raid5.as_mut().and_then(|raid5| raid5.controller_mb_s.as_mut()) {
            *rate *= times;
        }
        self
    }

    /// The same device with random angles after the seeks of its disks.
    pub fn with_random_rotation(mut self) -> Self {
        self.disks().for_each(|disk| disk.random_rotation = true);
        self
    }

    /// The parameters of its disks, if it has any.
    fn disks(&mut self) -> impl Iterator<Item = &mut DiskSpec> {
        let of_array = self.raid5.as_mut().map(|raid5| &mut raid5.disk);
        self.disk.as_mut().into_iter().chain(of_array)
    }

    /// Least time to deliver `bytes`, in seconds: one device access, then streaming.
    pub fn limit_seconds(&self, bytes: u64) -> f64 {
        let cost = self.cost();
        cost.latency_s + bytes as f64 / cost.bandwidth
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_slower_device_of_each_kind_costs_more_and_is_still_possible() {
        for (name, _) in crate::catalog() {
            let spec = || crate::load(name).expect("in the catalogue");
            let (far, slow) = (spec().with_latency(1.25), spec().with_bandwidth(0.8));
            // One waits for nothing.
            let waits = spec().cost().latency_s > 0.0;
            assert_eq!(far.cost().latency_s > spec().cost().latency_s, waits, "{name}");
            assert!(slow.cost().bandwidth < spec().cost().bandwidth, "{name}");
            assert_eq!(slow.cost().latency_s, spec().cost().latency_s, "{name}");
            for spec in [far, slow] {
                let text = toml::to_string(&spec).expect("it can be written");
                super::Spec::parse(&text, name).expect("it could exist");
            }
        }
    }
}
