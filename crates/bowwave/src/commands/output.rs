//! Writes what long commands print besides text: HTML pages and progress bars.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use linux::whole::PLAIN;

use crate::print;

/// Checks that a page can be written, before the long work begins. The page must not replace `trace`, which the work
/// reads.
pub(crate) fn check_page(page: &Path, trace: Option<&Path>) -> anyhow::Result<()> {
    let names_a_file = page != Path::new("-");
    ensure!(names_a_file, "--html writes to a file; name one");
    let folder = page.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    ensure!(folder.is_dir(), "there is no folder {}; make it first", folder.display());
    ensure!(!page.is_dir(), "{} is a folder; name a file in it for the page", page.display());
    let file = |path: &Path| path.metadata().ok().filter(Metadata::is_file);
    let number = |path: &Path| file(path).map(|about| (about.dev(), about.ino()));
    let is_page = |path: &Path| number(page).is_some_and(|page| number(path) == Some(page));
    let is_output = is_page(Path::new("/dev/stdout"));
    ensure!(
        !is_output,
        "{} is the standard output; name another file for the page",
        page.display()
    );
    let is_trace = trace.is_some_and(|trace| {
        let is_stdin = trace == Path::new("-");
        is_page(if is_stdin { Path::new("/dev/stdin") } else { trace })
    });
    ensure!(!is_trace, "{} is the trace itself; name another file for the page", page.display());
    linux::whole::check(page).with_context(|| format!("cannot write the page {}", page.display()))
}

/// Writes a page about `trace`, and prints its path on standard error, since programs may read standard output.
pub(crate) fn write_page(path: &Path, page: &str, trace: Option<&Path>) -> anyhow::Result<()> {
    let name = path.display();
    let mode = trace.map_or(PLAIN, permissions_of);
    linux::whole::write_as(path, page, mode)
        .with_context(|| format!("cannot write the page {name}"))?;
    print::note(format_args!("{}: open it in a browser", print::visible(&name.to_string())));
    Ok(())
}

/// The permissions of a new file that tells what a trace does: no more than the trace's own, since it tells who reads
/// what.
pub(crate) fn permissions_of(trace: &Path) -> u32 {
    let trace = if trace == Path::new("-") { Path::new("/dev/stdin") } else { trace };
    let file = trace.metadata().ok().filter(Metadata::is_file);
    file.map_or(PLAIN, |about| about.mode() & PLAIN)
}

/// A bar with what is done now and, at its end, `figure`, for example `{percent}%`.
pub(crate) fn progress_bar(name: &str, figure: &str) -> ProgressBar {
    let bar = ProgressBar::new(1000);
    let style = ProgressStyle::with_template(&format!("{{msg:24}} [{{bar:40}}] {figure}"));
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
    bar.set_message(name.to_owned());
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_needs_an_existing_folder_and_never_replaces_its_trace() {
        let folder = tempfile::tempdir().expect("a folder");
        let (page, trace) = (folder.path().join("page.html"), folder.path().join("trace.csv"));
        std::fs::write(&trace, "").expect("written");
        assert!(check_page(&page, Some(&trace)).is_ok());
        std::fs::write(&page, "").expect("written");
        assert!(check_page(&page, Some(&trace)).is_ok(), "an old page goes");
        assert!(check_page(Path::new("page.html"), None).is_ok(), "the folder one is in");
        let refused = |page: &Path| check_page(page, Some(&trace)).unwrap_err().to_string();
        assert!(refused(&folder.path().join("./trace.csv")).contains("the trace itself"));
        assert!(refused(&folder.path().join("none/page.html")).contains("make it first"));
        assert!(refused(folder.path()).contains("is a folder"));
        assert!(refused(Path::new("-")).contains("name one"));
    }
}
