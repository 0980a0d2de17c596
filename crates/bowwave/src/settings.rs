//! Settings: the configuration file, and options that replace what it says.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use controller::Charge;
use controller::behind::Mode;
use live::config::{self, Config};

/// The default file. It need not exist.
pub(crate) const FILE: &str = "/etc/bowwave/config.toml";

/// The daemon's options that are also keys of the file.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Manage only the file system that holds this path; may be given several times.
    #[arg(long, value_name = "PATH")]
    path: Vec<PathBuf>,
    /// Which memory cgroup is charged for pages read ahead: bowwave's own (the default), or the
    /// reader's wherever the kernel can do the read-ahead itself.
    #[arg(long, value_enum)]
    charge: Option<ChargeName>,
    /// Drop pages behind streams: after they have passed half of the available memory (auto,
    /// the default), from their first page on (always), or never.
    #[arg(long, value_enum, value_name = "MODE")]
    drop_behind: Option<ModeName>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum ChargeName {
    /// Bowwave's own cgroup.
    Bowwave,
    /// The reader's cgroup, for forward streams.
    Reader,
}

impl From<ChargeName> for Charge {
    fn from(name: ChargeName) -> Self {
        match name {
            ChargeName::Bowwave => Charge::Bowwave,
            ChargeName::Reader => Charge::Reader,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ModeName {
    /// Behind streams that have passed half of the available memory, or whose file is larger.
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

impl Options {
    /// Replaces the keys whose options were given. The rules of drop-behind stay.
    pub(crate) fn apply_to(&self, mut config: Config) -> Config {
        if !self.path.is_empty() {
            config.path.clone_from(&self.path);
        }
        if let Some(charge) = self.charge {
            config.charge = charge.into();
        }
        if let Some(mode) = self.drop_behind {
            config.drop_behind.mode = mode.into();
        }
        config
    }
}

/// The file's path: the one that the user named, or [`FILE`] if it exists.
pub(crate) fn path(named: Option<&Path>) -> Option<&Path> {
    named.or_else(|| exists(Path::new(FILE)).then_some(Path::new(FILE)))
}

/// Whether a file exists, even if it cannot be read. A dangling link counts: it is a mistake, not a wish for defaults.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().map_or_else(|error| error.kind() != io::ErrorKind::NotFound, |_| true)
}

/// Says in a sentence that the file at [`path`] is right, or that there is none.
pub(crate) fn examine(named: Option<&Path>) -> anyhow::Result<String> {
    read(named)?;
    Ok(match path(named) {
        Some(path) => format!("nothing is wrong with {}", path.display()),
        None => format!("there is no {FILE}; defaults apply"),
    })
}

/// Reads the file at [`path`]; without one, returns the defaults.
pub(crate) fn read(named: Option<&Path>) -> anyhow::Result<Config> {
    let Some(path) = path(named) else { return Ok(Config::default()) };
    let text =
        text(path).with_context(|| format!("cannot read the configuration {}", path.display()))?;
    config::parse(&text).map_err(|error| anyhow!("{}, {error}", path.display()))
}

fn text(path: &Path) -> io::Result<String> {
    let bytes =
        linux::small::read(path, "a configuration is a small TOML file (docs/configuration.md)")?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use controller::behind::Rules;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        options: Options,
    }

    fn over(words: &[&str], file: &str) -> Config {
        let cli = Cli::try_parse_from([&["daemon"], words].concat()).expect("options");
        cli.options.apply_to(config::parse(file).expect("a configuration"))
    }

    #[test]
    fn options_replace_keys_of_the_file_and_keep_its_rules() {
        let file = "path = ['/srv']\ncharge = 'reader'\n[drop-behind]\nmode = 'never'\n\
                    [[drop-behind.rule]]\ncommand = 'tar'\nmode = 'always'";
        let written = config::parse(file).expect("a configuration");
        assert_eq!(over(&[], file), written);
        let words = ["--path", "/a", "--path", "/b", "--charge=bowwave", "--drop-behind=auto"];
        let replaced = over(&words, file);
        assert_eq!(replaced.path, ["/a", "/b"].map(PathBuf::from));
        assert_eq!(replaced.charge, Charge::Bowwave);
        let rules = written.drop_behind.rules;
        assert_eq!(replaced.drop_behind, Rules { mode: Mode::Auto, rules });
    }

    #[test]
    fn only_a_missing_file_means_the_defaults() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name| folder.path().join(name);
        assert!(!exists(&at("none")) && !exists(&at("none/none")));
        std::os::unix::fs::symlink("none", at("dangling")).expect("made");
        std::os::unix::fs::symlink("loop", at("loop")).expect("made");
        std::fs::write(at("file"), "").expect("written");
        for name in ["file", "dangling", "loop", "loop/file", "file/file"] {
            assert!(exists(&at(name)), "{name}");
        }
    }

    #[test]
    fn the_installed_file_has_the_defaults_and_valid_examples() {
        let installed = include_str!("../../../etc/config.toml");
        assert_eq!(config::parse(installed), Ok(Config::default()));
        let examples: String = installed
            .lines()
            .filter_map(|line| line.strip_prefix('#'))
            .filter(|line| line.starts_with(char::is_lowercase) || line.starts_with('['))
            .map(|line| format!("{line}\n"))
            .collect();
        let config = config::parse(&examples).unwrap_or_else(|error| panic!("{error}\n{examples}"));
        assert_eq!(config.path, ["/srv", "/home"].map(PathBuf::from));
        assert_eq!(config.charge, Charge::Bowwave);
        assert_eq!(config.drop_behind.rules.len(), 3);
        assert_eq!(config.remember, ["firefox", "code"].map(|name| name.parse().expect("a name")));
    }
}
