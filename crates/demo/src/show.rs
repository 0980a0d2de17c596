//! Runs the demonstration: all devices, rounds, patterns and settings.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::bench::{Bench, Sample, Setting};
use crate::cgroup::MemoryCgroup;
use crate::error::DemoError;
use crate::files;
use crate::leftovers;
use crate::machine;
use crate::recordings::Recordings;
use crate::report::Report;
use crate::row::{Row, Verdict};
use crate::small;
use crate::stop::Stop;
use crate::target::{Place, Target};
use crate::trade_off::TradeOff;
use patterns::{PATTERNS, Pattern, Work, find};

/// What to show.
#[derive(Clone, Debug)]
pub struct Options {
    /// Devices: names of the lab, TOML files, or `local[:FOLDER]`.
    pub devices: Vec<String>,
    /// Patterns by name; the short selection if empty.
    pub only: Vec<String>,
    /// Every pattern.
    pub full: bool,
    /// Runs of each pattern with each setting; the report shows medians.
    pub rounds: u32,
    /// Begin no pattern later than this after the start, and repeat no run in the second half of this time. The report
    /// names the patterns that are left out.
    pub begin_within: Option<Duration>,
    /// A folder for recordings of the patterns' runs under bowwave.
    pub record: Option<PathBuf>,
    /// How to start bowwave as root, for suggested commands.
    pub invoked_as: String,
    /// Why bowwave cannot manage reads on this machine, if so. Then only the stock kernel is shown.
    pub why_not_able: Option<String>,
    /// For tests: microseconds by which modelled devices reply late on average.
    pub inject_late_us: f64,
}

/// Time within which patterns of the short selection begin. The last one takes less than a minute on a busy machine.
pub const SHORT: Duration = Duration::from_secs(150);

/// Runs everything. Calls `on_report` with each piece when it is finished.
///
/// # Errors
/// See [`DemoError`]. Everything that was made is removed in any case.
pub fn show(
    options: &Options,
    mut on_report: impl FnMut(Report) -> io::Result<()>,
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
    places.iter().try_for_each(Place::check)?;
    // A daemon that manages certain paths does not manage those of a future lab.
    let is_any_local = places.iter().any(|place| matches!(place, Place::Local(_)));
    if let Some(daemon) = linux::daemons::running().find(|it| it.manages_all || is_any_local) {
        return Err(DemoError::DaemonRuns(daemon.pid));
    }
    if let Some(folder) = &options.record {
        fs::create_dir_all(folder).map_err(DemoError::file(folder))?;
    }
    let mut stage = Stage {
        options,
        stop: Stop::on_signals().map_err(DemoError::file("pipe"))?,
        begin_until: options.begin_within.map(|within| Instant::now() + within),
        repeat_until: options.begin_within.map(|within| Instant::now() + within / 2),
        can_manage: true,
        on_report: &mut on_report,
    };
    // Nobody may be listening.
    let folders: Vec<&Path> = places.iter().filter_map(Place::own_folder).collect();
    leftovers::clear(&folders, |sentence| drop(writeln!(io::stderr(), "bowwave: {sentence}")));
    if let Some(reason) = &options.why_not_able {
        stage.can_manage = false;
        stage.tell(Report::Note(format!(
            "Bowwave cannot run here: {reason}. What follows is the stock kernel alone."
        )))?;
    }
    for (device, place) in devices.into_iter().zip(places) {
        let shown = stage.show_one(device, &place);
        // A signal also ends the tools that make a lab, whose messages are then not the reason.
        shown.map_err(|e| if stage.stop.is_asked_for() { DemoError::Stopped } else { e })?;
    }
    Ok(())
}

fn is_show(name: &str) -> bool {
    small::SHOWS.iter().any(|(show, _)| *show == name)
}

/// What all devices have in common.
struct Stage<'a> {
    options: &'a Options,
    stop: Stop,
    begin_until: Option<Instant>,
    repeat_until: Option<Instant>,
    /// Whether bowwave can run here.
    can_manage: bool,
    on_report: &'a mut dyn FnMut(Report) -> io::Result<()>,
}

impl Stage<'_> {
    fn tell(&mut self, report: Report) -> Result<(), DemoError> {
        (self.on_report)(report).map_err(DemoError::Output)
    }

    fn is_time_over(&self) -> bool {
        self.begin_until.is_some_and(|until| Instant::now() > until)
    }

    /// Runs the patterns, then the tables of a small machine, each on a separate device, so that the files of one do
    /// not change the positions of the others.
    fn show_one(&mut self, device: &str, place: &Place) -> Result<(), DemoError> {
        let options = self.options;
        let is_named = |name: &str| options.only.iter().any(|only| only == name);
        let is_wanted = |name: &str| is_named(name) || (options.full && options.only.is_empty());
        let on_small_machine = small::Wanted {
            drop_behind: is_wanted("drop-behind"),
            thrash: is_wanted("thrash"),
            full: options.full,
            rounds: options.rounds,
        };
        let session = Session::new(device, &choose(options, place), options.rounds);
        let heading = session.heading();
        self.tell(heading)?;
        session.run(place, self)?;
        if !on_small_machine.is_nothing() {
            for section in on_small_machine.show(device, place, &self.stop)? {
                self.tell(Report::Section { device: device.into(), section })?;
            }
        }
        Ok(())
    }
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
            options.full || pattern.is_in_short(is_rotational)
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
    /// Why it cannot run here, if so.
    missing: Option<String>,
}

impl Session {
    fn new(device: &str, patterns: &[&'static Pattern], rounds: u32) -> Self {
        let series = patterns.iter().map(|pattern| Series::of(pattern)).collect();
        Session { device: device.into(), series, rounds }
    }

    fn heading(&self) -> Report {
        let is_timed = |series: &Series| series.pattern.bytes_needed().is_some();
        Report::Device {
            device: self.device.clone(),
            rounds: self.rounds,
            has_rows: self.series.iter().any(is_timed),
        }
    }

    /// Runs one pattern after the other, and shows each after all its rounds.
    fn run(mut self, place: &Place, stage: &mut Stage<'_>) -> Result<(), DemoError> {
        if self.series.is_empty() {
            return Ok(());
        }
        let bar = self.progress();
        bar.set_message("making the device");
        let target = place.open(stage.options.inject_late_us)?;
        let state = leftovers::temporary_folder().map_err(DemoError::file("temporary folder"))?;
        let recordings = stage.options.record.as_deref();
        let recordings = recordings.map(|folder| Recordings { folder, device: &self.device });
        let mut left_out = Vec::new();
        for series in &mut self.series {
            if stage.is_time_over() {
                left_out.push(series.pattern.name);
                continue;
            }
            if series.missing.is_none() {
                bar.set_message(format!("{}, writing files", series.pattern.name));
                target.set_fast(true)?;
                files::prepare(&target.folder(), series.pattern.files, &stage.stop)?;
                target.set_fast(false)?;
                let bench = Bench {
                    target: &target,
                    state: state.path(),
                    recordings,
                    stop: &stage.stop,
                    repeat_until: stage.repeat_until,
                };
                for _ in 0..self.rounds {
                    series.run(&bench, stage.can_manage, &bar)?;
                }
                series.check_sums()?;
            }
            let report = series.report(&self.device, &target);
            bar.suspend(|| stage.tell(report))?;
        }
        bar.finish_and_clear();
        if left_out.is_empty() {
            return Ok(());
        }
        stage.tell(Report::Note(format!(
            "Left out, as the time is up: {}. To see: {} demo --device {} --only {}",
            left_out.join(", "),
            stage.options.invoked_as,
            self.device,
            left_out.join(",")
        )))
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
}

impl Series {
    fn of(pattern: &'static Pattern) -> Self {
        let settings = match pattern.work {
            Work::Beside | Work::BesideWalk(_) => TradeOff::SETTINGS,
            _ => Row::SETTINGS,
        };
        let samples = vec![Vec::new(); settings.len()];
        Series { pattern, settings, samples, missing: missing(pattern) }
    }

    /// Runs one round of all settings. Each round begins with the next setting, since a run is not quite independent of
    /// the one before it.
    fn run(
        &mut self,
        bench: &Bench<'_>,
        can_manage: bool,
        bar: &ProgressBar,
    ) -> Result<(), DemoError> {
        let rounds_done = self.samples[0].len();
        for turn in 0..self.settings.len() {
            let index = (rounds_done + turn) % self.settings.len();
            let setting = self.settings[index];
            if setting == Setting::Bowwave && !can_manage {
                continue;
            }
            bar.set_message(format!("{}, {setting}", self.pattern.name));
            self.samples[index].push(bench.sample(self.pattern, setting)?);
            bar.inc(1);
        }
        Ok(())
    }

    /// Checks that all settings have read the same bytes.
    fn check_sums(&self) -> Result<(), DemoError> {
        let mut sums = self.samples.iter().flatten().map(|sample| sample.outcome.checksum);
        let first = sums.next();
        if sums.all(|sum| Some(sum) == first) {
            return Ok(());
        }
        Err(DemoError::DifferentBytes(self.pattern.name.into()))
    }

    fn report(&self, device: &str, target: &Target) -> Report {
        let pattern = self.pattern.name.to_owned();
        match self.pattern.bytes_needed() {
            Some(needed) => Report::Row(Row {
                device: device.into(),
                pattern,
                verdict: self.verdict(needed, target.limit_seconds(needed)),
            }),
            None => Report::TradeOff {
                device: device.into(),
                pattern,
                trade_off: TradeOff::of(&self.samples),
            },
        }
    }

    fn verdict(&self, needed: u64, limit_s: Option<f64>) -> Verdict<crate::row::Figures> {
        match &self.missing {
            Some(reason) => Verdict::Skipped { skipped: reason.clone() },
            None => Verdict::of(&self.samples, needed, limit_s),
        }
    }
}

/// What a pattern needs but is missing here.
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
        Options {
            devices: vec!["hdd".into()],
            only: Vec::new(),
            full: false,
            rounds: 1,
            record: None,
            begin_within: None,
            invoked_as: "bowwave".into(),
            why_not_able: None,
            inject_late_us: 0.0,
        }
    }

    fn chosen(options: &Options) -> Vec<&'static str> {
        let place = Place::parse(&options.devices[0]).expect("it is in the catalogue");
        choose(options, &place).iter().map(|pattern| pattern.name).collect()
    }

    #[test]
    fn the_selection_is_short_whole_or_named() {
        let short = chosen(&options());
        assert!(short.contains(&"backward-64k") && short.contains(&"streams-16-4k"));
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
