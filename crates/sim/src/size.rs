//! Parses and prints sizes as users write them.

/// Why a text is no size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// It is no number with a unit.
    #[error("write a whole number, optionally followed by K, M or G, for example 1536M")]
    NotANumber,
    /// It has more than 64 bits.
    #[error("it is too large")]
    TooLarge,
}

/// Parses a size such as `512M` or `4G` into bytes.
///
/// # Errors
/// [`SizeError`].
pub fn parse(text: &str) -> Result<u64, SizeError> {
    let (number, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: u64 = number.parse().map_err(|_| SizeError::NotANumber)?;
    number.checked_mul(1 << shift).ok_or(SizeError::TooLarge)
}

/// Formats a size as a user would write it.
pub fn format(bytes: u64) -> String {
    let units = [("G", 30), ("M", 20), ("K", 10)];
    let unit = units.into_iter().find(|(_, shift)| bytes > 0 && bytes.is_multiple_of(1 << shift));
    unit.map_or(bytes.to_string(), |(name, shift)| format!("{}{name}", bytes >> shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_unit() {
        assert_eq!(parse("4G"), Ok(4 << 30));
        assert_eq!(parse("512M"), Ok(512 << 20));
        assert_eq!(parse("4096"), Ok(4096));
        for bad in ["", "G", "4T", "-1G", "99999999999999G"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_are_written_as_they_are_read() {
        for bytes in [0, 1, 4096, 5000, 16 << 20, 3 << 30, (1 << 30) + 1024] {
            assert_eq!(parse(&format(bytes)), Ok(bytes));
        }
        assert_eq!(format(16 << 20), "16M");
    }
}
