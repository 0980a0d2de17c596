//! The policies by the names that users type.

use readahead::{Adaptive, Policy};

/// Open files whose state a historical policy remembers.
const OPEN_FILES: usize = 4096;

#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
pub(crate) enum PolicyName {
    /// Bowwave's own.
    #[default]
    Adaptive,
}

impl PolicyName {
    pub(crate) fn build(self) -> Box<dyn Policy> {
        match self {
            PolicyName::Adaptive => Box::new(Adaptive::default()),
        }
    }
}
