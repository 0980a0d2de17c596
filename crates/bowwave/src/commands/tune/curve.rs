//! Shows the curve in the terminal and on a page.

use page::{DeviceCurve, short};
use tune::tuning::Tuning;

/// Length of the longest bar in characters.
const WIDTH: f64 = 40.0;

/// One line per window: measured throughput, a bar, the model's error.
pub(super) fn drawn(tuning: &Tuning) -> String {
    let shown = shown(tuning);
    let most = shown.points.iter().map(|(_, mb_s, _)| *mb_s).fold(f64::MIN_POSITIVE, f64::max);
    let line = |(kb, mb_s, model): &(u64, f64, Option<f64>)| {
        let bar = "#".repeat((mb_s / most * WIDTH).round() as usize);
        let error = model.map_or_else(String::new, |model| {
            format!("  model {} ({:+.1} %)", short(model), (model / mb_s - 1.0) * 100.0)
        });
        let mark = if *kb == shown.chosen_kb { "<==" } else { "" };
        format!("{kb:>6} KiB {:>8} MB/s |{bar:<40}|{error} {mark}", short(*mb_s)).trim_end().into()
    };
    let lines: Vec<String> = shown.points.iter().map(line).collect();
    lines.join("\n")
}

/// The curve as a page shows it.
pub(super) fn shown(tuning: &Tuning) -> DeviceCurve {
    let curve = tuning.measured.as_ref().map_or(&[][..], |measured| &measured.curve);
    let errors = tuning.model.as_ref().map_or(&[][..], |model| &model.error_percent);
    let modelled = |index: usize, mb_s: f64| errors.get(index).map(|e| mb_s * (1.0 + e / 100.0));
    let points = curve.iter().enumerate();
    let description = tuning.model.as_ref().map(|model| model.spec.description.clone());
    DeviceCurve {
        title: tuning.target.given.display().to_string(),
        sentences: description.into_iter().chain([tuning.explanation()]).collect(),
        points: points.map(|(i, p)| (p.readahead_kb, p.mb_s, modelled(i, p.mb_s))).collect(),
        chosen_kb: tuning.choice.map_or(0, |choice| choice.kb),
    }
}
