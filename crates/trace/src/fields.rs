//! The fields of a line: separated by commas; in double quotes if they contain one.

use std::borrow::Cow;
use std::num::{IntErrorKind, ParseIntError};

use readahead::Nanos;

use crate::error::Problem;
use crate::{MAX_TIME, TraceOp};

/// Splits a line into its fields, without the blanks around them.
pub(super) fn split<'a>(line: &'a str, fields: &mut Vec<Cow<'a, str>>) -> Result<(), Problem> {
    fields.clear();
    let mut rest = line;
    loop {
        let begin = rest.trim_start();
        let (field, behind) = match begin.strip_prefix('"') {
            Some(quoted) => unquote(quoted)?,
            None => {
                let end = begin.find(',').unwrap_or(begin.len());
                (Cow::Borrowed(begin[..end].trim_end()), &begin[end..])
            }
        };
        fields.push(field);
        match behind.strip_prefix(',') {
            Some(next) => rest = next,
            None => return Ok(()),
        }
    }
}

/// A field without its quotes, and the text after its closing quote. `quoted` begins after the opening one.
fn unquote(quoted: &str) -> Result<(Cow<'_, str>, &str), Problem> {
    let mut from = 0;
    loop {
        let end = from + quoted[from..].find('"').ok_or(Problem::Quote)?;
        if quoted[end + 1..].starts_with('"') {
            from = end + 2;
            continue;
        }
        let behind = quoted[end + 1..].trim_start();
        if !behind.is_empty() && !behind.starts_with(',') {
            return Err(Problem::Quote);
        }
        let field = quoted[..end].trim();
        let has_quotes = field.contains("\"\"");
        let field =
            if has_quotes { field.replace("\"\"", "\"").into() } else { Cow::Borrowed(field) };
        return Ok((field, behind));
    }
}

/// A whole number of bytes.
pub(super) fn number(field: &'static str, text: &str) -> Result<u64, Problem> {
    text.parse().map_err(|error: ParseIntError| match error.kind() {
        IntErrorKind::PosOverflow => Problem::TooFar,
        _ => Problem::Number { field, found: shown(text) },
    })
}

/// Microseconds, with or without decimals; fractions of a nanosecond are cut off.
pub(super) fn time(field: &'static str, text: &str) -> Result<Nanos, Problem> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let is_decimal = |part: &str| part.bytes().all(|b| b.is_ascii_digit()) && !part.is_empty();
    if !is_decimal(whole) || !is_decimal(decimals) {
        return Err(Problem::Time { field, found: shown(text) });
    }
    let below = decimals.bytes().chain(*b"00").take(3);
    let below = below.fold(0, |ns, digit| ns * 10 + Nanos::from(digit - b'0'));
    let sum = || whole.parse::<Nanos>().ok()?.checked_mul(1000)?.checked_add(below);
    let time = sum().filter(|time| *time <= MAX_TIME);
    time.ok_or_else(|| Problem::Late { field, found: shown(text) })
}

/// An operation by its name.
pub(super) fn op(text: &str) -> Result<TraceOp, Problem> {
    let known = TraceOp::ALL.into_iter().find(|op| op.name() == text);
    known.ok_or_else(|| Problem::Op(shown(text)))
}

/// The part of a field that an error shows.
fn shown(text: &str) -> String {
    text.chars().take(40).collect()
}
