//! `bowwave reproduce`: prints published tables beside the simulator's figures.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use experiments::{Census, Figure, Kind, LogCell, TABLES, Table, title};
use page::short;
use serde_json::json;

use super::output::{check_page, progress_bar, write_page};
use crate::print;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Tables to reproduce; all of them by default
    #[arg(value_name = "TABLE")]
    tables: Vec<String>,
    /// List the available tables
    #[arg(long, conflicts_with_all = ["tables", "html"])]
    list: bool,
    /// Print a list of rows (table, row, policy, unit, published, simulated, kind), or of tables
    /// with --list
    #[arg(long)]
    json: bool,
    /// Write a page with tables and plots to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    if args.list {
        let named = TABLES.iter().map(|(name, _)| (*name, title(name).unwrap_or_default()));
        print::list(["table", "title"], &named.collect::<Vec<_>>(), args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(unknown) = args.tables.iter().find(|name| !TABLES.iter().any(|(n, _)| n == *name)) {
        bail!("there is no table {unknown:?}; `bowwave reproduce --list` lists all tables");
    }
    if let Some(path) = &args.html {
        check_page(path, None)?;
    }
    let chosen = TABLES
        .iter()
        .filter(|(name, _)| args.tables.is_empty() || args.tables.iter().any(|t| t == name));
    let mut rows = Vec::new();
    let mut all = Vec::new();
    for (name, run) in chosen {
        let bar = progress_bar(name, "{percent}%");
        let table = run(&mut |share| bar.set_position((share * 1000.0) as u64))?;
        bar.finish_and_clear();
        if args.json {
            rows.extend(table.figures.iter().map(|figure| row(&table, figure)));
        } else {
            print::all(|out| print(out, &table))?;
        }
        all.push(table);
    }
    // Print even if the page cannot be written, and write the page even if printing fails.
    let printed = if args.json {
        print::json(&rows.into())
    } else {
        print::all(|out| summarise(out, &all)).map_err(Into::into)
    };
    if let Some(path) = args.html {
        write_page(&path, &page::published(&all), None)?;
    }
    printed?;
    Ok(ExitCode::SUCCESS)
}

fn row(table: &Table, figure: &Figure) -> serde_json::Value {
    json!({
        "table": table.name,
        "row": figure.row,
        "policy": figure.policy,
        "unit": figure.unit,
        "published": figure.published,
        "simulated": if figure.simulated.is_finite() { Some(figure.simulated) } else { None },
        "kind": figure.kind.name(),
    })
}

fn print(out: &mut dyn Write, table: &Table) -> io::Result<()> {
    writeln!(out, "{}: {}", table.name, table.title)?;
    match table.as_log() {
        Some(lines) => print_log(out, table, &lines)?,
        None => print_figures(out, table)?,
    }
    for assumption in &table.assumptions {
        writeln!(out, "  assumed: {assumption}")?;
    }
    for verdict in &table.verdicts {
        let mark = if verdict.holds { "holds:".to_owned() } else { red("FAILS:".to_owned()) };
        writeln!(out, "  {mark} {}", verdict.claim)?;
    }
    writeln!(out)?;
    Ok(())
}

/// Prints one line per row with all policies: published figure, simulated figure and error, or only
/// the simulated figure if none was published.
fn print_figures(out: &mut dyn Write, table: &Table) -> io::Result<()> {
    let (rows, policies) = (table.rows(), table.policies());
    let is_published = table.figures.iter().any(|figure| figure.published.is_some());
    let cell_width = if is_published { 26 } else { 12 };
    let width = rows.iter().map(|(row, _)| row.len()).max().unwrap_or(0).max(4);
    write!(out, "{:width$}", if is_published { "" } else { "row" })?;
    for policy in &policies {
        write!(out, "  {policy:>cell_width$}")?;
    }
    writeln!(out)?;
    if is_published {
        write!(out, "{:width$}", "row")?;
        for _ in &policies {
            write!(out, "  {:>9} {:>9} {:>6}", "published", "simulated", "error")?;
        }
        writeln!(out)?;
    }
    for (row, _) in rows {
        write!(out, "{row:width$}")?;
        for policy in &policies {
            let text = table.figure(row, policy).map(|figure| match is_published {
                true => cell(figure),
                false => format!("{:>cell_width$}", short(figure.simulated)),
            });
            write!(out, "  {}", text.unwrap_or_else(|| " ".repeat(cell_width)))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn cell(figure: &Figure) -> String {
    let published = figure.published.map_or("-".into(), short);
    let error = figure.error().map_or(String::new(), |error| format!("{:+.0}%", error * 100.0));
    let kind = if figure.kind == Kind::Calibrated { "~" } else { " " };
    let error = format!("{error:>6}");
    let error = if figure.is_off() { red(error) } else { error };
    format!("{published:>9} {:>9}{kind}{error}", short(figure.simulated))
}

/// Prints one line per line of the log, with all policies: published and simulated.
fn print_log(out: &mut dyn Write, table: &Table, lines: &[(&str, Vec<LogCell>)]) -> io::Result<()> {
    write!(out, "{:8}", "")?;
    for policy in table.policies() {
        write!(out, "  {policy:>30}")?;
    }
    writeln!(out)?;
    write!(out, "{:8}", "")?;
    for _ in table.policies() {
        write!(out, "  {:>15}{:>15}", "published", "simulated")?;
    }
    writeln!(out)?;
    for (name, columns) in lines {
        write!(out, "{name:8}")?;
        for LogCell { published, simulated } in columns {
            let text = |cell: &Option<String>| format!("{:>15}", cell.as_deref().unwrap_or(""));
            let is_same = published == simulated;
            let simulated = if is_same { text(simulated) } else { red(text(simulated)) };
            write!(out, "  {}{simulated}", text(published))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Red text if standard output is a terminal.
fn red(text: String) -> String {
    if io::stdout().is_terminal() { format!("\x1b[31m{text}\x1b[0m") } else { text }
}

/// Prints how near the tables came, and how many claims hold.
fn summarise(out: &mut dyn Write, tables: &[Table]) -> io::Result<()> {
    print_censuses(out, tables)?;
    let verdicts = || tables.iter().flat_map(|table| &table.verdicts);
    let hold = verdicts().filter(|verdict| verdict.holds).count();
    writeln!(out, "{hold} of {} claims hold (~ marks what was calibrated)", verdicts().count())?;
    Ok(())
}

/// Prints one line per table with published figures, and one for the tables of publications together.
fn print_censuses(out: &mut dyn Write, tables: &[Table]) -> io::Result<()> {
    let censuses = Census::of_each(tables);
    if censuses.is_empty() {
        return Ok(());
    }
    let mut line = |name: &str, cells: &[String]| {
        write!(out, "{name:24}")?;
        cells.iter().try_for_each(|cell| write!(out, " {cell:>10}"))?;
        writeln!(out)
    };
    line("figures", &Census::COLUMNS.map(String::from))?;
    censuses.iter().try_for_each(|(name, census)| line(name, &census.cells()))?;
    writeln!(out)
}
