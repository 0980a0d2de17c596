//! Advice for people.

use std::path::Path;

use advice::{Advice, Load, Prediction, Range, Remedy};
use linux::shell::quoted;

use super::ground::Ground;
use super::steps::Steps;
use crate::print::visible;

/// If the waits of the trace and of the simulator differ by more than this factor, the trace is of another device or
/// another setting.
const FITS: f64 = 1.5;

/// A difference of less than this share of the time does not matter.
const MATTERS: f64 = 0.05;

/// A load of several programs may be the start of one command if it reads at least so many files, and does so within the
/// time that `bowwave run --remember` notes.
const START_FILES: usize = 20;
const START_S: f64 = 30.0;

pub(super) fn describe(path: &Path, load: &Load, ground: &Ground, advice: &Advice) -> String {
    let mut lines = vec![about(path, load, ground), today(load, advice)];
    let mut is_advised = true;
    for (number, prediction) in advice.predictions.iter().enumerate() {
        lines.push(String::new());
        lines.push(format!("{}. {}", number + 1, headline(prediction, advice)));
        if prediction.remedy == Remedy::Leave {
            is_advised = false;
            continue;
        }
        lines.push(format!("   costs: {}", costs(prediction, load, advice)));
        // What does not surely help is shown, but not how to have it.
        if is_advised {
            let steps = Steps::of(&prediction.remedy, ground);
            lines.extend(commands("   apply: ", &steps.apply));
            lines.extend(commands("   undo:  ", &steps.undo));
        }
    }
    let notes = notes(load, ground, advice);
    if !notes.is_empty() {
        lines.push(String::new());
        lines.extend(notes);
    }
    lines.join("\n")
}

fn about(path: &Path, load: &Load, ground: &Ground) -> String {
    let count = |number: usize, one: &str, many: &str| match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    };
    format!(
        "{}: {} by {} on {}. Device {} ({}), read_ahead_kb {}, {} of memory.",
        visible(&path.display().to_string()),
        count(load.trace.records().len(), "operation", "operations"),
        count(load.trace.processes().len(), "process", "processes"),
        count(load.trace.files().len(), "file", "files"),
        visible(&ground.device.name),
        visible(&load.device.description),
        load.readahead_kb,
        bytes(load.memory_bytes),
    )
}

fn today(load: &Load, advice: &Advice) -> String {
    let Prediction { seconds, waited_s, ends_s, read_bytes, .. } = advice.today();
    let ends = match load.trace.processes().len() {
        1 => String::new(),
        _ => format!(" in all processes together, the last of which ends after {}", time(*ends_s)),
    };
    let idle = idle(advice)
        .map(|idle| format!(" Processes that hardly wait take {idle} of it."))
        .unwrap_or_default();
    format!(
        "Today: {}{ends}; {} of that waiting.{idle} The device reads {}; {} are needed.",
        time(seconds.expected),
        time(*waited_s),
        bytes(*read_bytes),
        bytes(advice.needed_bytes.saturating_sub(advice.cached_bytes)),
    )
}

/// How long processes take today that hardly wait, if there are any.
fn idle(advice: &Advice) -> Option<String> {
    let idle = time(advice.today().seconds.expected - advice.busy_s);
    (idle != time(0.0)).then_some(idle)
}

fn headline(prediction: &Prediction, advice: &Advice) -> String {
    let what = match &prediction.remedy {
        Remedy::Leave if advice.first().remedy == Remedy::Leave => {
            return "Leave it as it is: nothing surely saves a twentieth of the time of those who wait.".into();
        }
        Remedy::Leave => return "Leave it as it is.".into(),
        Remedy::Window { kib } => format!("Set read_ahead_kb to {kib}"),
        Remedy::Bowwave => "Use bowwave".into(),
        Remedy::DropBehind { processes } => {
            format!("Use bowwave, and drop pages behind {}", listed(processes))
        }
        Remedy::Remember => "Use bowwave, and have it remember how the program starts".into(),
    };
    format!("{what}: {}", gain(prediction, advice))
}

/// Names of processes, not too many.
fn listed(processes: &[String]) -> String {
    const MOST: usize = 4;
    let names: Vec<String> = processes.iter().take(MOST).map(|name| visible(name)).collect();
    match processes.len().saturating_sub(MOST) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// What is saved, in words.
fn gain(prediction: &Prediction, advice: &Advice) -> String {
    let Range { least, expected, most } = prediction.saved;
    let takes = time(prediction.seconds.expected);
    let times = advice.busy_s / (advice.busy_s - expected).max(1e-9);
    let rest = idle(advice).map_or("", |_| " where processes wait");
    if least > 0.0 {
        format!(
            "{takes}, saves {} ({} to {}); {times:.2} times as fast{rest}.",
            time(expected),
            time(least),
            time(most)
        )
    } else if most < 0.0 {
        format!("{takes}, loses {} ({} to {}).", time(-expected), time(-most), time(-least))
    } else if least == most {
        format!("{takes}, as long as today.")
    } else {
        format!(
            "{takes}; compared with today, anything from {} more to {} less is plausible.",
            time(-least),
            time(most)
        )
    }
}

fn costs(prediction: &Prediction, load: &Load, advice: &Advice) -> String {
    let read = match (prediction.read_bytes, advice.today().read_bytes) {
        (read, today) if read > today => format!("the device reads {} more", bytes(read - today)),
        (read, today) if read < today => format!("the device reads {} less", bytes(today - read)),
        _ => "the device reads as much".into(),
    };
    let unused = match prediction.unused_bytes {
        0 => "; nothing is read in vain".into(),
        unused => format!("; {} are read in vain", bytes(unused)),
    };
    let others = match prediction.remedy {
        Remedy::Window { kib } if kib > load.readahead_kb => format!(
            ". Other programs on this device read {kib} KiB at a time, too, also where they use one page only"
        ),
        Remedy::Window { .. } => {
            ". Other programs that read forward on this device wait more often".into()
        }
        Remedy::Remember => {
            ". The less a start reads of what the last one has read, and the more files have changed since, the less is saved".into()
        }
        _ => String::new(),
    };
    format!("{read}{unused}{others}.")
}

/// A line for each command, the first of which has the label; the others are indented by its 10 columns.
fn commands(label: &str, steps: &[(String, &'static str)]) -> Vec<String> {
    let labels = std::iter::once(label).chain(std::iter::repeat(""));
    let line = |(label, (command, what)): (&str, &(String, &'static str))| match (&**command, *what)
    {
        ("", what) => format!("{label:10}{what}"),
        (command, "") => format!("{label:10}{command}"),
        (command, what) => format!("{label:10}{command}  # {what}"),
    };
    labels.zip(steps).map(line).collect()
}

/// What the reader has to know about these figures.
pub(super) fn notes(load: &Load, ground: &Ground, advice: &Advice) -> Vec<String> {
    let of_trace = load.trace.notes().into_iter();
    let mut notes: Vec<String> = of_trace.map(|note| format!("Of the trace: {note}.")).collect();
    match advice.traced_s {
        None => notes.push(
            "The trace does not tell how long reads took. So nothing is known of pauses, of the places of files, and of what was in memory before: where much was, less is saved."
                .to_owned(),
        ),
        Some(traced) => notes.extend(fit(traced, advice.today())),
    }
    if advice.cached_bytes > 0 {
        notes.push(format!(
            "{} of {} were in memory when the trace was recorded; the figures assume that they are again.",
            bytes(advice.cached_bytes),
            bytes(advice.needed_bytes)
        ));
    }
    if !ground.device.is_measured {
        let target = match &ground.mount_point {
            Some(place) => quoted(place),
            None => "/dev/DISK".into(),
        };
        notes.push(format!(
            "Device {} is a description. For figures of your own: sudo bowwave tune {target} --persist",
            visible(&ground.device.name)
        ));
    }
    notes.extend(start(load, advice));
    notes
}

/// Whether the simulator explains how long reads took, as far as that matters.
fn fit(traced: f64, today: &Prediction) -> Option<String> {
    let simulated = today.waited_s;
    let factor = (traced / simulated.max(1e-9)).max(simulated / traced);
    let share = (traced - simulated).abs() / today.seconds.expected;
    (factor > FITS && share > MATTERS).then(|| {
        format!(
            "When the trace was recorded, its reads waited {}; simulated, {}. Another device, another window or other programs were at work then. The figures here are for this device alone.",
            time(traced),
            time(simulated)
        )
    })
}

/// What was not tried, as several programs read: what an earlier start of all of them would have taught.
fn start(load: &Load, advice: &Advice) -> Option<String> {
    let (first, last) = (load.trace.records().first()?, load.trace.records().last()?);
    let took_s = (last.at - first.at) as f64 * 1e-9;
    let looks_like_one = load.trace.files().len() >= START_FILES && took_s <= START_S;
    let helps_nothing = advice.first().remedy == Remedy::Leave && advice.today().waited_s > 0.0;
    let is_tried = advice.predictions.iter().any(|it| it.remedy == Remedy::Remember);
    (looks_like_one && helps_nothing && !is_tried).then(|| {
        "If one command has started all these programs, and they read the same each time, try this twice; its effect cannot be predicted: sudo bowwave run --remember NAME -- COMMAND"
            .to_owned()
    })
}

/// Seconds with a unit, three digits.
fn time(seconds: f64) -> String {
    // Adding zero makes 0 of -0.
    match seconds.max(0.0) + 0.0 {
        s if s >= 100.0 => format!("{s:.0} s"),
        s if s >= 10.0 => format!("{s:.1} s"),
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.0} ms", s * 1e3),
        s => format!("{:.0} us", s * 1e6),
    }
}

fn bytes(count: u64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let count = count as f64;
    let unit = units.into_iter().find(|(size, _)| count >= *size);
    unit.map_or(format!("{count:.0} bytes"), |(size, name)| {
        let value = count / size;
        let digits = usize::from(value < 100.0);
        format!("{value:.digits$} {name}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        assert_eq!(
            [-0.0, 0.0004, 0.25, 1.5, 12.34, 345.6].map(time),
            ["0 us", "400 us", "250 ms", "1.50 s", "12.3 s", "346 s"]
        );
        let counts = [17, 4096, 1_500_000, 345_600_000, 4_000_000_000];
        assert_eq!(counts.map(bytes), ["17 bytes", "4.1 kB", "1.5 MB", "346 MB", "4.0 GB"]);
    }

    #[test]
    fn durations_of_another_device_are_told() {
        let today = |waited_s| Prediction {
            remedy: Remedy::Leave,
            seconds: Range { expected: 2.0, ..Range::default() },
            saved: Range::default(),
            waited_s,
            ends_s: 2.0,
            read_bytes: 0,
            unused_bytes: 0,
        };
        assert_eq!(fit(1.0, &today(1.2)), None);
        assert_eq!(fit(0.05, &today(0.0)), None, "that is memory");
        assert!(fit(0.01, &today(1.2)).is_some() && fit(9.0, &today(0.0)).is_some());
    }
}
