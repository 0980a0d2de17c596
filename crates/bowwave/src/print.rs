//! Printing where the reader may have gone and the disk may be full.

use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, Write};

use serde_json::Value;

/// Standard output took no more.
#[derive(Debug)]
pub(crate) struct PrintError(pub(crate) io::Error);

impl PrintError {
    /// Whether whoever read it has seen enough (`| head`), which is nobody's fault.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        self.0.kind() == ErrorKind::BrokenPipe
    }
}

impl Display for PrintError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot write to standard output: {}", self.0)
    }
}

impl std::error::Error for PrintError {}

/// Prints a line, or several, and makes sure that they are written.
pub(crate) fn line(text: impl Display) -> Result<(), PrintError> {
    let mut output = io::stdout().lock();
    writeln!(output, "{text}").and_then(|()| output.flush()).map_err(PrintError)
}

/// Prints what `print` writes, and makes sure that it is written.
pub(crate) fn all(print: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), PrintError> {
    let mut output = BufWriter::new(io::stdout().lock());
    print(&mut output).and_then(|()| output.flush()).map_err(PrintError)
}

/// Text of others without control characters, which a terminal would obey: `\n` and `\u{1b}` instead.
pub(crate) fn visible(text: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.into() };
    text.chars().map(shown).collect()
}

/// A count with its thousands apart: `1,234,567`.
pub(crate) fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let is_first = |at: usize| at > 0 && (digits.len() - at).is_multiple_of(3);
    let parts = digits.char_indices().flat_map(|(at, c)| [is_first(at).then_some(','), Some(c)]);
    parts.flatten().collect()
}

/// Prints a value as JSON over several lines.
pub(crate) fn json(value: &Value) -> anyhow::Result<()> {
    Ok(line(serde_json::to_string_pretty(value)?)?)
}

/// A word to the user on standard error; a closed one is no reason to stop.
pub(crate) fn note(text: impl Display) {
    let _ = writeln!(io::stderr(), "bowwave: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
