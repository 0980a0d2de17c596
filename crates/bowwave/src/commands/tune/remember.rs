//! Remembers tuned devices, and lists them.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use linux::identity::Identity;
use linux::state;
use serde_json::json;
use tune::persist::{self, Rule};
use tune::profile::{self, Profile};
use tune::tuning::Tuning;

use super::refuse_disturbed;
use crate::print;

/// The folders of profiles and rules.
pub(super) struct Places {
    pub(super) profiles: PathBuf,
    pub(super) rules: PathBuf,
}

impl Places {
    pub(super) fn below(root: &Path) -> Self {
        let below = |path: &str| root.join(path.trim_start_matches('/'));
        Places { profiles: below(state::PROFILES), rules: below(persist::RULES) }
    }
}

/// Writes the profile and the rule, or prints them.
pub(super) fn persist(tuning: &Tuning, is_dry: bool, places: &Places) -> anyhow::Result<()> {
    let Some(profile) = tuning.profile() else {
        bail!(
            "nothing to remember: too little was measured; name a larger file on it, or leave out --quick and --seconds"
        );
    };
    refuse_doubtful(tuning)?;
    if tuning.model.as_ref().is_some_and(|model| !model.is_good()) {
        print::note("`bowwave daemon` and `run` will use this model");
    }
    if tuning.target.identity.is_weak() {
        print::note(
            "the device has no serial number; another one of the same model and size will be taken \
             for it",
        );
    }
    let program = match tuning.target.identity {
        Identity::Mount { .. } => trusted_program()?,
        Identity::Disk(_) => PathBuf::new(),
    };
    let rule = persist::rule(&profile, &places.rules, &program);
    let file = profile.file(&places.profiles);
    if is_dry {
        let texts = [(&file, profile.text()?), (&rule.path, rule.text)];
        return Ok(texts.iter().try_for_each(|(path, text)| {
            print::line(format_args!("--- {}\n{}", path.display(), text.trim_end()))
        })?);
    }
    write(&profile, &rule, places)?;
    print::note(format_args!("wrote {} and {}", file.display(), rule.path.display()));
    Ok(())
}

/// Refuses doubtful results: remembered windows are set at every boot.
fn refuse_doubtful(tuning: &Tuning) -> anyhow::Result<()> {
    let Some(measured) = &tuning.measured else { return Ok(()) };
    ensure!(
        !measured.is_estimate,
        "not remembered: the curve is only an estimate; repeat this as root"
    );
    refuse_disturbed(tuning, "not remembered")
}

/// Writes both files, or restores the previous profile. The rule for mounts serves many devices, so
/// it comes last and is never undone.
fn write(profile: &Profile, rule: &Rule, places: &Places) -> anyhow::Result<()> {
    let file = profile.file(&places.profiles);
    let before = std::fs::read(&file).ok();
    profile.write(&places.profiles)?;
    rule.write().inspect_err(|_| {
        // If this fails as well, the first error is reported.
        let _ = match &before {
            Some(before) => linux::whole::write_durably(&file, before),
            None => std::fs::remove_file(&file),
        };
    })?;
    Ok(())
}

/// The path of this program, for a rule that root executes. Fails if another user could replace it.
fn trusted_program() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("cannot find the path of bowwave itself")?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._+-".contains(c);
    let is_roots = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|about| about.uid() == 0 && about.mode() & 0o022 == 0)
    };
    ensure!(
        program.display().to_string().chars().all(is_plain) && program.ancestors().all(is_roots),
        "root would run {} whenever a file system is mounted, but other users can change it; \
         install bowwave first (make install)",
        program.display()
    );
    Ok(program)
}

pub(super) fn list(places: &Places, as_json: bool) -> anyhow::Result<ExitCode> {
    let folder = &places.profiles;
    let found =
        profile::list(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let width = found.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut code = ExitCode::SUCCESS;
    let mut rows = Vec::new();
    for (name, profile) in found {
        match profile {
            Ok(Profile { tuned, .. }) => {
                let row = json!({ "name": name, "tuned": tuned });
                if !as_json {
                    print::line(format_args!(
                        "{name:<width$}  {:>5} KiB  {} (measured {})",
                        tuned.chosen_kb,
                        tuned.target.display(),
                        tuned.date
                    ))?;
                }
                rows.push(row);
            }
            Err(error) => {
                code = ExitCode::FAILURE;
                rows.push(json!({ "name": name, "error": error.to_string() }));
                print::note(error);
            }
        }
    }
    if as_json {
        print::json(&rows.into())?;
    } else if rows.is_empty() {
        print::line("no device is remembered")?;
    }
    Ok(code)
}
