//! `bowwave record`.

mod session;

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ebpf::observe::Scope;
use linux::signals::{ENDING, not_ignored};

use crate::commands::child::{self, Caught};
use crate::commands::privilege;
use crate::print;
use crate::signals::Signals;
use session::Session;

/// Record what programs read, as a trace for `bowwave replay`.
///
/// With a COMMAND, it records that command and its descendants until the command ends. The exit
/// status is the command's, as with `bowwave run`, and the same signals are passed on. Without one,
/// it records all programs of the machine, until Ctrl-C or for the time of --for. Needs root.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write the trace to this file. Only an older trace is replaced.
    #[arg(short, long, value_name = "FILE", default_value = TRACE)]
    output: PathBuf,
    /// Record the machine for this long, for example 90s, 5m or 1h.
    #[arg(long = "for", value_name = "TIME", value_parser = duration, conflicts_with = "command")]
    time: Option<Duration>,
    /// Replace each component of a path by a number; equal directories get equal numbers.
    #[arg(long)]
    anonymous: bool,
    /// Print a trace as text, and record nothing.
    #[arg(long, value_name = "TRACE", exclusive = true)]
    text: Option<PathBuf>,
    /// The command and its arguments.
    #[arg(trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// Where a trace goes by default.
pub(super) const TRACE: &str = "bowwave.trace";

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(path) = &args.text {
        return print_as_text(path);
    }
    if args.command.is_empty() {
        privilege::demand("record")?;
        record_machine(&args.output, args.anonymous, args.time)?;
        return Ok(ExitCode::SUCCESS);
    }
    record_command(&args).or_else(|error| {
        print::note(format_args!("{error:#}; the command was not started"));
        Ok(ExitCode::from(child::OWN_FAILURE))
    })
}

fn print_as_text(path: &Path) -> anyhow::Result<ExitCode> {
    let trace = trace::open(path)?;
    trace.origin().into_iter().flat_map(trace::Origin::notes).for_each(print::note);
    let untold = [
        (!trace.windows().is_empty(), "which pages the kernel brought in"),
        (!trace.requests().is_empty(), "what devices were asked for"),
    ];
    for (_, what) in untold.into_iter().filter(|(is_known, _)| *is_known) {
        print::note(format_args!("the text does not tell {what}"));
    }
    print::all(|out| write!(out, "{trace}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Records what all programs read, for that time or until a signal.
pub(super) fn record_machine(
    output: &Path,
    is_anonymous: bool,
    time: Option<Duration>,
) -> anyhow::Result<()> {
    let signals = Signals::catch(not_ignored(ENDING))?;
    let mut session = Session::begin(output, is_anonymous, &Scope::Machine)?;
    session.put_in_place()?;
    let ending = match time {
        Some(time) => format!("for {} s; Ctrl-C ends it earlier", time.as_secs_f64()),
        None => "Ctrl-C ends it".into(),
    };
    print::note(format_args!(
        "recording what all programs read, into {}, {ending}",
        output.display()
    ));
    let until = time.map(|time| Instant::now() + time);
    session.record_until(signals.readiness(), until)?;
    print::note(session.finish()?);
    Ok(())
}

/// # Errors
/// If the command was not started.
fn record_command(args: &Args) -> anyhow::Result<ExitCode> {
    privilege::demand("record")?;
    let mut session =
        Session::begin(&args.output, args.anonymous, &Scope::Process(std::process::id()))?;
    let child = match Caught::catch()?.start(&args.command) {
        Ok(child) => child,
        Err(error) => {
            print::note(format_args!("cannot run {}: {error}", args.command[0].display()));
            return Ok(ExitCode::from(child::spawn_failure(&error)));
        }
    };
    let (command, ended) = child.watch();
    // From here on the command's status counts, so failures are only reported.
    let recorded = ended
        .map_err(anyhow::Error::from)
        .and_then(|ended| session.put_in_place().map(|()| ended))
        .and_then(|ended| session.record_until(ended.as_fd(), None));
    if let Err(error) = recorded {
        print::note(format_args!("{error:#}; the command continues"));
        // Detaches the eBPF programs, which would slow the command down for nothing.
        drop(session);
        return Ok(command.wait()?);
    }
    let status = command.wait()?;
    match session.finish() {
        Ok(sentence) => print::note(sentence),
        Err(error) => print::note(format_args!("{error:#}")),
    }
    Ok(status)
}

/// Parses a time such as `90s`, `5m` or `1h`.
pub(super) fn duration(text: &str) -> Result<Duration, &'static str> {
    const WRONG: &str = "write a time above 0 and up to a day, such as 90s, 5m or 1h";
    let (number, unit_s) = match text.as_bytes().last() {
        Some(b's') => (&text[..text.len() - 1], 1.0),
        Some(b'm') => (&text[..text.len() - 1], 60.0),
        Some(b'h') => (&text[..text.len() - 1], 3600.0),
        _ => (text, 1.0),
    };
    let seconds: f64 = number.parse().map_err(|_| WRONG)?;
    let time = Duration::try_from_secs_f64(seconds * unit_s).map_err(|_| WRONG)?;
    (!time.is_zero() && time <= LONGEST).then_some(time).ok_or(WRONG)
}

/// A day.
const LONGEST: Duration = Duration::from_secs(86_400);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit_or_is_in_seconds() {
        let seconds = |text| duration(text).ok().map(|time| time.as_secs_f64());
        let known = [("90s", 90.0), ("5m", 300.0), ("1h", 3600.0), ("0.5", 0.5), ("24h", 86_400.0)];
        known.into_iter().for_each(|(text, expected)| assert_eq!(seconds(text), Some(expected)));
        for wrong in ["", "s", "0s", "0.0000000001s", "-1s", "25h", "NaN", "inf", "1d", "1µ"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
