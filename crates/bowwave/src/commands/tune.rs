//! `bowwave tune`.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use indicatif::ProgressBar;
use live::identity::Identity;
use live::knob::Knob;
use live::profiles;
use serde_json::{Value, json};
use tune::measure::{Effort, Report, Stop};
use tune::persist::{self, Rule};
use tune::profile::{self, Profile};
use tune::target::Target;
use tune::tuning::Tuning;

use super::output::write_page;
use crate::print;

mod curve;
mod hook;

/// Measure a device, choose its read-ahead, remember it.
///
/// TARGET is a block device, a mount point, a folder or a file. Nothing is written but the kernel's
/// window of it, for as long as it is measured. Without root the curve is estimated from a file that
/// you may read, and the command for an administrator is printed.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to tune.
    target: Option<PathBuf>,
    /// A first impression: 8 seconds instead of 30.
    #[arg(long, conflicts_with_all = ["thorough", "seconds"])]
    quick: bool,
    /// Two minutes, for slow devices and noisy machines.
    #[arg(long, conflicts_with = "seconds")]
    thorough: bool,
    /// So many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(2..=3600))]
    seconds: Option<u64>,
    /// Set the window now.
    #[arg(long)]
    apply: bool,
    /// Remember it: a profile in /var/lib/bowwave/devices, and a udev rule that sets the window when
    /// the device comes again.
    #[arg(long)]
    persist: bool,
    /// With --persist, print the files instead of writing them.
    #[arg(long, requires = "persist", conflicts_with = "json")]
    dry_run: bool,
    /// Draw the curve.
    #[arg(long, conflicts_with = "json")]
    plot: bool,
    /// Write a page with the curve to this file; of the picture alone if it ends in .svg.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// One JSON object instead of text.
    #[arg(long)]
    json: bool,
    /// Name the devices that are remembered.
    #[arg(long, conflicts_with_all = ["target", "forget"])]
    list: bool,
    /// Remove what is remembered of a device, by its name in --list.
    #[arg(long, value_name = "NAME", conflicts_with = "target")]
    forget: Option<String>,
    /// For udev: print the window of a disk or backing device that has come; fails if the kernel's
    /// own may stay.
    #[arg(long, value_name = "DEVICE", conflicts_with_all = ["target", "forget", "list"])]
    hook: Option<String>,
    /// Write and look for remembered devices below this folder instead of /.
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
    /// Where the journal is kept from which a window is put back.
    #[arg(long, value_name = "DIR", default_value = live::state::FOLDER)]
    state: PathBuf,
}

/// A model that is off by no more (rms) is as good as those of the catalogue's devices (docs/tune.md).
const SURE_PERCENT: f64 = 10.0;

/// Where things are remembered.
struct Places {
    profiles: PathBuf,
    rules: PathBuf,
}

impl Places {
    fn below(root: &Path) -> Self {
        let below = |path: &str| root.join(path.trim_start_matches('/'));
        Places { profiles: below(profiles::FOLDER), rules: below(persist::RULES) }
    }
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    let places = Places::below(&args.root);
    if args.list {
        return list(&places, args.json);
    }
    if let Some(name) = &args.forget {
        for path in persist::forget(name, &places.profiles, &places.rules)? {
            print::line(format_args!("removed {}", path.display()))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(device) = &args.hook {
        return hook::answer(device, &places.profiles);
    }
    let Some(target) = &args.target else {
        bail!("nothing to tune; name a block device, a mount point, a folder or a file");
    };
    tune(&args, target, &places)
}

fn tune(args: &Args, path: &Path, places: &Places) -> anyhow::Result<ExitCode> {
    let target = Target::of(path)?;
    let may_set = target.knob.as_ref().is_some_and(Knob::is_writable);
    let nameless =
        "has no read-ahead window that can be set, so --apply has nothing to do; leave it out";
    ensure!(target.knob.is_some() || !args.apply, "{} {nameless}", path.display());
    ensure!(may_set || !args.apply, "--apply needs root; run it with sudo");
    ensure!(
        !args.persist || !target.identity.is_size_only(),
        "{} tells nothing but its size, by which it cannot be recognised again; leave --persist out",
        path.display()
    );
    if args.persist && !args.dry_run {
        persist::prepare(&places.profiles, &places.rules)?;
    }
    if let Some(daemon) = live::daemons::running().next() {
        print::note(format_args!(
            "a daemon (process {}) leads reads and may get in the way; stop it meanwhile for \
             figures that hold",
            daemon.pid
        ));
    }
    let stop = stop_on_signals()?;
    let tuning = measure(args, target, &stop)?;
    for (knob, kb) in &tuning.recovered {
        print::note(format_args!(
            "put {} back to {kb}, which a run that was killed had left changed",
            knob.path().display()
        ));
    }
    if args.json {
        print::json(&object(&tuning))?;
    } else {
        print::line(describe(&tuning))?;
    }
    if args.plot {
        print::line(curve::drawn(&tuning))?;
    }
    if let Some(page) = &args.html {
        let shown = curve::shown(&tuning);
        let is_picture = page.extension().is_some_and(|ending| ending == "svg");
        let text = if is_picture { page::device_svg(&shown) } else { page::device_curve(&shown) };
        write_page(page, &text)?;
    }
    ensure!(
        !stop.is_wanted() || !(args.apply || args.persist),
        "stopped; nothing was set or written"
    );
    if args.apply {
        apply(&tuning)?;
    }
    if args.persist {
        persist(&tuning, args, places)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Ctrl-C and SIGTERM end it in order; the second one at once, and the journal sees to the rest.
fn stop_on_signals() -> anyhow::Result<Stop> {
    let stop = Stop::default();
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        signal_hook::flag::register_conditional_shutdown(signal, 1, stop.flag())?;
        signal_hook::flag::register(signal, stop.flag())?;
    }
    Ok(stop)
}

/// Measures with a progress bar.
fn measure(args: &Args, target: Target, stop: &Stop) -> anyhow::Result<Tuning> {
    let effort = match args.seconds {
        Some(seconds) => Effort { time: Duration::from_secs(seconds), ..Effort::NORMAL },
        None if args.quick => Effort::QUICK,
        None if args.thorough => Effort::THOROUGH,
        None => Effort::NORMAL,
    };
    let bar = progress_bar();
    let mut report = Report::to(|part, what: &str| {
        bar.set_position((part * 1000.0) as u64);
        bar.set_message(what.to_owned());
    });
    let tuning = Tuning::of(target, &effort, &args.state, stop, &mut report);
    drop(report);
    bar.finish_and_clear();
    Ok(tuning?)
}

fn progress_bar() -> ProgressBar {
    let bar = super::output::progress_bar("");
    let style = indicatif::ProgressStyle::with_template("{msg:24} [{bar:40}] {eta} left");
    if let Ok(style) = style {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

fn apply(tuning: &Tuning) -> anyhow::Result<()> {
    let (Some(choice), Some(knob)) = (tuning.choice, &tuning.target.knob) else {
        bail!("there is nothing to apply: {}", tuning.explanation());
    };
    knob.set(choice.kb)?;
    print::note(format_args!("{} is {} now", knob.path().display(), choice.kb));
    Ok(())
}

fn persist(tuning: &Tuning, args: &Args, places: &Places) -> anyhow::Result<()> {
    let Some(profile) = tuning.profile() else {
        bail!("there is nothing to remember, as nothing was measured");
    };
    refuse_doubtful(tuning)?;
    if tuning.model.as_ref().is_some_and(|model| model.rms_percent() > SURE_PERCENT) {
        print::note(format_args!(
            "the window was measured, but the model that is remembered beside it is unsure: it is off by \
             more than {SURE_PERCENT:.0} %, and `bowwave daemon` and `run` go by it; --thorough may bring a \
             better one"
        ));
    }
    if tuning.target.identity.is_weak() {
        print::note(
            "the device tells nothing that is its own; another one of its make and size will be \
             taken for it",
        );
    }
    let program = match tuning.target.identity {
        Identity::Mount { .. } => trusted_program()?,
        Identity::Disk(_) => PathBuf::new(),
    };
    let rule = persist::rule(&profile, &places.rules, &program);
    let file = profile.file(&places.profiles);
    if args.dry_run {
        let texts = [(&file, profile.text()?), (&rule.path, rule.text)];
        return Ok(texts.iter().try_for_each(|(path, text)| {
            print::line(format_args!("--- {}\n{}", path.display(), text.trim_end()))
        })?);
    }
    write(&profile, &rule, places)?;
    print::note(format_args!("wrote {} and {}", file.display(), rule.path.display()));
    Ok(())
}

/// What is remembered is set at every boot, so it has to be true, and of this device.
fn refuse_doubtful(tuning: &Tuning) -> anyhow::Result<()> {
    let Some(measured) = &tuning.measured else { return Ok(()) };
    ensure!(
        !measured.is_estimate,
        "not remembered, as the curve is only estimated; repeat it as root"
    );
    ensure!(
        !measured.disturbed,
        "not remembered, as others used the device meanwhile; repeat it when the device is idle"
    );
    Ok(())
}

/// Both, or what was there before: the rule of mounts, which many share, comes last and is never undone.
fn write(profile: &Profile, rule: &Rule, places: &Places) -> anyhow::Result<()> {
    let file = profile.file(&places.profiles);
    let before = std::fs::read(&file).ok();
    profile.write(&places.profiles)?;
    rule.write().inspect_err(|_| {
        // The first error is the one to report.
        let _ = match &before {
            Some(before) => files::whole::write_durably(&file, before),
            None => std::fs::remove_file(&file),
        };
    })?;
    Ok(())
}

/// This program, for a rule by which root runs it: nobody else may be able to replace it.
fn trusted_program() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("cannot find out where bowwave lies")?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._+-".contains(c);
    let is_roots = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|about| about.uid() == 0 && about.mode() & 0o022 == 0)
    };
    ensure!(
        program.display().to_string().chars().all(is_plain) && program.ancestors().all(is_roots),
        "{} may be changed by others than root, who will run it whenever a file system is mounted; \
         install bowwave first (make install)",
        program.display()
    );
    Ok(program)
}

fn describe(tuning: &Tuning) -> String {
    let target = &tuning.target;
    let knob = target
        .knob
        .as_ref()
        .map_or("no window to set".into(), |knob| knob.path().display().to_string());
    let mut lines = vec![format!("{}: {knob}", target.given.display())];
    if let Some(measured) = &tuning.measured {
        lines.push(format!("  {}", figures(tuning)));
        if let (Some(p50), Some(p99)) = (measured.random_s(0.5), measured.random_s(0.99)) {
            lines.push(format!(
                "  random reads of 4 KiB: {:.0} us in the middle, {:.0} us at the 99th percentile",
                p50 * 1e6,
                p99 * 1e6
            ));
        }
    }
    lines.push(tuning.explanation());
    lines.extend(remarks(tuning));
    lines.join("\n")
}

fn figures(tuning: &Tuning) -> String {
    let Some(model) = &tuning.model else {
        return "too little was measured for a model".into();
    };
    let cost = model.cost();
    let kind = if model.spec.is_rotational() { "a disk with a head" } else { "no moving head" };
    format!(
        "latency {:.0} us, bandwidth {:.1} MB/s, {:.0} at once, {kind}; the model is off by {:.1} % (rms)",
        cost.latency_s * 1e6,
        cost.bandwidth * 1e-6,
        cost.concurrency,
        model.rms_percent()
    )
}

/// What has to be known about the figures, and what to do with them.
fn remarks(tuning: &Tuning) -> Vec<String> {
    const MOSTLY: f64 = 0.9;
    let mut remarks = Vec::new();
    let target = tuning.target.given.display();
    if let Some(measured) = &tuning.measured {
        if measured.disturbed {
            remarks.push(
                "DISTURBED: others used the device meanwhile; repeat this when it is idle.".into(),
            );
        } else if measured.waited {
            remarks.push("Others used the device at times; those figures were taken again.".into());
        }
        if measured.is_estimate {
            remarks.push(
                "The window could not be set, so the curve is estimated from direct requests."
                    .into(),
            );
        }
        if measured.zero_share > MOSTLY {
            remarks.push(format!(
                "Most of {target} is zeros, which thin and trimmed devices answer without their \
                 medium; name a file on it to be sure."
            ));
        }
    }
    match (&tuning.target.knob, tuning.choice) {
        (Some(knob), Some(_)) if !knob.is_writable() && tuning.measured.is_none() => {
            remarks.push(format!("An administrator measures it with: sudo bowwave tune {target}"))
        }
        (Some(knob), Some(choice)) if !knob.is_writable() => remarks.push(format!(
            "An administrator sets it with: sudo bowwave tune {target} --apply --persist\n\
             or, for now: echo {} | sudo tee {}",
            choice.kb,
            knob.path().display()
        )),
        _ => {}
    }
    remarks
}

fn object(tuning: &Tuning) -> Value {
    let measured = tuning.measured.as_ref();
    let cost = tuning.model.as_ref().map(tune::model::Model::cost);
    let us = |seconds: Option<f64>| seconds.map(|seconds| seconds * 1e6);
    json!({
        "target": tuning.target.given,
        "knob": tuning.target.knob.as_ref().map(Knob::path),
        "current_kb": tuning.current_kb,
        "formula_kb": tuning.formula_kb,
        "chosen_kb": tuning.choice.map(|choice| choice.kb),
        "latency_us": us(cost.map(|cost| cost.latency_s)),
        "random_p50_us": us(measured.and_then(|m| m.random_s(0.5))),
        "random_p99_us": us(measured.and_then(|m| m.random_s(0.99))),
        "bandwidth_mb_s": cost.map(|cost| cost.bandwidth * 1e-6),
        "concurrency": cost.map(|cost| cost.concurrency),
        "fit_error_percent": tuning.model.as_ref().map(tune::model::Model::rms_percent),
        "disturbed": measured.map(|m| m.disturbed),
        "estimated": measured.map(|m| m.is_estimate),
        "curve": measured.map(|m| &m.curve),
        "errors_percent": tuning.model.as_ref().map(|model| &model.error_percent),
        "model": tuning.model.as_ref().map(|model| &model.spec),
        "explanation": tuning.explanation(),
    })
}

fn list(places: &Places, as_json: bool) -> anyhow::Result<ExitCode> {
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
