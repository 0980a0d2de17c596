//! The modes of drop-behind by the names that users type, and the daemon's configuration.

use std::io;
use std::path::Path;

use anyhow::{Context, anyhow};
use live::behind::{Mode, Rules};
use serde::Deserialize;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ModeName {
    /// Behind streams that have passed an eighth of the memory there is, or whose file is larger.
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default, rename = "drop-behind")]
    drop_behind: Rules,
}

/// The rules of the configuration file; a mode given by the user takes the place of its own.
pub(crate) fn rules(config: Option<&Path>, mode: Option<ModeName>) -> anyhow::Result<Rules> {
    let mut rules = match config {
        None => Rules::default(),
        Some(path) => {
            let text = read(path)
                .with_context(|| format!("cannot read the configuration {}", path.display()))?;
            parse(&text).with_context(|| format!("{} is no configuration", path.display()))?
        }
    };
    if let Some(mode) = mode {
        rules.mode = mode.into();
    }
    Ok(rules)
}

fn read(path: &Path) -> io::Result<String> {
    let bytes =
        files::small::read(path, "a configuration is a small TOML file (docs/drop-behind.md)")?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8 text"))
}

fn parse(text: &str) -> anyhow::Result<Rules> {
    let config: Config = toml::from_str(text).map_err(|error| in_one_sentence(text, &error))?;
    config.drop_behind.check()?;
    Ok(config.drop_behind)
}

/// The library draws the line in question; a log wants one line.
fn in_one_sentence(text: &str, error: &toml::de::Error) -> anyhow::Error {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    anyhow!("line {line}: {}", error.message().trim().replace('\n', "; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_a_mode_and_rules() {
        let rules = parse(
            r#"
            [drop-behind]
            mode = "never"
            [[drop-behind.rule]]
            cgroup = "/backup.slice"
            mode = "always"
            "#,
        )
        .expect("it is one");
        assert_eq!(rules.mode, Mode::Never);
        assert_eq!(rules.rules[0].cgroup.as_deref(), Some("/backup.slice"));
        assert_eq!(rules.rules[0].mode, Mode::Always);
        assert_eq!(parse("").expect("nothing is said"), Rules::default());
    }

    #[test]
    fn what_is_wrong_is_told_in_one_sentence_with_its_line() {
        for (text, words) in [
            ("[drop-behind]\nmood = \"auto\"\n", ["line 2", "mood"]),
            ("[drop-behind]\nmode = \"often\"\n", ["line 2", "often"]),
            ("[read-ahead]\n", ["line 1", "read-ahead"]),
            ("[[drop-behind.rule]]\npath = \"/x\"\n", ["line 1", "mode"]),
            ("[[drop-behind.rule]]\nmode = \"auto\"\n", ["rule 1", "command"]),
            ("[drop-behind\n", ["line 1", ""]),
        ] {
            let said = format!("{:#}", parse(text).unwrap_err());
            assert!(words.iter().all(|word| said.contains(word)), "{said}");
            assert!(!said.contains('\n'), "{said}");
        }
    }
}
