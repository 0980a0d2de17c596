//! Prints to standard output and error, which may be closed or full.

use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, Write};

pub(crate) use linux::stderr::note;
use serde_json::Value;
pub(crate) use top::screen::visible;

/// Standard output cannot be written any more.
#[derive(Debug)]
pub(crate) struct PrintError(pub(crate) io::Error);

impl PrintError {
    /// Whether the program that read it has stopped (`| head`), which is no failure.
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

/// Prints one or more lines and flushes them.
pub(crate) fn line(text: impl Display) -> Result<(), PrintError> {
    let mut output = io::stdout().lock();
    writeln!(output, "{text}").and_then(|()| output.flush()).map_err(PrintError)
}

/// Prints what `print` writes and flushes it.
pub(crate) fn all(print: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), PrintError> {
    let mut output = BufWriter::new(io::stdout().lock());
    print(&mut output).and_then(|()| output.flush()).map_err(PrintError)
}

/// A number with thousands separators: `1,234,567`.
pub(crate) fn thousands(count: u64) -> String {
    indicatif::HumanCount(count).to_string()
}

/// A number with its noun: `1 file`, `2,000 files`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", thousands(number), if number == 1 { one } else { many })
}

/// Prints a value as indented JSON.
pub(crate) fn json(value: &Value) -> anyhow::Result<()> {
    Ok(line(without_controls(&serde_json::to_string_pretty(value)?))?)
}

/// Prints a value as JSON in one line.
pub(crate) fn json_line(value: &Value) -> Result<(), PrintError> {
    line(without_controls(&value.to_string()))
}

/// Escapes U+007F to U+009F in JSON, which allows them in strings: a terminal would obey them.
pub(crate) fn without_controls(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\u{7f}'..='\u{9f}' => escaped += &format!("\\u{:04x}", u32::from(c)),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Prints names with their descriptions, as a table or as a JSON list of objects with `keys`.
pub(crate) fn list(
    keys: [&str; 2],
    entries: &[(&str, impl AsRef<str>)],
    as_json: bool,
) -> anyhow::Result<()> {
    if as_json {
        let rows = entries
            .iter()
            .map(|(name, text)| serde_json::json!({ (keys[0]): name, (keys[1]): text.as_ref() }));
        return json(&rows.collect());
    }
    let width = entries.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut lines = entries.iter().map(|(name, text)| format!("{name:width$}  {}", text.as_ref()));
    Ok(lines.try_for_each(line)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_carries_no_control_characters_and_keeps_its_meaning() {
        let value = serde_json::json!({ "name": "a\u{1b}\u{7f}\u{9b}2J\u{e9}" });
        let text = without_controls(&value.to_string());
        assert!(!text.chars().any(char::is_control), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), value);
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
