//! Which streams drop behind: a mode, and rules by path, cgroup or command.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::glob::matches;
use crate::input::Attributes;

/// Most bytes of a process's name in the kernel.
const COMMAND_BYTES: usize = 15;

/// Whether pages are dropped behind a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Once it has passed half of the memory available to its cgroup, or at once if its file is larger.
    #[default]
    Auto,
    /// From its first page.
    Always,
    /// Not at all.
    Never,
}

/// The mode of the streams that match a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Files whose path matches this pattern: `*` is any part of a name, `**` any part of a path.
    pub path: Option<String>,
    /// Processes of this cgroup and those below it, as `/proc/PID/cgroup` names it.
    pub cgroup: Option<String>,
    /// Processes of this name (`/proc/PID/comm`: the first 15 characters).
    pub command: Option<String>,
    /// Their mode.
    pub mode: Mode,
}

/// The first matching rule decides; without one, the mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rules {
    /// The mode if no rule matches.
    pub mode: Mode,
    /// In order.
    #[serde(rename = "rule")]
    pub rules: Vec<Rule>,
}

/// Why a rule is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// It would match everything.
    #[error("this rule names nothing; give it a path, a cgroup or a command")]
    Empty,
    /// Nothing has such a path.
    #[error("{0:?} is no absolute path; begin it with /")]
    Relative(String),
    /// No process has such a name.
    #[error("the kernel keeps 15 bytes of a command's name; write {0:?}")]
    LongCommand(String),
}

impl Rule {
    /// Checks that the rule has a condition, and that something can match it.
    ///
    /// # Errors
    /// [`RuleError`].
    pub fn check(&self) -> Result<(), RuleError> {
        if self.path.is_none() && self.cgroup.is_none() && self.command.is_none() {
            return Err(RuleError::Empty);
        }
        let absolute = [&self.path, &self.cgroup];
        if let Some(odd) = absolute.into_iter().flatten().find(|path| !path.starts_with('/')) {
            return Err(RuleError::Relative(odd.clone()));
        }
        if let Some(long) = self.command.as_ref().filter(|name| name.len() > COMMAND_BYTES) {
            let kept = long.char_indices().take_while(|(at, c)| at + c.len_utf8() <= COMMAND_BYTES);
            return Err(RuleError::LongCommand(kept.map(|(_, c)| c).collect()));
        }
        Ok(())
    }
}

impl Rules {
    /// One mode for everything.
    pub fn only(mode: Mode) -> Self {
        Rules { mode, rules: Vec::new() }
    }

    /// Whether some stream may have this mode.
    pub fn may_be(&self, mode: Mode) -> bool {
        self.mode == mode || self.rules.iter().any(|rule| rule.mode == mode)
    }

    /// The mode of every stream, if it does not depend on rules.
    pub(super) fn only_mode(&self) -> Option<Mode> {
        self.rules.is_empty().then_some(self.mode)
    }

    pub(super) fn mode_of(&self, stream: &Attributes) -> Mode {
        let is_in = |of: &String| stream.cgroups.iter().any(|c| Path::new(c).starts_with(of));
        let has_path = |pattern: &String| !stream.path.is_empty() && matches(pattern, &stream.path);
        let fits = |rule: &&Rule| {
            rule.path.as_ref().is_none_or(has_path)
                && rule.cgroup.as_ref().is_none_or(is_in)
                && rule.command.as_ref().is_none_or(|name| *name == stream.command)
        };
        self.rules.iter().find(fits).map_or(self.mode, |rule| rule.mode)
    }
}

/// For fuzzing: any path matches itself, and `**` matches any path.
pub fn match_any(path: &str) {
    let is_plain = !path.contains(['*', '?']);
    assert!(!is_plain || matches(path, path));
    assert!(matches("**", path));
    matches(path, "/srv/films/a.mkv");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(path: Option<&str>, cgroup: Option<&str>, command: Option<&str>, mode: Mode) -> Rule {
        let own = |text: Option<&str>| text.map(str::to_owned);
        Rule { path: own(path), cgroup: own(cgroup), command: own(command), mode }
    }

    fn mode_of(rules: Vec<Rule>) -> Mode {
        Rules { mode: Mode::Auto, rules }.mode_of(&Attributes {
            path: "/srv/films/a.mkv".into(),
            cgroups: vec!["/".into(), "/backup.slice/nightly".into()],
            command: "restic".into(),
        })
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let films = rule(Some("/srv/**"), None, None, Mode::Never);
        let backup = rule(None, Some("/backup.slice"), None, Mode::Always);
        assert_eq!(mode_of(vec![films.clone(), backup.clone()]), Mode::Never);
        assert_eq!(mode_of(vec![backup, films]), Mode::Always);
        assert_eq!(mode_of(vec![]), Mode::Auto);
    }

    #[test]
    fn all_a_rule_names_must_fit() {
        let both = |command| rule(Some("/srv/**"), None, Some(command), Mode::Always);
        assert_eq!(mode_of(vec![both("restic")]), Mode::Always);
        assert_eq!(mode_of(vec![both("tar")]), Mode::Auto);
        assert_eq!(mode_of(vec![rule(None, Some("/backup"), None, Mode::Always)]), Mode::Auto);
    }

    #[test]
    fn a_rule_for_everything_is_a_mistake() {
        assert_eq!(rule(None, None, None, Mode::Never).check(), Err(RuleError::Empty));
        let relative = rule(Some("srv/*"), None, None, Mode::Never);
        assert!(relative.check().unwrap_err().to_string().contains("begin it with /"));
        let command = |name| rule(None, None, Some(name), Mode::Never);
        assert_eq!(command("systemd-journal").check(), Ok(()));
        let long = command("systemd-journald").check();
        assert_eq!(long, Err(RuleError::LongCommand("systemd-journal".into())));
    }
}
