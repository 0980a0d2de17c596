//! Parses the configuration file (TOML). Command-line options replace its keys.

use std::path::PathBuf;

use controller::Charge;
use controller::behind::{Mode, Rule, RuleError, Rules};
use serde::Deserialize;
use toml::Spanned;

use crate::starts::{Command, CommandError, MOST_COMMANDS};

/// The settings of an administrator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Manage only the file systems of these paths; all if empty.
    pub path: Vec<PathBuf>,
    /// Which memory cgroup is charged for pages read ahead.
    pub charge: Charge,
    /// Which streams drop pages behind them.
    pub drop_behind: Rules,
    /// Commands whose starts are remembered.
    pub remember: Vec<Command>,
}

/// Why a text is not a valid configuration.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("line {line}: {fault}")]
pub struct ConfigError {
    line: usize,
    fault: Fault,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
enum Fault {
    /// Not TOML, an unknown key, or an impossible value.
    #[error("{0}")]
    Malformed(String),
    #[error("{0:?} is not an absolute path; begin it with /")]
    Relative(PathBuf),
    #[error(transparent)]
    Rule(#[from] RuleError),
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error("at most {MOST_COMMANDS} commands can be remembered")]
    ManyCommands,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct File {
    path: Vec<Spanned<PathBuf>>,
    charge: Charge,
    drop_behind: DropBehind,
    remember: Remember,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Remember {
    command: Vec<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct DropBehind {
    mode: Mode,
    rule: Vec<Spanned<Rule>>,
}

/// Parses a configuration.
///
/// # Errors
/// Names the line of the first key or value that is wrong.
pub fn parse(text: &str) -> Result<Config, ConfigError> {
    let at = |start: usize, fault: Fault| ConfigError { line: line_of(text, start), fault };
    let file: File = toml::from_str(text).map_err(|error| {
        let reason = error.message().trim().replace('\n', "; ");
        at(error.span().map_or(0, |span| span.start), Fault::Malformed(reason))
    })?;
    let is_relative = |path: &&Spanned<PathBuf>| path.get_ref().is_relative();
    if let Some(path) = file.path.iter().find(is_relative) {
        return Err(at(path.span().start, Fault::Relative(path.get_ref().clone())));
    }
    for rule in &file.drop_behind.rule {
        rule.get_ref().check().map_err(|error| at(rule.span().start, error.into()))?;
    }
    if let Some(command) = file.remember.command.get(MOST_COMMANDS) {
        return Err(at(command.span().start, Fault::ManyCommands));
    }
    let command = |name: Spanned<String>| {
        name.get_ref().parse().map_err(|error: CommandError| at(name.span().start, error.into()))
    };
    let remember = file.remember.command.into_iter().map(command).collect::<Result<_, _>>()?;
    let rules = file.drop_behind.rule.into_iter().map(Spanned::into_inner).collect();
    Ok(Config {
        path: file.path.into_iter().map(Spanned::into_inner).collect(),
        charge: file.charge,
        drop_behind: Rules { mode: file.drop_behind.mode, rules },
        remember,
    })
}

/// The line, from 1, of the byte at `start`.
fn line_of(text: &str, start: usize) -> usize {
    text.get(..start).unwrap_or_default().matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_says_what_is_managed_and_how() {
        let config = parse(
            r#"
            path = ["/srv", "/home"]
            charge = "reader"
            [drop-behind]
            mode = "never"
            [[drop-behind.rule]]
            cgroup = "/backup.slice"
            mode = "always"
            [remember]
            command = ["firefox"]
            "#,
        )
        .expect("it is one");
        assert_eq!(config.path, ["/srv", "/home"].map(PathBuf::from));
        assert_eq!(config.charge, Charge::Reader);
        assert_eq!(config.drop_behind.mode, Mode::Never);
        assert_eq!(config.drop_behind.rules[0].cgroup.as_deref(), Some("/backup.slice"));
        assert_eq!(config.drop_behind.rules[0].mode, Mode::Always);
        assert_eq!(config.remember, ["firefox".parse().expect("a name")]);
        assert_eq!(parse("").expect("nothing is said"), Config::default());
    }

    #[test]
    fn a_fault_is_one_sentence_with_its_line() {
        for (text, words) in [
            ("[drop-behind]\nmood = \"auto\"\n", ["line 2", "mood"]),
            ("[drop-behind]\nmode = \"often\"\n", ["line 2", "often"]),
            ("[read-ahead]\n", ["line 1", "read-ahead"]),
            ("\n\ncharge = \"me\"\n", ["line 3", "me"]),
            ("path = \"/srv\"\n", ["line 1", "sequence"]),
            ("path = [\n\"/srv\",\n\"home\"]\n", ["line 3", "\"home\" is not an absolute path"]),
            ("[[drop-behind.rule]]\npath = \"/x\"\n", ["line 1", "mode"]),
            ("\n[[drop-behind.rule]]\nmode = \"auto\"\n", ["line 2", "command"]),
            ("\n[remember]\ncommand = [\"a b\"]\n", ["line 3", "\"a b\""]),
            ("[remember]\nname = \"a\"\n", ["line 2", "name"]),
            ("[drop-behind\n", ["line 1", ""]),
        ] {
            let said = parse(text).unwrap_err().to_string();
            assert!(words.iter().all(|word| said.contains(word)), "{said}");
            assert!(!said.contains('\n'), "{said}");
        }
    }
}
