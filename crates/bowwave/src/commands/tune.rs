//! `bowwave tune`.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{anyhow, bail, ensure};
use linux::knob::Knob;
use linux::signals::{ENDING, not_ignored};
use tune::measure::{Effort, MeasureError, Report, Stop};
use tune::persist;
use tune::profile::ProfileError;
use tune::target::Target;
use tune::tuning::{TuneError, Tuning};

use super::output::{check_page, progress_bar, write_page};
use crate::print;
use crate::signals;
use remember::Places;

mod curve;
mod hook;
mod remember;
mod text;

/// Measure a device, choose its read-ahead window, remember it.
///
/// TARGET is a block device, a mount point, a folder or a file. Measuring changes only the device's
/// kernel window, and restores it. Without root, bowwave estimates the curve from a file that you
/// may read, and prints the command for an administrator.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to measure: a block device, a mount point, a folder or a file.
    #[arg(required_unless_present_any = ["list", "forget", "hook"])]
    target: Option<PathBuf>,
    /// Measure for 8 seconds instead of 30, for a first impression.
    #[arg(long, conflicts_with_all = ["thorough", "seconds"])]
    quick: bool,
    /// Measure for two minutes, for slow devices and noisy machines.
    #[arg(long, conflicts_with = "seconds")]
    thorough: bool,
    /// Measure for this many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(2..=3600))]
    seconds: Option<u64>,
    /// Set the chosen window now.
    #[arg(long)]
    apply: bool,
    /// Remember the device: write a profile to /var/lib/bowwave/devices and a udev rule that sets
    /// the window whenever the device appears.
    #[arg(long)]
    persist: bool,
    /// With --persist, print the files instead of writing them.
    #[arg(long, requires = "persist", conflicts_with = "json")]
    dry_run: bool,
    /// Draw the curve.
    #[arg(long, conflicts_with = "json")]
    plot: bool,
    /// Write a page with the curve to this file, or only the picture if its name ends in .svg.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
    /// List the remembered devices.
    #[arg(long, conflicts_with_all = ["target", "forget"])]
    list: bool,
    /// Forget a device, by its name in --list.
    #[arg(long, value_name = "NAME", conflicts_with = "target")]
    forget: Option<String>,
    /// For udev: print the remembered window of a disk or backing device that has appeared; fails
    /// silently if none is remembered.
    #[arg(long, value_name = "DEVICE", conflicts_with_all = ["target", "forget", "list"])]
    hook: Option<String>,
    /// Use this folder instead of / for remembered devices.
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    let places = Places::below(&args.root);
    if args.list {
        return remember::list(&places, args.json);
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
    tune(&args, args.target.as_deref().expect("it is required otherwise"), &places)
}

fn tune(args: &Args, path: &Path, places: &Places) -> anyhow::Result<ExitCode> {
    let target = Target::of(path)?;
    check_possible(args, path, &target, places)?;
    if let Some(daemon) = linux::daemons::running().next() {
        print::note(format_args!(
            "a daemon (process {}) reads ahead and may disturb the measurement; stop it for exact \
             figures",
            daemon.pid
        ));
    }
    let stop = stop_on_signals()?;
    let tuning = match measure(args, target, &stop) {
        Err(TuneError::Measure(error @ MeasureError::Stopped)) => {
            print::note(error);
            return Ok(ExitCode::from(signals::INTERRUPTED));
        }
        measured => measured?,
    };
    tuning.recovered.failed.iter().for_each(print::note);
    for (knob, kb) in &tuning.recovered.restored {
        print::note(format_args!(
            "put {} back to {kb}, which a killed run had left changed",
            knob.path().display()
        ));
    }
    show(args, &tuning)?;
    if stop.is_wanted() {
        print::note("stopped; the window is as it was");
        return Ok(ExitCode::from(signals::INTERRUPTED));
    }
    if args.apply {
        apply(&tuning)?;
    }
    if args.persist {
        remember::persist(&tuning, args.dry_run, places)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Checks before the long measurement that what the options ask for is possible.
fn check_possible(
    args: &Args,
    path: &Path,
    target: &Target,
    places: &Places,
) -> anyhow::Result<()> {
    let path = path.display();
    if args.apply {
        let knob = target.knob.as_ref();
        ensure!(knob.is_some(), "{path} has no read-ahead window to set; leave out --apply");
        ensure!(knob.is_some_and(Knob::is_writable), "--apply needs root; run it with sudo");
    }
    ensure!(
        !args.persist || !target.identity.is_size_only(),
        "{path} has no serial number and no model name to recognise it by; leave out --persist"
    );
    ensure!(
        !args.persist || target.knob.is_none() || target.has_lasting_window(),
        "no rule of udev can set the window of {path} at boot, since its file system numbers its windows itself; \
         leave out --persist"
    );
    if let Some(page) = &args.html {
        check_page(page, None)?;
    }
    if args.persist && !args.dry_run {
        persist::prepare(&places.profiles, &places.rules).map_err(|error| match &error {
            ProfileError::File { error: cause, .. }
                if cause.kind() == io::ErrorKind::PermissionDenied =>
            {
                anyhow!("--persist needs root; run it with sudo")
            }
            _ => error.into(),
        })?;
    }
    Ok(())
}

fn show(args: &Args, tuning: &Tuning) -> anyhow::Result<()> {
    if args.json {
        print::json(&text::object(tuning))?;
    } else {
        print::line(text::describe(tuning, args.apply || args.persist))?;
    }
    if args.plot {
        print::line(curve::drawn(tuning))?;
    }
    if let Some(page) = &args.html {
        let shown = curve::shown(tuning);
        let is_picture = page.extension().is_some_and(|ending| ending == "svg");
        let text = if is_picture { page::device_svg(&shown) } else { page::device_curve(&shown) };
        write_page(page, &text, None)?;
    }
    Ok(())
}

/// The first Ctrl-C or SIGTERM stops in order, and so does SIGHUP, but not under `nohup`. The second
/// one exits at once; the journal then restores the window later.
fn stop_on_signals() -> anyhow::Result<Stop> {
    let stop = Stop::default();
    for signal in not_ignored(ENDING) {
        signal_hook::flag::register_conditional_shutdown(
            signal,
            signals::INTERRUPTED.into(),
            stop.flag(),
        )?;
        signal_hook::flag::register(signal, stop.flag())?;
    }
    Ok(stop)
}

/// Measures with a progress bar.
fn measure(args: &Args, target: Target, stop: &Stop) -> Result<Tuning, TuneError> {
    let effort = match args.seconds {
        Some(seconds) => Effort { time: Duration::from_secs(seconds), ..Effort::NORMAL },
        None if args.quick => Effort::QUICK,
        None if args.thorough => Effort::THOROUGH,
        None => Effort::NORMAL,
    };
    let bar = progress_bar("", "{eta} left");
    let mut report = Report::to(|part, what: &str| {
        bar.set_position((part * 1000.0) as u64);
        bar.set_message(what.to_owned());
    });
    let tuning = Tuning::of(target, &effort, stop, &mut report);
    drop(report);
    bar.finish_and_clear();
    tuning
}

/// Refuses figures that other programs have disturbed; `consequence` is what does not happen.
fn refuse_disturbed(tuning: &Tuning, consequence: &str) -> anyhow::Result<()> {
    ensure!(
        !tuning.is_disturbed(),
        "{consequence}: other programs used the device or the processors; repeat this when the \
         machine is idle"
    );
    Ok(())
}

fn apply(tuning: &Tuning) -> anyhow::Result<()> {
    let (Some(choice), Some(knob)) = (tuning.choice, &tuning.target.knob) else {
        bail!("there is nothing to apply: {}", tuning.explanation());
    };
    refuse_disturbed(tuning, "not set")?;
    ensure!(tuning.is_measured(), "not set: {}", tuning.explanation());
    knob.set(choice.kb)?;
    print::note(format_args!("{} is {} now", knob.path().display(), choice.kb));
    Ok(())
}
