//! What can be wrong with a device's description.

/// What is wrong with a device's description.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// No such name and no such file.
    #[error(
        "there is no device {name:?}; those there are: {known}, and a path to a TOML file works too (`bowwave lab --list` describes them)"
    )]
    Unknown {
        /// The name that was given.
        name: String,
        /// The names that the catalogue has.
        known: String,
    },
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
