//! The devices that come with bowwave.

use crate::spec::{Spec, SpecError};
use crate::text;

const DEVICES: [(&str, &str); 5] = [
    ("hdd", include_str!("../devices/hdd.toml")),
    ("hdd-fifo", include_str!("../devices/hdd-fifo.toml")),
    ("net", include_str!("../devices/net.toml")),
    ("ssd", include_str!("../devices/ssd.toml")),
    ("sd", include_str!("../devices/sd.toml")),
];

/// Names and descriptions of all devices.
pub fn catalog() -> Vec<(&'static str, String)> {
    DEVICES
        .iter()
        .map(|(name, text)| {
            let spec = Spec::parse(text, name).expect("the catalogue is tested");
            (*name, spec.description)
        })
        .collect()
}

/// The device of that name in the catalogue, or described in the TOML file of that path.
///
/// # Errors
/// See [`SpecError`].
pub fn load(name: &str) -> Result<Spec, SpecError> {
    if let Some((name, text)) = DEVICES.iter().find(|(known, _)| *known == name) {
        return Spec::parse(text, name);
    }
    if !name.contains('/') && !name.ends_with(".toml") {
        return Err(SpecError::Unknown(name.into()));
    }
    Spec::parse(&text::read(name)?, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_device_of_the_catalogue_is_valid_and_described() {
        for (name, description) in catalog() {
            assert!(!description.is_empty(), "{name}");
            assert!(load(name).expect(name).limit_seconds(1 << 20) > 0.0);
        }
    }

    #[test]
    fn errors_name_the_file_and_what_is_wrong() {
        assert!(load("floppy").unwrap_err().to_string().contains("lab --list"));
        let negative =
            include_str!("../devices/net.toml").replace("latency_us = 5000", "latency_us = -1");
        let error = Spec::parse(&negative, "mine.toml").unwrap_err().to_string();
        assert!(error.contains("mine.toml") && error.contains("latency_us"), "{error}");
        let error = Spec::parse("description = 'x'", "mine.toml").unwrap_err().to_string();
        assert!(error.contains("[disk] or a [channels]"), "{error}");
        let wrong_type = include_str!("../devices/net.toml").replace("= 5000.0", "= 'slow'");
        for (text, line) in [("descript", 1), ("description = 'x'\nnoise = 1", 2), (&wrong_type, 5)]
        {
            let error = Spec::parse(text, "mine.toml").unwrap_err().to_string();
            assert!(error.contains(&format!("mine.toml, line {line}: ")), "{error}");
            assert!(error.ends_with("; docs/devices.md describes the format"), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
        let not_a_number = include_str!("../devices/net.toml").replace("= 5000.0", "= nan");
        let error = Spec::parse(&not_a_number, "mine.toml").unwrap_err().to_string();
        assert!(error.contains("latency_us must be a finite number"), "{error}");
    }
}
