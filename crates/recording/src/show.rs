//! Shows an entry as a line of text.

use std::fmt::{Display, Formatter, Result};

use crate::record::{Entry, Event};

/// Number, time, event and commands. Names chosen by others are quoted, without control characters.
impl Display for Entry {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} {:.6} ", self.number, self.at as f64 * 1e-9)?;
        match &self.event {
            Event::Input(input) => write!(f, "{input:?}")?,
            other => write!(f, "{other:?}")?,
        }
        if self.commands.is_empty() { Ok(()) } else { write!(f, " -> {:?}", self.commands) }
    }
}
