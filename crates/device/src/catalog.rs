//! The devices that come with bowwave.

use crate::error::SpecError;
use crate::spec::Spec;
use crate::text;

const DEVICES: [(&str, &str); 21] = [
    ("hdd", include_str!("../devices/hdd.toml")),
    ("hdd-fifo", include_str!("../devices/hdd-fifo.toml")),
    ("net", include_str!("../devices/net.toml")),
    ("ssd", include_str!("../devices/ssd.toml")),
    ("sd", include_str!("../devices/sd.toml")),
    ("ide-2003", include_str!("../devices/ide-2003.toml")),
    ("pc-2005", include_str!("../devices/pc-2005.toml")),
    ("raid5-pe1750", include_str!("../devices/raid5-pe1750.toml")),
    ("disk-2007", include_str!("../devices/disk-2007.toml")),
    ("array-2006", include_str!("../devices/array-2006.toml")),
    ("raid5-backup", include_str!("../devices/raid5-backup.toml")),
    ("st3250820a", include_str!("../devices/st3250820a.toml")),
    ("intel-x25m-80g", include_str!("../devices/intel-x25m-80g.toml")),
    ("sandisk-sata-30g", include_str!("../devices/sandisk-sata-30g.toml")),
    ("marvell-sd88-22g", include_str!("../devices/marvell-sd88-22g.toml")),
    ("teclast-usb-32g", include_str!("../devices/teclast-usb-32g.toml")),
    ("sandisk-cruzer-4g", include_str!("../devices/sandisk-cruzer-4g.toml")),
    ("usb-2g", include_str!("../devices/usb-2g.toml")),
    ("m-systems-usb11-64m", include_str!("../devices/m-systems-usb11-64m.toml")),
    ("sd-card", include_str!("../devices/sd-card.toml")),
    ("slow-505k", include_str!("../devices/slow-505k.toml")),
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

/// Loads the device with this name from the catalogue, or from the TOML file with this path.
///
/// # Errors
/// See [`SpecError`].
pub fn load(name: &str) -> Result<Spec, SpecError> {
    if let Some((name, text)) = DEVICES.iter().find(|(known, _)| *known == name) {
        return Spec::parse(text, name);
    }
    if !name.contains('/') && !name.ends_with(".toml") {
        let known = DEVICES.map(|(known, _)| known).join(", ");
        return Err(SpecError::Unknown { name: name.into(), known });
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
        assert!(error.contains("[disk], [channels] or [raid5]"), "{error}");
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
