//! Names of files and processes, as they may come from a stranger.

use std::borrow::Cow;

/// The name without control characters, which terminals obey.
pub(crate) fn plain(name: &str) -> Cow<'_, str> {
    match name.contains(char::is_control) {
        true => name.replace(char::is_control, "\u{fffd}").into(),
        false => name.into(),
    }
}

/// The beginning of a name, of at most that many bytes.
pub(crate) fn cut(name: &str, most_bytes: usize) -> &str {
    let mut end = name.len().min(most_bytes);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}
