//! `bowwave report`: what a trace shows, as a page.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::ensure;

use super::output::{check_page, write_page};
use super::traces;
use crate::print;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The trace, from `bowwave record` or in the format of docs/trace.md; - is standard input
    trace: PathBuf,
    /// Write the page to this file, or to standard output with -; by default to TRACE.html
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    let output = output(&args)?;
    let is_printed = output == Path::new("-");
    // First, since the page lies beside the trace by default: where there is no trace, its folder may be missing, too.
    let trace = traces::read(&args.trace)?;
    if !is_printed {
        check_page(&output, Some(&args.trace))?;
    }
    let page = page::report(&named(&args.trace), &trace);
    if is_printed {
        print::all(|out| out.write_all(page.as_bytes()))?;
    } else {
        write_page(&output, &page, Some(&args.trace))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the page goes: what standard input is called is not known, so that needs a name.
fn output(args: &Args) -> anyhow::Result<PathBuf> {
    if let Some(output) = &args.output {
        return Ok(output.clone());
    }
    let is_stdin = args.trace == Path::new("-");
    ensure!(!is_stdin, "a trace from standard input needs a place for its page; name one after -o");
    let mut output = args.trace.clone().into_os_string();
    output.push(".html");
    Ok(output.into())
}

/// The trace as the page names it.
fn named(trace: &Path) -> String {
    match trace.file_name() {
        Some(_) if trace == Path::new("-") => "The trace".into(),
        Some(name) => name.display().to_string(),
        None => trace.display().to_string(),
    }
}
