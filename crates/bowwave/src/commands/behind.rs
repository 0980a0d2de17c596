//! The modes of drop-behind as users type them, and the daemon's configuration file.

use std::io;
use std::path::Path;

use anyhow::Context;
use controller::behind::{Mode, Rules};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ModeName {
    /// Behind streams that have passed an eighth of the available memory, or whose file is larger.
    #[default]
    Auto,
    /// Behind every stream.
    Always,
    /// Never.
    Never,
}

impl From<ModeName> for Mode {
    fn from(name: ModeName) -> Self {
        match name {
            ModeName::Auto => Mode::Auto,
            ModeName::Always => Mode::Always,
            ModeName::Never => Mode::Never,
        }
    }
}

/// The rules of the configuration file. A mode given by the user replaces the file's mode.
pub(crate) fn rules(config: Option<&Path>, mode: Option<ModeName>) -> anyhow::Result<Rules> {
    let mut rules = match config {
        None => Rules::default(),
        Some(path) => {
            let text = read(path)
                .with_context(|| format!("cannot read the configuration {}", path.display()))?;
            live::config::parse(&text)
                .with_context(|| format!("{} is no configuration", path.display()))?
        }
    };
    if let Some(mode) = mode {
        rules.mode = mode.into();
    }
    Ok(rules)
}

fn read(path: &Path) -> io::Result<String> {
    let bytes =
        linux::small::read(path, "a configuration is a small TOML file (docs/drop-behind.md)")?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8 text"))
}
