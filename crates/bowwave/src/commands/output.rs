//! What long commands write besides their text: pages, progress.

use std::path::Path;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};

use crate::print;

/// Writes a page and says where, apart from what a program may read.
pub(crate) fn write_page(path: &Path, page: &str) -> anyhow::Result<()> {
    let name = path.display();
    files::whole::write(path, page).with_context(|| format!("cannot write the page {name}"))?;
    print::note(format_args!("{name}: open it in a browser"));
    Ok(())
}

pub(crate) fn progress_bar(name: &str) -> ProgressBar {
    let bar = ProgressBar::new(1000);
    let style = ProgressStyle::with_template("{msg:24} [{bar:40}] {percent}%");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
    bar.set_message(name.to_owned());
    bar
}
