//! Errors in a device's description.

/// What is wrong with a device's description.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// There is no such name and no such file.
    #[error(
        "there is no device {name:?}; choose one of {known} (`bowwave lab --list` describes them) or give the path of a TOML file"
    )]
    Unknown {
        /// The name that the user gave.
        name: String,
        /// The names in the catalogue.
        known: String,
    },
    /// The file cannot be read.
    #[error("cannot read the device file {path}: {error}")]
    Unreadable {
        /// The file.
        path: String,
        /// The cause.
        error: std::io::Error,
    },
    /// The text does not parse as a description.
    #[error("{path}, line {line}: {reason}; docs/devices.md describes the format")]
    Malformed {
        /// The path, or the name in the catalogue.
        path: String,
        /// The line of the error.
        line: usize,
        /// The cause.
        reason: String,
    },
    /// No device can have these numbers.
    #[error("{path} describes no possible device: {reason}; docs/devices.md describes the format")]
    Impossible {
        /// The path, or the name in the catalogue.
        path: String,
        /// Which number, and its range.
        reason: String,
    },
}
