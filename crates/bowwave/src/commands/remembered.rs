//! `bowwave remembered`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use readahead::PAGE_BYTES;
use remembered::{List, ListedFile, Lists, Name};
use serde_json::{Value, json};

use crate::print;

/// List, show or forget what `bowwave run --remember` has learned.
///
/// Without NAME, lists all start-up lists. Needs root, as only root may read them.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Show this list: its files in the order in which they are read.
    name: Option<Name>,
    /// Remove that list.
    #[arg(long, requires = "name")]
    forget: bool,
    /// Print JSON instead of text.
    #[arg(long, conflicts_with = "forget")]
    json: bool,
    /// The folder of the lists.
    #[arg(long, value_name = "DIR", default_value = linux::state::REMEMBERED)]
    lists: PathBuf,
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    if !rustix::process::geteuid().is_root() {
        bail!("bowwave remembered needs root, as only root may read the lists; start it with sudo");
    }
    let lists = Lists::in_folder(&args.lists);
    match &args.name {
        None => list(&lists, args.json),
        Some(name) if args.forget => forget(&lists, name),
        Some(name) => show(&lists, name, args.json),
    }
}

/// Lists all, and names those that cannot be read.
fn list(lists: &Lists, as_json: bool) -> anyhow::Result<ExitCode> {
    let names = lists.names()?;
    let mut read = Vec::with_capacity(names.len());
    for name in &names {
        match lists.read(name) {
            Ok(list) => read.extend(list.map(|list| (name, list))),
            Err(error) => print::note(error),
        }
    }
    let is_complete = read.len() == names.len();
    if as_json {
        let rows = read.iter().map(|(name, list)| {
            json!({ "name": name.to_string(), "files": list.files.len(), "bytes": bytes(list) })
        });
        print::json(&rows.collect())?;
    } else if read.is_empty() && is_complete {
        print::line("nothing is remembered yet; start a command with bowwave run --remember NAME")?;
    } else {
        let width = read.iter().map(|(name, _)| name.to_string().len()).max().unwrap_or(0);
        for (name, list) in &read {
            let name = name.to_string();
            print::line(format_args!("{name:width$}  {}", size(list)))?;
        }
    }
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(lists: &Lists, name: &Name, as_json: bool) -> anyhow::Result<ExitCode> {
    let Some(list) = lists.read(name)? else { return none(name) };
    if as_json {
        let mut object = serde_json::to_value(&list).context("cannot print the list")?;
        object["name"] = Value::String(name.to_string());
        print::json(&object)?;
        return Ok(ExitCode::SUCCESS);
    }
    print::line(format_args!("{name}: {}", size(&list)))?;
    for file in &list.files {
        print::line(line(file))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// `     128 KiB in  2 ranges  /usr/lib/libc.so.6`.
fn line(file: &ListedFile) -> String {
    let kb = file.pages() * PAGE_BYTES / 1024;
    let place = match &file.path {
        Some(path) => print::visible(path),
        None => format!("inode {}", file.ino),
    };
    let vain = file.ranges.iter().map(|(_, _, starts)| *starts).min().unwrap_or(0);
    let not_used = if vain > 0 { format!(" (not used at the last {vain})") } else { String::new() };
    let ranges = if file.ranges.len() == 1 { "range " } else { "ranges" };
    format!("{kb:>8} KiB in {:>2} {ranges}  {place}{not_used}", file.ranges.len())
}

fn forget(lists: &Lists, name: &Name) -> anyhow::Result<ExitCode> {
    if !lists.forget(name)? {
        return none(name);
    }
    print::line(format_args!("{name} is forgotten"))?;
    Ok(ExitCode::SUCCESS)
}

fn none(name: &Name) -> anyhow::Result<ExitCode> {
    bail!("nothing is remembered as {name}; bowwave remembered lists the names")
}

fn bytes(list: &List) -> u64 {
    list.files.iter().map(ListedFile::pages).sum::<u64>() * PAGE_BYTES
}

fn size(list: &List) -> String {
    format!(
        "{}, {:.1} MB",
        print::counted(list.files.len() as u64, "file", "files"),
        bytes(list) as f64 * 1e-6
    )
}
