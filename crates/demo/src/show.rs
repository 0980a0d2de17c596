//! All of it: devices, rounds, patterns, settings.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::bench::{Bench, Sample, Setting};
use crate::cgroup::MemoryCgroup;
use crate::error::DemoError;
use crate::files;
use crate::leftovers;
use crate::machine;
use crate::pattern::{PATTERNS, Pattern, Work, find};
use crate::report::Report;
use crate::row::{Row, Verdict};
use crate::small;
use crate::stop::Stop;
use crate::target::{Place, Target};
use crate::trade_off::TradeOff;

/// What to show.
#[derive(Clone, Debug)]
pub struct Options {
    /// Devices: names of the lab, TOML files, or `local[:FOLDER]`.
    pub devices: Vec<String>,
    /// Patterns by name; the telling ones if empty.
    pub only: Vec<String>,
    /// Every pattern.
    pub full: bool,
    /// Runs of each; the medians are shown.
    pub rounds: u32,
}

/// Shows everything; calls `on_device` with what came of each device when it is done.
///
/// # Errors
/// See [`DemoError`]. Whatever was made is removed on every path.
pub fn show(
    options: &Options,
    mut on_device: impl FnMut(Report) -> io::Result<()>,
) -> Result<(), DemoError> {
    let devices = each_once(&options.devices);
    let places: Vec<Place> =
        devices.iter().map(|device| Place::parse(device)).collect::<Result<_, _>>()?;
    if options.only.iter().any(String::is_empty) {
        return Err(DemoError::UnnamedPattern);
    }
    let is_unknown = |name: &&String| find(name).is_none() && !is_show(name);
    if let Some(name) = options.only.iter().find(is_unknown) {
        return Err(DemoError::UnknownPattern(name.clone()));
    }
    if !rustix::process::geteuid().is_root() {
        return Err(DemoError::NotRoot);
    }
    // One that was given paths was not given those of a lab that is still to be made.
    let is_any_local = places.iter().any(|place| matches!(place, Place::Local(_)));
    if let Some(daemon) = linux::daemons::running().find(|it| it.leads_all || is_any_local) {
        return Err(DemoError::DaemonRuns(daemon.pid));
    }
    let stop = Stop::on_signals().map_err(DemoError::file("pipe"))?;
    // Nobody may be listening.
    leftovers::clear(|sentence| drop(writeln!(io::stderr(), "bowwave: {sentence}")));
    for (device, place) in devices.into_iter().zip(places) {
        let shown = show_one(options, device, &place, &stop);
        // A signal also ends the tools that make a lab, whose complaint is then not the reason.
        let report = shown.map_err(|e| if stop.is_asked_for() { DemoError::Stopped } else { e })?;
        on_device(report).map_err(DemoError::Output)?;
    }
    Ok(())
}

fn is_show(name: &str) -> bool {
    small::SHOWS.iter().any(|(show, _)| *show == name)
}

/// Patterns first, then what is shown on a small machine; each on a device of its own, so that files
/// lie where they would without the others.
fn show_one(
    options: &Options,
    device: &str,
    place: &Place,
    stop: &Stop,
) -> Result<Report, DemoError> {
    let session = Session::new(device, &choose(options, place), options.rounds);
    let is_named = |name: &str| options.only.iter().any(|only| only == name);
    let is_wanted = |name: &str| is_named(name) || (options.full && options.only.is_empty());
    let on_small_machine = small::Wanted {
        drop_behind: is_wanted("drop-behind"),
        thrash: is_wanted("thrash"),
        full: options.full,
        rounds: options.rounds,
    };
    let mut report = session.run(place, stop)?;
    if !on_small_machine.is_nothing() {
        report.sections = on_small_machine.show(device, place, stop)?;
    }
    Ok(report)
}

/// A device that is named twice is shown once.
fn each_once(devices: &[String]) -> Vec<&str> {
    let is_first = |at: &usize| !devices[..*at].contains(&devices[*at]);
    (0..devices.len()).filter(is_first).map(|at| devices[at].as_str()).collect()
}

fn choose(options: &Options, place: &Place) -> Vec<&'static Pattern> {
    let is_rotational = place.is_rotational();
    let is_wanted = |pattern: &&Pattern| {
        if options.only.is_empty() {
            options.full || pattern.is_telling(is_rotational)
        } else {
            options.only.iter().any(|name| name == pattern.name)
        }
    };
    PATTERNS.iter().filter(is_wanted).collect()
}

/// One device and what is measured on it.
struct Session {
    device: String,
    series: Vec<Series>,
    rounds: u32,
}

/// One pattern: its settings, and the samples of each.
struct Series {
    pattern: &'static Pattern,
    settings: &'static [Setting],
    samples: Vec<Vec<Sample>>,
    /// Why it cannot be run here, if so.
    missing: Option<String>,
}

impl Session {
    fn new(device: &str, patterns: &[&'static Pattern], rounds: u32) -> Self {
        let series = patterns.iter().map(|pattern| Series::of(pattern)).collect();
        Session { device: device.into(), series, rounds }
    }

    fn run(mut self, place: &Place, stop: &Stop) -> Result<Report, DemoError> {
        if self.series.is_empty() {
            return Ok(self.empty_report());
        }
        let bar = self.progress();
        bar.set_message("making the device");
        let target = place.open()?;
        let state = leftovers::temporary_folder().map_err(DemoError::file("temporary folder"))?;
        bar.set_message("writing files");
        target.set_fast(true)?;
        for series in self.series.iter().filter(|series| series.missing.is_none()) {
            files::prepare(&target.folder(), series.pattern.files, stop)?;
        }
        target.set_fast(false)?;
        let bench = Bench { target: &target, state: state.path(), stop };
        for round in 1..=self.rounds {
            for series in &mut self.series {
                series.run(&bench, &bar)?;
                if series.missing.is_none() && !io::stderr().is_terminal() {
                    let (device, rounds, name) = (&self.device, self.rounds, series.pattern.name);
                    // Nobody may be listening.
                    let _ = writeln!(
                        io::stderr(),
                        "{device}, round {round} of {rounds}: {name} done, {} of {} runs",
                        bar.position(),
                        bar.length().unwrap_or(0)
                    );
                }
            }
        }
        bar.finish_and_clear();
        self.report(&target)
    }

    fn progress(&self) -> ProgressBar {
        let runnable = self.series.iter().filter(|series| series.missing.is_none());
        let runs: usize = runnable.map(|series| series.settings.len()).sum();
        let bar = ProgressBar::new(runs as u64 * u64::from(self.rounds));
        if !io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let style = ProgressStyle::with_template("{prefix} [{bar:30}] {pos}/{len} {elapsed} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_prefix(self.device.clone());
        bar.enable_steady_tick(Duration::from_millis(500));
        bar
    }

    fn empty_report(&self) -> Report {
        Report {
            device: self.device.clone(),
            rounds: self.rounds,
            rows: Vec::new(),
            trade_off: None,
            sections: Vec::new(),
        }
    }

    fn report(&self, target: &Target) -> Result<Report, DemoError> {
        let mut report = self.empty_report();
        for series in &self.series {
            series.check_sums()?;
            match series.pattern.bytes_needed() {
                Some(needed) => report.rows.push(Row {
                    device: self.device.clone(),
                    pattern: series.pattern.name.into(),
                    verdict: series.verdict(needed, target.limit_seconds(needed)),
                }),
                None => {
                    let trade_off = TradeOff::of(&series.samples);
                    report.trade_off = Some((series.pattern.name.into(), trade_off));
                }
            }
        }
        Ok(report)
    }
}

impl Series {
    fn of(pattern: &'static Pattern) -> Self {
        let settings = match pattern.work {
            Work::Beside => TradeOff::SETTINGS,
            _ => Row::SETTINGS,
        };
        let samples = vec![Vec::new(); settings.len()];
        Series { pattern, settings, samples, missing: missing(pattern) }
    }

    /// One round: the settings follow one another, each time beginning with the next, as a run is
    /// not quite independent of the one before it.
    fn run(&mut self, bench: &Bench<'_>, bar: &ProgressBar) -> Result<(), DemoError> {
        if self.missing.is_some() {
            return Ok(());
        }
        let rounds_done = self.samples[0].len();
        for turn in 0..self.settings.len() {
            let index = (rounds_done + turn) % self.settings.len();
            let setting = self.settings[index];
            bar.set_message(format!("{}, {setting}", self.pattern.name));
            self.samples[index].push(bench.sample(self.pattern, setting)?);
            bar.inc(1);
        }
        Ok(())
    }

    /// What was read must be the same under all settings.
    fn check_sums(&self) -> Result<(), DemoError> {
        let mut sums = self.samples.iter().flatten().map(|sample| sample.outcome.checksum);
        let first = sums.next();
        if sums.all(|sum| Some(sum) == first) {
            return Ok(());
        }
        Err(DemoError::DifferentBytes(self.pattern.name.into()))
    }

    fn verdict(&self, needed: u64, limit_s: Option<f64>) -> Verdict<crate::row::Figures> {
        match &self.missing {
            Some(reason) => Verdict::Skipped { skipped: reason.clone() },
            None => Verdict::of(&self.samples, needed, limit_s),
        }
    }
}

/// What a pattern needs that is not here.
fn missing(pattern: &Pattern) -> Option<String> {
    if let Some(program) = pattern.program().filter(|program| !machine::has_program(program)) {
        return Some(format!("{program} is not installed"));
    }
    if let Work::Limited(_, bytes) = pattern.work {
        return MemoryCgroup::new(bytes)
            .err()
            .map(|e| format!("no memory cgroup can be made: {e}"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::tests::sample;

    fn options() -> Options {
        Options { devices: vec!["hdd".into()], only: Vec::new(), full: false, rounds: 1 }
    }

    fn chosen(options: &Options) -> Vec<&'static str> {
        let place = Place::parse(&options.devices[0]).expect("it is in the catalogue");
        choose(options, &place).iter().map(|pattern| pattern.name).collect()
    }

    #[test]
    fn the_selection_is_short_whole_or_named() {
        let short = chosen(&options());
        assert!(short.contains(&"backward-64k") && short.contains(&"random-beside-4"));
        assert!(!short.contains(&"seq-4k"));
        assert_eq!(chosen(&Options { full: true, ..options() }).len(), PATTERNS.len());
        let only = vec!["tar".into(), "seq-4k".into()];
        assert_eq!(chosen(&Options { only, ..options() }), ["seq-4k", "tar"]);
    }

    #[test]
    fn wrong_names_are_told_before_anything_is_made() {
        let only = vec!["sideways".into()];
        let unknown = show(&Options { only, ..options() }, |_| Ok(()));
        assert!(matches!(unknown, Err(DemoError::UnknownPattern(name)) if name == "sideways"));
        let only = vec!["tac".into(), String::new()];
        let unnamed = show(&Options { only, ..options() }, |_| Ok(()));
        assert!(matches!(unnamed, Err(DemoError::UnnamedPattern)));
        let devices = vec!["hdd".into(), "drum".into()];
        let unknown = show(&Options { devices, ..options() }, |_| Ok(()));
        assert!(matches!(unknown, Err(DemoError::Device(_))));
    }

    #[test]
    fn a_device_that_is_named_twice_is_shown_once() {
        assert_eq!(each_once(&["net", "hdd", "net"].map(String::from)), ["net", "hdd"]);
    }

    #[test]
    fn different_bytes_are_an_error() {
        let pattern = find("seq-4k").expect("it is in the table");
        let mut series = Series::of(pattern);
        series.samples = vec![vec![sample(1.0)], vec![sample(1.0)], vec![sample(1.0)]];
        assert!(series.check_sums().is_ok());
        series.samples[2][0].outcome.checksum = 1;
        assert!(matches!(series.check_sums(), Err(DemoError::DifferentBytes(_))));
    }

    #[test]
    fn what_cannot_be_run_is_skipped_with_its_reason() {
        let mut series = Series::of(find("tac").expect("it is in the table"));
        series.missing = Some("tac is not installed".into());
        let skipped = "tac is not installed".to_owned();
        assert_eq!(series.verdict(1, None), Verdict::Skipped { skipped });
    }
}
