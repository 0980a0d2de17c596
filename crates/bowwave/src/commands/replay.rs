//! `bowwave replay`: replays a trace with policies on a chosen device, or checks a recording with
//! this bowwave.

mod fio;
mod recorded;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use page::short;
use sim::replay::{Pace, Replay, Setup, check, json, replay, traced_waiting, values};
use trace::{EXAMPLE, Trace};

use super::output::{check_page, permissions_of, progress_bar, write_page};
use super::traces;
use crate::print;

const POLICIES_THAT_KNOW_THE_TRACE: &str = "\
The policy oracle shows the most that can be gained: it is the fastest of 72 policies that know which pages
of each file are read and in which order. They decide in the kernel without delay. They read these pages,
and gaps that are cheaper to read than to skip. They do not choose what is evicted. The policy worst shows
the most that can be lost on top of linux-6: it requests pages that nobody will read.";

#[derive(clap::Args)]
#[command(after_help = POLICIES_THAT_KNOW_THE_TRACE)]
pub(crate) struct Args {
    /// The trace: a file that `bowwave record` has written, or a text as in docs/trace.md; - is
    /// standard input
    #[arg(required_unless_present_any = ["example", "verify", "show"])]
    trace: Option<PathBuf>,
    /// Policies to compare, the reference first; oracle and worst know the trace
    #[arg(long = "policy", value_name = "POLICY,...", default_value = "linux-6,adaptive")]
    policies: Vec<String>,
    /// A device from `bowwave lab --list`, or a TOML file that describes one
    #[arg(long, default_value = "hdd")]
    device: String,
    /// Memory for the page cache
    #[arg(long, default_value = "1G", value_parser = values::memory)]
    memory: u64,
    /// The I/O scheduler, for example mq-deadline, noop or cfq-1
    #[arg(long, default_value = "mq-deadline")]
    elevator: String,
    /// The kernel's largest read-ahead in KiB, as read_ahead_kb; several values are compared
    #[arg(long, value_name = "KIB,...", value_delimiter = ',', default_value = "128",
        value_parser = values::readahead)]
    readahead: Vec<u64>,
    /// Whether to keep the times between the trace's operations
    #[arg(long, value_enum, default_value = "trace")]
    pace: PaceName,
    /// Show figures for each cause of read-ahead
    #[arg(long, short)]
    verbose: bool,
    /// Show every decision: readahead(file, start+asked) = read, in pages
    #[arg(long)]
    log: bool,
    /// Print a list with one object per replay (with --log, including its decisions); with --verify
    /// one object, with --show one per line
    #[arg(long)]
    json: bool,
    /// Write a page with tables and plots to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Simulate nothing: write a job for fio into this new folder, which reads the same places of the
    /// same files
    #[arg(long, value_name = "FOLDER", conflicts_with_all = SIMULATION_OPTIONS)]
    fio: Option<PathBuf>,
    /// Print a small example trace
    #[arg(long, exclusive = true)]
    example: bool,
    /// Check that this bowwave gives the same commands as the one that made a recording
    /// (docs/recording.md)
    #[arg(long, value_name = "FILE", conflicts_with_all = TRACE_OPTIONS)]
    verify: Option<PathBuf>,
    /// Print a recording, one line per entry
    #[arg(long, value_name = "FILE", conflicts_with_all = TRACE_OPTIONS, conflicts_with = "verify")]
    show: Option<PathBuf>,
}

/// Options for traces only. A recording has its own settings.
const TRACE_OPTIONS: [&str; 11] = [
    "trace",
    "fio",
    "policies",
    "device",
    "memory",
    "elevator",
    "readahead",
    "pace",
    "verbose",
    "log",
    "html",
];

/// Options of the simulation.
const SIMULATION_OPTIONS: [&str; 9] =
    ["policies", "device", "memory", "elevator", "readahead", "verbose", "log", "json", "html"];

#[derive(Clone, Copy, clap::ValueEnum)]
enum PaceName {
    /// Processes start and think as in the trace
    Trace,
    /// Everything runs as fast as possible
    None,
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(path) = &args.verify {
        return recorded::verify(path, args.json);
    }
    if let Some(path) = &args.show {
        return recorded::show(path, args.json);
    }
    let Some(path) = &args.trace else {
        print::all(|out| write!(out, "{EXAMPLE}"))?;
        return Ok(ExitCode::SUCCESS);
    };
    if let Some(folder) = &args.fio {
        let keeps_times = matches!(args.pace, PaceName::Trace);
        return fio::export(&traces::read(path)?, folder, keeps_times, permissions_of(path));
    }
    if let Some(file) = &args.html {
        check_page(file, Some(path))?;
    }
    let policies = split_policies(&args.policies);
    let setups: Vec<Setup> = args.readahead.iter().map(|kib| setup(&args, *kib)).collect();
    for policy in &policies {
        check(policy, &setups[0])?;
    }
    let trace = traces::read(path)?;
    let replays = replay_all(&trace, &policies, &setups)?;
    // Print even if the page cannot be written, and write the page even if printing fails.
    let printed = if args.json {
        // All setups have the same machine; the windows are the replays'.
        let object = |replay| object(replay, &setups[0], &trace, args.log);
        print::json(&replays.iter().map(object).collect())
    } else {
        print::all(|out| print(out, &trace, &replays, &args)).map_err(Into::into)
    };
    if let Some(file) = &args.html {
        let about = about(path, &trace, &args);
        write_page(file, &page::replays(&about, &trace, &replays), Some(path))?;
    }
    printed?;
    if !args.json {
        let is_paced = matches!(args.pace, PaceName::Trace);
        let pace = replays.first().filter(|_| is_paced).and_then(pace_matters);
        let waiting = traced_waiting(&trace).and_then(|waited_s| waits_less(waited_s, &replays));
        pace.into_iter().chain(waiting).for_each(print::note);
    }
    Ok(ExitCode::SUCCESS)
}

/// Says so if the trace's own starts and pauses take most of the time, since no policy changes those.
fn pace_matters(replay: &Replay) -> Option<String> {
    let last = replay.processes.iter().max_by(|a, b| a.ended_s.total_cmp(&b.ended_s))?;
    let own_s = last.ended_s - last.stalled_s;
    (own_s > last.ended_s / 2.0).then(|| {
        format!(
            "in {own_s:.3} of the {:.3} s of {}, the process that ends last does not wait for the device: it starts \
             and pauses as in the trace. --pace none leaves starts and pauses out",
            last.ended_s, replay.policy
        )
    })
}

/// Says so if today's kernel waits much less here than the reads of the trace have waited.
fn waits_less(traced_s: f64, replays: &[Replay]) -> Option<String> {
    /// From here on, it is not only that devices of one kind differ.
    const TIMES: f64 = 2.0;
    let simulated_s = replays.iter().find(|replay| replay.policy == "linux-6")?.stalled_s();
    (traced_s > TIMES * simulated_s).then(|| {
        format!(
            "the trace's reads have waited {traced_s:.3} s, and {simulated_s:.3} s with linux-6 here: its device was \
             slower, or its files lay apart and not one after the other. bowwave advise tries other places"
        )
    })
}

/// Splits at the commas between policies, but not between a policy's parameters: `a:x=1,y=2,b`
/// names two.
fn split_policies(given: &[String]) -> Vec<String> {
    let mut policies: Vec<String> = Vec::new();
    for part in given.iter().flat_map(|list| list.split(',')).map(str::trim) {
        match policies.last_mut() {
            Some(last) if part.contains('=') && !part.contains(':') && last.contains(':') => {
                last.push(',');
                last.push_str(part);
            }
            _ => policies.push(part.to_owned()),
        }
    }
    policies
}

fn setup(args: &Args, readahead_kb: u64) -> Setup {
    Setup {
        device: Some(args.device.clone()),
        memory_bytes: Some(args.memory),
        elevator: Some(args.elevator.clone()),
        readahead_kb: Some(readahead_kb),
        pace: match args.pace {
            PaceName::Trace => Pace::Trace,
            PaceName::None => Pace::None,
        },
        keeps_log: args.log || args.html.is_some(),
        ..Setup::default()
    }
}

fn replay_all(trace: &Trace, policies: &[String], setups: &[Setup]) -> anyhow::Result<Vec<Replay>> {
    let bar = progress_bar("replay", "{percent}%");
    let all = policies.len() * setups.len();
    let mut replays = Vec::new();
    for policy in policies {
        for setup in setups {
            bar.set_message(policy.clone());
            replays.push(replay(trace, policy, setup)?);
            bar.set_position((replays.len() * 1000 / all) as u64);
        }
    }
    bar.finish_and_clear();
    Ok(replays)
}

/// One replay as JSON. A page needs the log, too, so that a replay may have one that nobody asked for.
fn object(replay: &Replay, setup: &Setup, trace: &Trace, with_log: bool) -> serde_json::Value {
    let mut object = json::figures(replay, setup);
    if with_log {
        object["log"] = json::log(replay, trace);
    }
    object
}

fn about(path: &std::path::Path, trace: &Trace, args: &Args) -> String {
    format!(
        "{}: {} of {} on {}, {} pages of 4 KiB needed; device {}, {} MiB of memory, elevator {}",
        path.display(),
        print::counted(trace.records().len() as u64, "operation", "operations"),
        print::counted(trace.processes().len() as u64, "process", "processes"),
        print::counted(trace.files().len() as u64, "file", "files"),
        trace.pages_needed(),
        args.device,
        args.memory >> 20,
        args.elevator
    )
}

fn print(out: &mut dyn Write, trace: &Trace, replays: &[Replay], args: &Args) -> io::Result<()> {
    let width = replays.iter().map(|replay| replay.policy.len()).max().unwrap_or(0).max(6);
    writeln!(
        out,
        "{:width$} {:>8} {:>10} {:>8} {:>10} {:>8} {:>9} {:>8} {:>7} {:>9}",
        "policy",
        "KiB",
        "seconds",
        "to first",
        "stalled s",
        "MB/s",
        "read",
        "/needed",
        "again",
        "decisions"
    )?;
    for replay in replays {
        writeln!(
            out,
            "{:width$} {:>8} {:>10.3} {:>7.2}x {:>10.3} {:>8} {:>9} {:>8.2} {:>7} {:>9}",
            replay.policy,
            replay.readahead_kb,
            replay.seconds,
            replay.seconds_to(&replays[0]),
            replay.stalled_s(),
            replay.mb_per_s().map_or("-".into(), short),
            replay.pages_read,
            replay.read_per_needed(),
            replay.read_again,
            replay.matrix.total().requests
        )?;
    }
    for replay in replays.iter().filter(|_| args.verbose) {
        print_matrix(out, replay)?;
    }
    for replay in replays.iter().filter(|_| args.log) {
        print_log(out, trace, replay)?;
    }
    Ok(())
}

fn print_matrix(out: &mut dyn Write, replay: &Replay) -> io::Result<()> {
    writeln!(out, "\n{}, {} KiB", replay.policy, replay.readahead_kb)?;
    let total = replay.matrix.total();
    let width = |name: &str| name.len().max(8);
    let heads = total.columns().map(|(name, _)| format!(" {name:>0$}", width(name)));
    writeln!(out, "{:10}{}", "cause", heads.concat())?;
    let rows = replay.matrix.rows().map(|(cause, row)| (cause.name(), *row));
    for (cause, row) in rows.chain([("total", total)]) {
        let counts = row.columns().map(|(name, count)| format!(" {count:>0$}", width(name)));
        writeln!(out, "{cause:10}{}", counts.concat())?;
    }
    writeln!(out, "read for their reader alone: {} pages", replay.matrix.alone)?;
    Ok(())
}

fn print_log(out: &mut dyn Write, trace: &Trace, replay: &Replay) -> io::Result<()> {
    writeln!(out, "\n{}, {} KiB", replay.policy, replay.readahead_kb)?;
    for decision in &replay.log {
        let file = &trace.files()[decision.file as usize].name;
        let (start, asked, read) = (decision.start, decision.asked, decision.read);
        writeln!(out, "readahead({file}, {start}+{asked}) = {read}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_divide_policies_but_not_their_parameters() {
        let split = |given: &str| split_policies(&[given.to_owned()]);
        assert_eq!(split("linux-6,adaptive"), ["linux-6", "adaptive"]);
        let parameters = "adaptive-v16:hit-rate=2,ratio=100";
        assert_eq!(split(&format!("{parameters},linux-6")), [parameters, "linux-6"]);
        assert_eq!(split("none,x=3"), ["none", "x=3"]);
    }

    #[test]
    fn a_replay_that_waits_much_less_than_the_trace_says_so() {
        let read = |n: u32| format!("{},grep,/w/{n},read,0,12288,9000\n", n * 9100);
        let text: String = (0..100).map(read).collect();
        let text = format!("time_us,process,file,op,offset,bytes,took_us\n{text}");
        let trace = Trace::parse(text.as_bytes()).expect("valid");
        let setup = Setup { device: Some("hdd".into()), ..Setup::default() };
        let replays = [replay(&trace, "linux-6", &setup).expect("it is simulated")];
        let traced_s = traced_waiting(&trace).expect("it tells");
        let said = waits_less(traced_s, &replays).expect("its files lay apart");
        assert!(said.starts_with("the trace's reads have waited 0.900 s"), "{said}");
        assert_eq!(waits_less(1.9 * replays[0].stalled_s(), &replays), None);
    }
}
