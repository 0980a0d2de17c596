//! Whose streams drop behind: a mode, and rules by path, cgroup or command.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::glob::matches;

/// What the kernel keeps of a process's name.
const COMMAND_BYTES: usize = 15;

/// Whether pages are dropped behind a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Once it has passed an eighth of the memory available to its cgroup, or if its file is larger.
    #[default]
    Auto,
    /// From its first page.
    Always,
    /// Not at all.
    Never,
}

/// The mode of streams that a rule fits.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Files whose path fits this pattern: `*` stands for any part of a name, `**` for any part of
    /// a path.
    pub path: Option<String>,
    /// Processes of this cgroup and those below it, as `/proc/PID/cgroup` names it.
    pub cgroup: Option<String>,
    /// Processes of this name (`/proc/PID/comm`: the first 15 characters).
    pub command: Option<String>,
    /// What they get.
    pub mode: Mode,
}

/// The first rule that fits decides, else the mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rules {
    /// Where no rule fits.
    pub mode: Mode,
    /// In order.
    #[serde(rename = "rule")]
    pub rules: Vec<Rule>,
}

/// Why rules make no sense.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RuleError {
    /// It would fit everything.
    #[error("drop-behind rule {0} names nothing; give it a path, a cgroup or a command")]
    Empty(usize),
    /// Nothing has such a path.
    #[error("drop-behind rule {0}: {1:?} is no absolute path; begin it with /")]
    Relative(usize, String),
    /// No process has such a name.
    #[error("drop-behind rule {0}: the kernel keeps 15 bytes of a command's name; write {1:?}")]
    LongCommand(usize, String),
}

impl Rules {
    /// One mode for everything.
    pub fn only(mode: Mode) -> Self {
        Rules { mode, rules: Vec::new() }
    }

    /// Whether every rule says whom it is for.
    ///
    /// # Errors
    /// [`RuleError`], counting rules from 1.
    pub fn check(&self) -> Result<(), RuleError> {
        for (rule, number) in self.rules.iter().zip(1..) {
            if rule.path.is_none() && rule.cgroup.is_none() && rule.command.is_none() {
                return Err(RuleError::Empty(number));
            }
            let absolute = [&rule.path, &rule.cgroup];
            if let Some(odd) = absolute.into_iter().flatten().find(|path| !path.starts_with('/')) {
                return Err(RuleError::Relative(number, odd.clone()));
            }
            if let Some(long) = rule.command.as_ref().filter(|name| name.len() > COMMAND_BYTES) {
                let kept =
                    long.char_indices().take_while(|(at, c)| at + c.len_utf8() <= COMMAND_BYTES);
                return Err(RuleError::LongCommand(number, kept.map(|(_, c)| c).collect()));
            }
        }
        Ok(())
    }

    /// Whether some stream has this mode.
    pub(super) fn may_be(&self, mode: Mode) -> bool {
        self.mode == mode || self.rules.iter().any(|rule| rule.mode == mode)
    }

    pub(super) fn mode_of(&self, stream: &dyn Attributes) -> Mode {
        let fits = |rule: &&Rule| {
            let path = rule.path.as_ref().is_none_or(|pattern| {
                stream.path().is_some_and(|path| matches(pattern, &path.to_string_lossy()))
            });
            path && rule
                .cgroup
                .as_ref()
                .is_none_or(|of| stream.cgroups().iter().any(|c| is_in(c, of)))
                && rule.command.as_ref().is_none_or(|name| stream.command().as_ref() == Some(name))
        };
        self.rules.iter().find(fits).map_or(self.mode, |rule| rule.mode)
    }
}

/// What rules look at; asked for only where one does.
pub(super) trait Attributes {
    fn path(&self) -> Option<PathBuf>;
    fn cgroups(&self) -> Vec<String>;
    fn command(&self) -> Option<String>;
}

/// Of a process that reads or writes the file open at `/proc/self/fd/NUMBER`.
pub(super) struct Live {
    pub(super) tgid: u32,
    pub(super) descriptor: Option<i32>,
}

impl Attributes for Live {
    fn path(&self) -> Option<PathBuf> {
        fs::read_link(format!("/proc/self/fd/{}", self.descriptor?)).ok()
    }

    fn cgroups(&self) -> Vec<String> {
        let table = fs::read_to_string(format!("/proc/{}/cgroup", self.tgid)).unwrap_or_default();
        table.lines().filter_map(|line| Some(line.splitn(3, ':').nth(2)?.to_owned())).collect()
    }

    fn command(&self) -> Option<String> {
        let name = fs::read_to_string(format!("/proc/{}/comm", self.tgid)).ok()?;
        Some(name.trim_end_matches('\n').to_owned())
    }
}

fn is_in(cgroup: &str, of: &str) -> bool {
    Path::new(cgroup).starts_with(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Stream;

    impl Attributes for Stream {
        fn path(&self) -> Option<PathBuf> {
            Some("/srv/films/a.mkv".into())
        }
        fn cgroups(&self) -> Vec<String> {
            vec!["/".into(), "/backup.slice/nightly".into()]
        }
        fn command(&self) -> Option<String> {
            Some("restic".into())
        }
    }

    fn rule(path: Option<&str>, cgroup: Option<&str>, command: Option<&str>, mode: Mode) -> Rule {
        let own = |text: Option<&str>| text.map(str::to_owned);
        Rule { path: own(path), cgroup: own(cgroup), command: own(command), mode }
    }

    fn mode_of(rules: Vec<Rule>) -> Mode {
        Rules { mode: Mode::Auto, rules }.mode_of(&Stream)
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
        let empty = Rules { mode: Mode::Auto, rules: vec![rule(None, None, None, Mode::Never)] };
        assert_eq!(empty.check(), Err(RuleError::Empty(1)));
        let relative = rule(Some("srv/*"), None, None, Mode::Never);
        let relative = Rules { mode: Mode::Auto, rules: vec![relative] };
        assert!(relative.check().unwrap_err().to_string().contains("begin it with /"));
        let command = |name| Rules {
            mode: Mode::Auto,
            rules: vec![rule(None, None, Some(name), Mode::Never)],
        };
        assert_eq!(command("systemd-journal").check(), Ok(()));
        let long = command("systemd-journald").check();
        assert_eq!(long, Err(RuleError::LongCommand(1, "systemd-journal".into())));
    }
}
