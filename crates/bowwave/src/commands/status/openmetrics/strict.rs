//! Parses OpenMetrics text and refuses all that the specification forbids of what bowwave may write.

use std::collections::{BTreeMap, BTreeSet};

pub(super) struct Family {
    kind: String,
    unit: String,
    help: Option<String>,
    pub(super) samples: Vec<Sample>,
}

pub(super) struct Sample {
    pub(super) labels: Vec<(String, String)>,
    pub(super) value: f64,
}

/// The families by name, or the line that is wrong.
pub(super) fn parse(text: &str) -> Result<BTreeMap<String, Family>, String> {
    let body = text.strip_suffix("# EOF\n").ok_or("it does not end in # EOF")?;
    let mut families = BTreeMap::new();
    let mut current: Option<(String, Family)> = None;
    for line in body.split_terminator('\n') {
        let fault = |what: &str| format!("{what}: {line}");
        if let Some(descriptor) = line.strip_prefix("# ") {
            let mut words = descriptor.splitn(3, ' ');
            let (Some(what), Some(name), Some(rest)) = (words.next(), words.next(), words.next())
            else {
                return Err(fault("not a descriptor"));
            };
            if what == "TYPE" {
                close(&mut families, current.take())?;
                let is_known = ["counter", "gauge"].contains(&rest);
                if !is_name(name) || !is_known || name.ends_with("_total") {
                    return Err(fault("not a type"));
                }
                let kind = rest.to_owned();
                let family = Family { kind, unit: String::new(), help: None, samples: Vec::new() };
                current = Some((name.to_owned(), family));
                continue;
            }
            let Some((of, family)) = &mut current else { return Err(fault("no family")) };
            if of != name || !family.samples.is_empty() {
                return Err(fault("not with its family"));
            }
            match what {
                "UNIT" if family.unit.is_empty() && name.ends_with(&format!("_{rest}")) => {
                    family.unit = rest.to_owned();
                }
                "HELP" if family.help.is_none() => {
                    family.help = Some(unescape(rest).ok_or_else(|| fault("not escaped"))?);
                }
                _ => return Err(fault("a wrong descriptor")),
            }
        } else {
            let Some((of, family)) = &mut current else { return Err(fault("no family")) };
            let (name, sample) = sample(line).ok_or_else(|| fault("not a sample"))?;
            let end = if family.kind == "counter" { "_total" } else { "" };
            if name != format!("{of}{end}") {
                return Err(fault("not of this family"));
            }
            if family.kind == "counter" && (sample.value.is_nan() || sample.value < 0.0) {
                return Err(fault("not a counter's value"));
            }
            family.samples.push(sample);
        }
    }
    close(&mut families, current)?;
    Ok(families)
}

fn close(
    families: &mut BTreeMap<String, Family>,
    family: Option<(String, Family)>,
) -> Result<(), String> {
    let Some((name, family)) = family else { return Ok(()) };
    let mut seen = BTreeSet::new();
    if !family.samples.iter().all(|sample| seen.insert(&sample.labels)) {
        return Err(format!("{name} has two samples with the same labels"));
    }
    if family.help.is_none_or(|help| help.is_empty()) || family.samples.is_empty() {
        return Err(format!("{name} has no help or no samples"));
    }
    let family = Family { help: None, ..family };
    match families.insert(name.clone(), family) {
        Some(_) => Err(format!("{name} comes twice")),
        None => Ok(()),
    }
}

/// `name{label="value",label="value"} number`
fn sample(line: &str) -> Option<(&str, Sample)> {
    let (name, mut rest) = line.split_once('{')?;
    let mut labels = Vec::new();
    loop {
        let (label, after) = rest.split_once("=\"")?;
        let end = closing_quote(after)?;
        labels.push((label.to_owned(), unescape(&after[..end])?));
        rest = &after[end + 1..];
        match rest.strip_prefix(',') {
            Some(next) => rest = next,
            None => break,
        }
    }
    let value = rest.strip_prefix("} ")?;
    let is_number = value.chars().all(|c| c.is_ascii_digit() || "+-.e".contains(c));
    let value = is_number.then(|| value.parse().ok())??;
    let names: BTreeSet<_> = labels.iter().map(|(name, _)| name).collect();
    let are_right = names.len() == labels.len() && names.iter().all(|name| is_name(name));
    (is_name(name) && are_right).then_some((name, Sample { labels, value }))
}

/// Where the quote is that no backslash precedes.
fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends.then_some(at)
    })
}

/// `None` if something stands there that must be escaped, or an unknown escape.
fn unescape(text: &str) -> Option<String> {
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        plain.push(match c {
            '"' => return None,
            '\\' => match chars.next()? {
                'n' => '\n',
                escaped @ ('\\' | '"') => escaped,
                _ => return None,
            },
            other => other,
        });
    }
    Some(plain)
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[test]
fn what_the_specification_forbids_is_refused() {
    let family = "# TYPE a_bytes counter\n# UNIT a_bytes bytes\n# HELP a_bytes Of \\\"a\\\".\n";
    let valid = format!("{family}a_bytes_total{{b=\"c\"}} 1\n# EOF\n");
    assert_eq!(parse(&valid).map(|families| families.len()), Ok(1));
    for (part, wrong) in [
        ("# EOF\n", ""),
        ("# EOF\n", "# EOF\n\n"),
        ("_total", ""),
        ("counter", "gauge"),
        (" bytes", " seconds"),
        ("\\\"a\\\"", "\"a\""),
        ("} 1", "} -1"),
        ("} 1", "} one"),
        ("\"c\"", "\"c"),
        ("\"c\"", "\"\\c\""),
        ("\"c\"", "\"c\",b=\"d\""),
        ("} 1\n", "} 1\na_bytes_total{b=\"c\"} 2\n"),
        ("} 1\n", "} 1\n\n"),
        ("# TYPE a_bytes counter\n", ""),
        ("a_bytes_total{b", "# HELP a_bytes Again.\na_bytes_total{b"),
    ] {
        assert!(parse(&valid.replacen(part, wrong, 1)).is_err(), "{part} -> {wrong}");
    }
}
