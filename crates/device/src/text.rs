//! Reads device files and locates errors in them.

use std::path::Path;

use toml::{Table, Value};

use crate::error::SpecError;

/// Reads the text of the device file `path`.
///
/// # Errors
/// [`SpecError::Unreadable`], or [`SpecError::Malformed`] if it is not text.
pub(crate) fn read(path: &str) -> Result<String, SpecError> {
    let bytes =
        linux::small::read(Path::new(path), "a device is a small TOML file (docs/devices.md)")
            .map_err(|error| SpecError::Unreadable { path: path.into(), error })?;
    String::from_utf8(bytes).map_err(|error| SpecError::Malformed {
        path: path.into(),
        line: line_of(error.as_bytes(), error.utf8_error().valid_up_to()),
        reason: "this is not UTF-8 text".into(),
    })
}

impl SpecError {
    pub(crate) fn malformed(text: &str, path: &str, error: &toml::de::Error) -> Self {
        let at = error.span().map_or(0, |span| span.start);
        let reason = error.message().lines().collect::<Vec<_>>().join(", ");
        SpecError::Malformed { path: path.into(), line: line_of(text.as_bytes(), at), reason }
    }
}

/// Number of the line that contains byte `at`.
fn line_of(text: &[u8], at: usize) -> usize {
    1 + text[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}

/// The name of a value that is not a finite number (`nan`, `inf`). TOML allows those.
pub(crate) fn name_of_not_finite(text: &str) -> Option<String> {
    fn find<'a>(name: &'a str, value: &'a Value) -> Option<&'a str> {
        match value {
            Value::Float(number) => (!number.is_finite()).then_some(name),
            Value::Array(inner) => inner.iter().find_map(|value| find(name, value)),
            Value::Table(inner) => within(inner),
            _ => None,
        }
    }
    fn within(table: &Table) -> Option<&str> {
        table.iter().find_map(|(name, value)| find(name, value))
    }
    within(&text.parse::<Table>().ok()?).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_read() {
        for path in ["/dev/zero", "/dev"] {
            let error = read(path).unwrap_err().to_string();
            assert!(error.contains(path) && error.contains("not a regular file"), "{error}");
        }
    }

    #[test]
    fn the_line_is_counted_from_one() {
        assert_eq!(line_of(b"a\nb\nc", 0), 1);
        assert_eq!(line_of(b"a\nb\nc", 4), 3);
        assert_eq!(line_of(b"a\n", 99), 2);
    }

    #[test]
    fn numbers_without_a_value_are_found_by_name() {
        assert_eq!(name_of_not_finite("[disk]\nrpm = nan").as_deref(), Some("rpm"));
        assert_eq!(name_of_not_finite("a = 1.0\nb = -inf").as_deref(), Some("b"));
        assert_eq!(name_of_not_finite("a = 1.0\nnan = 'x'"), None);
        let in_a_list = "[[tuned.curve]]\nmb_s = 1.0\n[[tuned.curve]]\nmb_s = nan";
        assert_eq!(name_of_not_finite(in_a_list).as_deref(), Some("mb_s"));
        assert_eq!(name_of_not_finite("a = [1.0, [inf]]").as_deref(), Some("a"));
    }
}
