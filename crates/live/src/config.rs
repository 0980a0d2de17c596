//! Rules as the daemon's configuration has them: a TOML table `[drop-behind]`.

use controller::behind::{RuleError, Rules};
use serde::Deserialize;

/// Why a text is no configuration.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConfigError {
    /// It is no TOML, or has other tables and names than these.
    #[error("line {line}: {reason}")]
    Malformed {
        /// Where.
        line: usize,
        /// Why.
        reason: String,
    },
    /// A rule makes no sense.
    #[error(transparent)]
    Rule(#[from] RuleError),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default, rename = "drop-behind")]
    drop_behind: Rules,
}

/// The rules of a configuration.
///
/// # Errors
/// See [`ConfigError`].
pub fn parse(text: &str) -> Result<Rules, ConfigError> {
    let config: Config = toml::from_str(text).map_err(|error| malformed(text, &error))?;
    config.drop_behind.check()?;
    Ok(config.drop_behind)
}

/// The library draws the line in question; a log wants one line.
fn malformed(text: &str, error: &toml::de::Error) -> ConfigError {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    ConfigError::Malformed { line, reason: error.message().trim().replace('\n', "; ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use controller::behind::Mode;

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
            let said = parse(text).unwrap_err().to_string();
            assert!(words.iter().all(|word| said.contains(word)), "{said}");
            assert!(!said.contains('\n'), "{said}");
        }
    }
}
