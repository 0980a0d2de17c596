//! The server's file `control`, which switches the delays off or on and changes the faults.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use crate::error::LabError;
use crate::fault::Fault;

const FAST: &str = "fast";
const TIMED: &str = "timed";
const FAULTS: &str = "faults";

/// What somebody orders by writing to `control`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Delays and faults off, while files are prepared.
    Fast,
    /// Delays and faults on.
    Timed,
    /// These faults in place of all others.
    Faults(Vec<Fault>),
}

impl Order {
    /// Writes it to the server at `fuse`.
    pub(crate) fn give(&self, fuse: &Path) -> Result<(), LabError> {
        let path = fuse.join("control");
        // Never create the file: without the server, it would be in the way.
        let opened = File::options().write(true).open(&path);
        let text = self.text();
        opened
            .and_then(|mut control| control.write_all(text.as_bytes()))
            .map_err(LabError::file(path))
    }

    fn text(&self) -> String {
        match self {
            Order::Fast => FAST.into(),
            Order::Timed => TIMED.into(),
            Order::Faults(faults) => {
                let faults = faults.iter().map(Fault::to_string);
                [FAULTS.to_owned()].into_iter().chain(faults).collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// What a written text orders; `None` if it is no order.
    pub(crate) fn read(data: &[u8]) -> Option<Order> {
        let words: Vec<&str> = std::str::from_utf8(data).ok()?.split_ascii_whitespace().collect();
        match words.as_slice() {
            [FAST] => Some(Order::Fast),
            [TIMED] => Some(Order::Timed),
            [FAULTS, faults @ ..] => faults
                .iter()
                .map(|text| text.parse().ok())
                .collect::<Option<_>>()
                .map(Order::Faults),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_as_they_are_written() {
        let faults = ["eio:8-15,99", "spike:5@2.5"].map(|text| text.parse().expect("a fault"));
        for order in
            [Order::Fast, Order::Timed, Order::Faults(Vec::new()), Order::Faults(faults.into())]
        {
            assert_eq!(Order::read(format!("{}\n", order.text()).as_bytes()), Some(order));
        }
    }

    #[test]
    fn anything_else_is_no_order() {
        for text in ["", " ", "slow", "fast now", "faults explode", "eio:8", "\u{fffd}"] {
            assert_eq!(Order::read(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Order::read(b"\xff"), None);
    }
}
