//! `bowwave top`.
//!
//! ```text
//!   Session: ebpf::count --> top::History --> uses of one interval
//!                                               |-> terminal  keys choose what is shown
//!                                               |-> text      --batch
//!                                               '-> json      --json
//! ```

mod json;
mod managers;
mod naming;
mod session;
mod terminal;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use top::screen::{COLUMNS, Picture};
use top::{By, Sort, View, table};

use crate::commands::privilege;
use crate::print;
use session::{Happened, Interval, Session};
use terminal::Terminal;

/// Show live which processes, files and devices read, how much of it is cached, and who waits.
///
/// It only watches: nothing is read ahead or changed, and no bowwave needs to run. Needs root. Keys:
/// p, t, f, d and c add up by process, stream (what one process reads of one file), file, device and
/// cgroup; s sorts by the next figure; / filters by name; space pauses; q ends.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to add up by.
    #[arg(long, value_parser = one_of(&By::ALL, By::name), value_name = "WHAT", default_value = "process")]
    by: By,
    /// The figure to sort by, in descending order.
    #[arg(long, value_parser = one_of(&Sort::ALL, Sort::name), value_name = "FIGURE", default_value = "wait")]
    sort: Sort,
    /// Show only rows whose name contains this text.
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// Seconds between two pictures; at least 1.
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = interval,
          allow_negative_numbers = true)]
    interval: Duration,
    /// End after this many pictures.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    iterations: Option<u64>,
    /// Print each picture as text, for a file or another program.
    #[arg(long)]
    batch: bool,
    /// Print one JSON object for each interval, with all rows by process, stream, file, device and
    /// cgroup. The first line says that counting has begun.
    #[arg(long, conflicts_with_all = ["batch", "by"])]
    json: bool,
    /// Show at most this many rows; the rest counts all the same.
    #[arg(long, value_name = "N")]
    rows: Option<usize>,
    /// See each access to cached pages, also where that makes programs slower by more than a hundredth.
    #[arg(long)]
    exact: bool,
    /// The state folder of the bowwave processes to ask what they manage.
    #[arg(long, value_name = "DIR", default_value = linux::state::FOLDER)]
    state: PathBuf,
}

/// Takes the name of one of these.
fn one_of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let named = move |text: String| all.iter().copied().find(|one| name(*one) == text);
    let names = PossibleValuesParser::new(all.iter().map(|one| name(*one)));
    names.map(move |text| named(text).expect("clap accepts these names only"))
}

/// Rows of a picture with --batch.
const BATCH_ROWS: usize = 20;

/// Parses seconds.
fn interval(text: &str) -> Result<Duration, &'static str> {
    let seconds = text.parse().ok().filter(|seconds| (1.0..=LONGEST_INTERVAL_S).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or("write seconds, at least 1 and at most a day")
}

/// A day.
const LONGEST_INTERVAL_S: f64 = 86_400.0;

impl Args {
    fn view(&self) -> View {
        View { by: self.by, sort: self.sort, filter: self.filter.clone(), ..View::default() }
    }

    fn is_last(&self, shown: u64) -> bool {
        self.iterations.is_some_and(|most| shown >= most)
    }
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    privilege::demand("top")?;
    let is_interactive = !args.batch && !args.json;
    if is_interactive && !(std::io::stdout().is_terminal() && std::io::stdin().is_terminal()) {
        bail!("standard input or output is no terminal; use --batch or --json");
    }
    let mut session =
        Session::begin(args.interval, args.state.clone(), is_interactive, args.exact)?;
    if is_interactive {
        show_in_terminal(&args, &mut session)?;
    } else {
        print_intervals(&args, &mut session)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints one interval after the other, the last one when a signal ends it.
fn print_intervals(args: &Args, session: &mut Session) -> anyhow::Result<()> {
    if args.json {
        print::json_line(&json::ready())?;
    }
    for shown in 1.. {
        let has_ended = loop {
            match session.wait(None)? {
                Happened::Due => break false,
                Happened::Ended => break true,
                Happened::Resized | Happened::Typed(_) => {}
            }
        };
        let interval = session.next()?;
        if args.json {
            print::json_line(&json::of(&interval, session, args))?;
        } else {
            print_picture(args, session, &interval)?;
        }
        if has_ended || args.is_last(shown) {
            break;
        }
    }
    Ok(())
}

fn print_picture(args: &Args, session: &Session, interval: &Interval) -> anyhow::Result<()> {
    let view = args.view();
    let mut rows = table::rows(&interval.uses, session.names(), view.by, view.sort, &view.filter);
    let total = table::total(&rows);
    let left_out = rows.len().saturating_sub(args.rows.unwrap_or(BATCH_ROWS));
    rows.truncate(args.rows.unwrap_or(BATCH_ROWS));
    let mut notes = session.notes(interval);
    if left_out > 0 {
        notes.push(format!("{left_out} more rows are not shown"));
    }
    let picture = picture(&rows, total, session, &view, interval, &notes);
    print::line(picture.lines(COLUMNS).join("\n") + "\n")?;
    Ok(())
}

fn picture<'a>(
    rows: &'a [top::Row],
    total: top::Activity,
    session: &'a Session,
    view: &'a View,
    interval: &Interval,
    notes: &'a [String],
) -> Picture<'a> {
    Picture {
        rows,
        total,
        names: session.names(),
        view,
        interval: interval.length,
        seen: interval.seen,
        notes,
    }
}

fn show_in_terminal(args: &Args, session: &mut Session) -> anyhow::Result<()> {
    let mut view = args.view();
    let mut shown = Interval::default();
    let mut count = 0;
    let mut terminal = Terminal::enter()?;
    loop {
        let mut rows = table::rows(&shown.uses, session.names(), view.by, view.sort, &view.filter);
        let notes = session.notes(&shown);
        let total = table::total(&rows);
        rows.truncate(args.rows.unwrap_or(usize::MAX));
        let picture = picture(&rows, total, session, &view, &shown, &notes);
        let (columns, height) = terminal.size();
        terminal.draw(&picture.for_terminal(columns, height))?;
        if view.has_ended || args.is_last(count) {
            break;
        }
        match session.wait(Some(&terminal))? {
            Happened::Due => {
                // Counted all the same while the picture stands still.
                let interval = session.next()?;
                if !view.is_paused {
                    shown = interval;
                    count += 1;
                }
            }
            Happened::Typed(keys) => view.typed(&keys),
            Happened::Resized => {}
            Happened::Ended => break,
        }
    }
    Ok(())
}
