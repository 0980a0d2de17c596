//! Amounts and names as sentences show them.

use std::fmt::Display;

use readahead::Nanos;

use crate::document::Text;
use crate::short;

/// The most characters of a name: longer paths fill more than a line of a table.
const MOST_CHARACTERS: usize = 72;

/// A duration with its unit, in three digits; in minutes and hours from two minutes on.
pub(crate) fn duration(nanos: Nanos) -> String {
    let seconds = nanos as f64 * 1e-9;
    let whole = seconds.round() as u64;
    match whole {
        0..120 if seconds >= 0.9995 => format!("{} s", short(seconds)),
        0..120 if seconds >= 0.9995e-3 => format!("{} ms", short(seconds * 1e3)),
        0..120 => format!("{} µs", short(seconds * 1e6)),
        120..7200 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", thousands(whole / 3600), whole % 3600 / 60),
    }
}

/// Bytes with their unit, in three digits.
pub(crate) fn size(bytes: u64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let amount = bytes as f64;
    match units.into_iter().find(|(unit, _)| amount >= *unit) {
        Some((unit, name)) => format!("{} {name}", short(amount / unit)),
        None => counted(bytes, "byte", "bytes"),
    }
}

/// A number with a word for one or for many.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", thousands(count), if count == 1 { one } else { many })
}

/// A number with separators: `1,234,567`.
pub(crate) fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let (first, rest) = digits.split_at((digits.len() - 1) % 3 + 1);
    let groups = rest.as_bytes().chunks(3).map(|group| String::from_utf8_lossy(group));
    groups.fold(first.to_owned(), |number, group| number + "," + &group)
}

/// A part of a whole in percent; a small one is not called nothing.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    match 100.0 * part as f64 / whole.max(1) as f64 {
        share if share > 0.0 && share < 1.0 => "less than 1 %".into(),
        share => format!("{share:.0} %"),
    }
}

/// A name without its middle if it is long.
pub(crate) fn name(name: &str, most: usize) -> String {
    let count = name.chars().count();
    if count <= most {
        return name.to_owned();
    }
    // The end of a path tells more than its beginning.
    let (begin, end) = (most / 3, most - most / 3 - 1);
    name.chars().take(begin).chain(['…']).chain(name.chars().skip(count - end)).collect()
}

/// A name as HTML.
pub(crate) fn code(text: impl Display) -> String {
    format!("<code>{}</code>", Text(name(&text.to_string(), MOST_CHARACTERS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_three_digits_and_a_unit() {
        let shown = [7, 45_600, 8_300_000, 2_120_000_000, 200_000_000_000, 7_980_000_000_000];
        let expected = ["0.0070 µs", "45.6 µs", "8.30 ms", "2.12 s", "3 min 20 s", "2 h 13 min"];
        assert_eq!(shown.map(duration), expected);
        assert_eq!(
            [1, 999, 4096, 21_400_000].map(size),
            ["1 byte", "999 bytes", "4.10 kB", "21.4 MB"]
        );
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [(0, 9), (1, 999), (41, 100)].map(|(a, b)| percent(a, b)),
            ["0 %", "less than 1 %", "41 %"]
        );
    }

    #[test]
    fn of_a_long_name_the_middle_is_left_out() {
        assert_eq!(name("/short", 9), "/short");
        assert_eq!(name("/ä/very/long/path", 9), "/ä/…/path");
    }
}
