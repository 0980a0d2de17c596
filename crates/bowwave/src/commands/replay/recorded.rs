//! `bowwave replay --verify` and `--show`: works on a recording of a live bowwave.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use recording::{Checked, Difference, End, Header, Item, Recording, Verdict};
use serde_json::{Value, json};

use crate::print;

/// Feeds a recording's inputs to this bowwave's controller and checks that its commands are the
/// same.
pub(super) fn verify(path: &Path, as_json: bool) -> anyhow::Result<ExitCode> {
    let name = path.display();
    let mut recording = Recording::open(path).with_context(|| format!("{name}"))?;
    let verdict = recording::verify(&mut recording).with_context(|| format!("{name}"))?;
    if as_json {
        print::json(&object(&verdict, recording.header()))?;
    }
    match &verdict {
        Verdict::Identical(Checked { end: Some(End::Damaged { at_byte }), inputs, .. }) => {
            bail!(
                "{name} is damaged at byte {at_byte}, after {} inputs that are identical; copy the file again",
                print::thousands(*inputs)
            );
        }
        Verdict::Identical(checked) if shows_nothing(checked) => {
            bail!(
                "{name} was cut off before its first input was written; there is nothing to check"
            );
        }
        Verdict::Identical(checked) => {
            if !as_json {
                print::line(told(checked))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Verdict::Differs(difference) => {
            if !as_json {
                print::all(|out| print_difference(out, difference, recording.header()))?;
            }
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Whether the recording ends before its first input.
fn shows_nothing(checked: &Checked) -> bool {
    checked.inputs == 0 && matches!(checked.end, Some(End::Cut { .. }))
}

fn told(checked: &Checked) -> String {
    let reservation = match (checked.lost_inputs, checked.end) {
        (Some(inputs), _) => format!(
            " up to here; the next {} inputs are missing in the recording, so the rest cannot be \
             checked",
            print::thousands(inputs)
        ),
        (None, Some(End::Cut { at_byte })) => {
            format!(" up to byte {at_byte}, where the recording was cut off")
        }
        _ => String::new(),
    };
    format!(
        "{} inputs, {} commands, identical{reservation}; {:.1} s recorded",
        print::thousands(checked.inputs),
        print::thousands(checked.commands),
        checked.recorded_ns as f64 * 1e-9
    )
}

fn print_difference(
    out: &mut dyn Write,
    difference: &Difference,
    header: &Header,
) -> io::Result<()> {
    let Difference { recorded, after_ns, replayed } = difference;
    let seconds = *after_ns as f64 * 1e-9;
    writeln!(out, "entry {} differs, {seconds:.6} s after the first", recorded.number)?;
    writeln!(out, "told      {:?}", recorded.event)?;
    writeln!(out, "recorded  {:?}", recorded.commands)?;
    writeln!(out, "replayed  {replayed:?}")?;
    writeln!(out, "recorded by {}", whose(header))?;
    writeln!(out, "replayed by bowwave {}, {}", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH)
}

/// Describes the recording's origin. Its texts may come from anybody.
fn whose(header: &Header) -> String {
    let Header { bowwave, kernel, date, architecture, .. } = header;
    print::visible(&format!("bowwave {bowwave}, {architecture}, Linux {kernel}, {date}"))
}

fn object(verdict: &Verdict, header: &Header) -> Value {
    match verdict {
        Verdict::Identical(checked) => json!({
            "identical": !shows_nothing(checked),
            "inputs": checked.inputs,
            "commands": checked.commands,
            "recorded_s": checked.recorded_ns as f64 * 1e-9,
            "lost_inputs": checked.lost_inputs,
            "end": checked.end.map(end_name),
            "recorded_by": header,
        }),
        Verdict::Differs(difference) => json!({
            "identical": false,
            "number": difference.recorded.number,
            "at_ns": difference.recorded.at,
            "after_s": difference.after_ns as f64 * 1e-9,
            "told": difference.recorded.event,
            "recorded": difference.recorded.commands,
            "replayed": difference.replayed,
            "recorded_by": header,
        }),
    }
}

fn end_name(end: End) -> &'static str {
    match end {
        End::Clean => "clean",
        End::Cut { .. } => "cut",
        End::Damaged { .. } => "damaged",
    }
}

/// Prints a recording: its origin, then one line per entry, or one JSON object per line.
pub(super) fn show(path: &Path, as_json: bool) -> anyhow::Result<ExitCode> {
    let name = path.display();
    let mut recording = Recording::open(path).with_context(|| format!("{name}"))?;
    let mut failure = None;
    print::all(|out| {
        if as_json {
            print_object(out, &json!({ "recorded_by": recording.header() }))?;
        } else {
            writeln!(out, "# {}", whose(recording.header()))?;
        }
        for item in recording.by_ref() {
            match item {
                Ok(item) => print_item(out, &item, as_json)?,
                Err(error) => failure = Some(error),
            }
        }
        match recording.end() {
            Some(End::Cut { at_byte }) if as_json => {
                print_object(out, &json!({ "end": "cut", "at_byte": at_byte }))
            }
            Some(End::Cut { at_byte }) => writeln!(out, "# cut off at byte {at_byte}"),
            _ => Ok(()),
        }
    })?;
    if let Some(error) = failure {
        return Err(error).with_context(|| format!("cannot continue reading {name}"));
    }
    if let Some(End::Damaged { at_byte }) = recording.end() {
        bail!("{name} is damaged at byte {at_byte}; copy the file again");
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints an object in one line. Its texts may come from anybody.
fn print_object(out: &mut dyn Write, object: &Value) -> io::Result<()> {
    writeln!(out, "{}", print::without_controls(&object.to_string()))
}

fn print_item(out: &mut dyn Write, item: &Item, as_json: bool) -> io::Result<()> {
    match item {
        Item::Entry(entry) if as_json => print_object(
            out,
            &json!({
                "number": entry.number,
                "at_ns": entry.at,
                "told": entry.event,
                "commands": entry.commands,
            }),
        ),
        Item::Entry(entry) => writeln!(out, "{entry}"),
        Item::Lost(inputs) if as_json => print_object(out, &json!({ "lost_inputs": inputs })),
        Item::Lost(inputs) => writeln!(out, "# {inputs} inputs are missing here"),
    }
}
