//! Formats the results of tuning for people and for programs.

use linux::knob::Knob;
use linux::shell::quoted;
use serde_json::{Value, json};
use tune::measure::Measured;
use tune::model::GOOD_PERCENT;
use tune::tuning::Tuning;

use crate::invocation;

/// `is_used` tells that the result is about to be set or remembered.
pub(super) fn describe(tuning: &Tuning, is_used: bool) -> String {
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
                "  random reads of 4 KiB: median {:.0} us, 99th percentile {:.0} us",
                p50 * 1e6,
                p99 * 1e6
            ));
        }
    }
    lines.push(tuning.explanation());
    lines.extend(remarks(tuning));
    if !is_used {
        lines.extend(next_step(tuning));
    }
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

/// Remarks about the figures.
fn remarks(tuning: &Tuning) -> Vec<String> {
    let mut remarks = Vec::new();
    let target = tuning.target.given.display();
    if tuning.model.as_ref().is_some_and(|model| !model.is_good()) {
        remarks.push(format!(
            "The model is off by more than {GOOD_PERCENT:.0} %: --thorough may find a better one."
        ));
    }
    if let Some(measured) = &tuning.measured {
        if measured.disturbed {
            remarks.push(format!(
                "DISTURBED: other programs used the device or the processors (bowwave waited \
                 {:.0} % of the time for a processor). Repeat this when the machine is idle.",
                measured.wait_share * 100.0
            ));
        } else if measured.waited {
            remarks.push(
                "Other programs used the device or the processors at times; those figures were \
                 measured again."
                    .into(),
            );
        }
        if measured.is_estimate {
            remarks.push(
                "The window could not be set, so the curve is estimated from direct requests."
                    .into(),
            );
        }
        if is_mostly_zeros(measured) {
            remarks.push(format!(
                "Most of {target} is zeros, which thin and trimmed devices answer without their \
                 medium; name a file on it to be sure."
            ));
        }
    }
    remarks
}

fn is_mostly_zeros(measured: &Measured) -> bool {
    const MOSTLY: f64 = 0.9;
    measured.zero_share > MOSTLY
}

/// How to use the figures.
fn next_step(tuning: &Tuning) -> Option<String> {
    let (knob, choice) = (tuning.target.knob.as_ref()?, tuning.choice?);
    let (bowwave, target) = (invocation::as_root(), quoted(&tuning.target.given));
    if tuning.is_disturbed() || tuning.gains_little() || tuning.current_kb == Some(choice.kb) {
        return None;
    }
    if tuning.measured.as_ref().is_some_and(is_mostly_zeros) {
        return None;
    }
    let may_set = knob.is_writable();
    if tuning.measured.is_none() {
        let measure = format!("An administrator can measure it: {bowwave} tune {target}");
        return (!may_set).then_some(measure);
    }
    if !tuning.is_measured() {
        return None;
    }
    let is_recognised =
        !tuning.target.identity.is_size_only() && tuning.target.has_lasting_window();
    let can_be_remembered = tuning.profile().is_some() && is_recognised;
    let (when, options) = match can_be_remembered {
        true => ("now and at every boot", "--apply --persist"),
        false => ("now", "--apply"),
    };
    Some(format!(
        "{} set it {when}: {bowwave} tune {target} {options}\n\
         or only for now: echo {} | sudo tee {}",
        if may_set { "To" } else { "An administrator can" },
        choice.kb,
        knob.path().display()
    ))
}

pub(super) fn object(tuning: &Tuning) -> Value {
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
        "processor_wait_percent": measured.map(|m| m.wait_share * 100.0),
        "estimated": measured.map(|m| m.is_estimate),
        "curve": measured.map(|m| &m.curve),
        "errors_percent": tuning.model.as_ref().map(|model| &model.error_percent),
        "model": tuning.model.as_ref().map(|model| &model.spec),
        "explanation": tuning.explanation(),
    })
}

#[cfg(test)]
mod tests {
    use linux::identity::Identity;
    use linux::knob::Knob;
    use tune::choose::{Choice, Reason};
    use tune::target::Target;

    use super::*;

    fn tuning(disturbed: bool) -> Option<Tuning> {
        let knob = Knob::any()?;
        let target = Target {
            given: "/dev/sdz".into(),
            sources: Vec::new(),
            knob: Some(knob),
            disk: None,
            identity: Identity::Disk(Vec::new()),
        };
        Some(Tuning {
            target,
            current_kb: Some(128),
            formula_kb: None,
            measured: Some(Measured { disturbed, wait_share: 0.23, ..Measured::default() }),
            model: None,
            choice: Some(Choice { kb: 512, reason: Reason::Plateau, gain: Some(1.5) }),
            recovered: Default::default(),
        })
    }

    #[test]
    fn disturbed_figures_come_with_their_reason_and_without_a_command_that_sets_them() {
        let Some(tuning) = tuning(true) else {
            return eprintln!("skipped: no device has a window");
        };
        let text = describe(&tuning, false);
        assert!(text.contains("DISTURBED") && text.contains("waited 23 % of the time"), "{text}");
        assert!(!text.contains("echo") && !text.contains("multiplies"), "{text}");
        let refused = crate::commands::tune::refuse_disturbed(&tuning, "not set").unwrap_err();
        assert!(refused.to_string().starts_with("not set: other programs"), "{refused}");
        assert_eq!(object(&tuning)["processor_wait_percent"].as_f64().map(f64::round), Some(23.0));
    }

    #[test]
    fn a_better_window_comes_with_the_command_that_sets_it() {
        let Some(better) = tuning(false) else {
            return eprintln!("skipped: no device has a window");
        };
        let text = describe(&better, false);
        // No model was fitted that could be remembered.
        let commands = [" tune /dev/sdz --apply\n", "set it now: ", "echo 512 | sudo tee /sys"];
        assert!(commands.iter().all(|command| text.contains(command)), "{text}");
        assert!(!describe(&better, true).contains("sudo"), "it is about to be set");
        let right = Tuning { current_kb: Some(512), ..better };
        assert!(!describe(&right, false).contains("sudo"), "there is nothing to set");
    }

    #[test]
    fn a_small_gain_and_figures_of_no_medium_come_without_a_command_that_sets_it() {
        let of = |kb, gain, zero_share| {
            let mut tuning = tuning(false)?;
            tuning.choice = Some(Choice { kb, reason: Reason::Plateau, gain: Some(gain) });
            tuning.measured = Some(Measured { zero_share, ..Measured::default() });
            Some(describe(&tuning, false))
        };
        let Some(little) = of(512, 1.04, 0.0) else {
            return eprintln!("skipped: no device has a window");
        };
        assert!(
            little.contains("by 1.04, which is too little") && !little.contains("sudo"),
            "{little}"
        );
        assert!(of(512, 1.06, 0.0).is_some_and(|text| text.contains("sudo")));
        assert!(of(64, 0.99, 0.0).is_some_and(|text| text.contains("sudo")), "it saves memory");
        let zeros = of(512, 1.5, 1.0).expect("a device has a window");
        assert!(zeros.contains("is zeros") && !zeros.contains("sudo"), "{zeros}");
    }
}
