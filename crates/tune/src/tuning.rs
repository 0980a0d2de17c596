//! Tunes one target: from its path to a choice with its explanation.

use linux::knob::{self, Borrowed, Knob, KnobError, Recovery};
use linux::provenance;

use crate::choose::{self, Choice, Reason};
use crate::formula;
use crate::measure::{self, Effort, MeasureError, Measured, Report, Stop};
use crate::model::{self, Model};
use crate::profile::{Profile, Tuned};
use crate::target::Target;

/// Assumed if the kernel does not report the memory: no bound.
const UNKNOWN_MEMORY: u64 = u64::MAX;

/// A larger window that multiplies throughput by less is not proposed: all readers of the device would get it. `advise`
/// proposes nothing for less, either.
const LEAST_GAIN: f64 = 1.05;

/// The results of tuning a target.
#[derive(Debug)]
pub struct Tuning {
    /// The target.
    pub target: Target,
    /// The current window in KiB.
    pub current_kb: Option<u64>,
    /// The window in KiB that a disk's capacity suggests.
    pub formula_kb: Option<u64>,
    /// The measurement; `None` if the target may not be read.
    pub measured: Option<Measured>,
    /// The model; `None` if too little was measured.
    pub model: Option<Model>,
    /// The window to set; `None` without a reason for any.
    pub choice: Option<Choice>,
    /// Windows that an earlier, killed run left changed: those that this run restored, and why others stay.
    pub recovered: Recovery,
}

/// Why a target could not be tuned.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// Measuring failed.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// The window could not be borrowed.
    #[error(transparent)]
    Knob(#[from] KnobError),
}

impl Tuning {
    /// Measures the target and chooses a window. The window is the same
    /// afterwards, however this ends.
    ///
    /// # Errors
    /// See [`TuneError`].
    pub fn of(
        target: Target,
        effort: &Effort,
        stop: &Stop,
        report: &mut Report<'_>,
    ) -> Result<Tuning, TuneError> {
        let may_set = target.knob.as_ref().is_some_and(Knob::is_writable);
        let recovered = if may_set { knob::recover() } else { Recovery::default() };
        let window = match &target.knob {
            Some(knob) if may_set => Some(Borrowed::take(knob.clone())?),
            _ => None,
        };
        let current_kb = match (&window, &target.knob) {
            (Some(window), _) => Some(window.was_kb()),
            (None, Some(knob)) => knob.kb().ok(),
            (None, None) => None,
        };
        let bytes = target.device_bytes().unwrap_or_else(|| target.readable_bytes());
        let measured = match target.sources.is_empty() {
            true => None,
            false => Some(measure::measure(&target, window.as_ref(), effort, stop, report)?),
        };
        drop(window);
        let description = format!(
            "{}, measured on {} under Linux {}",
            target.given.display(),
            provenance::date(),
            provenance::kernel()
        );
        let model = measured.as_ref().and_then(|m| model::model(m, bytes, &description));
        let formula_kb = target.device_bytes().map(formula::readahead_kb);
        let memory = linux::meminfo::total_bytes().unwrap_or(UNKNOWN_MEMORY);
        let chosen = measured.as_ref().zip(model.as_ref()).and_then(|(measured, model)| {
            let is_positional = measured.is_positional();
            choose::choose(&measured.curve, &model.cost(), is_positional, memory, current_kb)
        });
        let by_formula = |bytes| choose::by_formula(bytes, memory);
        let choice = chosen.or_else(|| target.device_bytes().map(by_formula));
        Ok(Tuning { target, current_kb, formula_kb, measured, model, choice, recovered })
    }

    /// The profile to remember; `None` if too little was measured.
    pub fn profile(&self) -> Option<Profile> {
        let (measured, model) = (self.measured.as_ref()?, self.model.as_ref()?);
        Some(Profile {
            spec: model.spec.clone(),
            tuned: Tuned {
                target: self.target.given.clone(),
                date: provenance::date(),
                kernel: provenance::kernel(),
                chosen_kb: self.choice?.kb,
                previous_kb: self.current_kb,
                fit_error_percent: model.rms_percent(),
                disturbed: measured.disturbed,
                identity: self.target.identity.clone(),
                curve: measured.curve.clone(),
            },
        })
    }

    /// Whether other programs spoilt the figures, so that nothing should be set or remembered.
    pub fn is_disturbed(&self) -> bool {
        self.measured.as_ref().is_some_and(|measured| measured.disturbed)
    }

    /// Whether the choice is more than what the device's capacity suggests.
    pub fn is_measured(&self) -> bool {
        self.choice.is_some_and(|choice| choice.reason != Reason::Formula)
    }

    /// Explains the choice in a few sentences.
    pub fn explanation(&self) -> String {
        let Some(choice) = self.choice else {
            return "Too little could be measured to choose a window, and there is no device \
                    size to suggest one. Name a larger file on it."
                .into();
        };
        format!("{} {}", self.reason(choice), self.comparison(choice))
    }

    fn reason(&self, Choice { kb, reason, .. }: Choice) -> String {
        match reason {
            Reason::Plateau => format!(
                "{kb} KiB is the smallest window whose sequential throughput is within 1.5 % of that \
                 of larger windows."
            ),
            Reason::Seeks => format!(
                "A sequential reader alone needs less. But parallel readers cost a seek per window, \
                 and {kb} KiB is what the disk reads in the time of a seek."
            ),
            Reason::Unmeasured => format!(
                "Throughput grows up to the largest window measured; for larger ones, the file was too small or \
                 the time too short (--thorough takes more). {kb} KiB is that window or, if larger, the \
                 current one: this is too little to choose a smaller one."
            ),
            Reason::Faults => format!(
                "Larger windows would speed up a sequential reader. But beyond {kb} KiB, a random \
                 fault in a mapped file would wait longer than 40 ms for its window."
            ),
            Reason::Memory => format!(
                "Larger windows would speed up a sequential reader. But with windows above {kb} KiB, \
                 several hundred streams would not fit into this machine's memory."
            ),
            Reason::Formula if self.target.sources.is_empty() => format!(
                "Nothing was measured because you may not read {} (permission denied); {kb} KiB is what \
                 the device's size suggests (the formula proposed for the kernel in 2011).",
                self.target.given.display()
            ),
            Reason::Formula => format!(
                "Too little could be measured: name a larger file on it, or give it more time. {kb} KiB is \
                 what the device's size suggests (the formula proposed for the kernel in 2011)."
            ),
        }
    }

    fn comparison(&self, choice: Choice) -> String {
        let current = self.current_kb.map_or("unknown".into(), |kb| format!("{kb} KiB"));
        let formula = match self.formula_kb {
            Some(kb) if choice.reason != Reason::Formula => {
                format!(", and the formula of 2011 suggests {kb} KiB")
            }
            _ => String::new(),
        };
        let gain = match choice.gain.filter(|_| !self.is_disturbed()) {
            _ if self.current_kb == Some(choice.kb) => "; it stays".into(),
            Some(gain) => format!("; the change multiplies sequential throughput by {gain:.2}"),
            None => String::new(),
        };
        let little = if self.gains_little() { ", which is too little to set it for" } else { "" };
        format!("The window is {current} now{formula}{gain}{little}.")
    }

    /// Whether a larger window gains too little for a change. One that saves parallel readers seeks does not show that
    /// in the throughput of a single one.
    pub fn gains_little(&self) -> bool {
        let Some(Choice { kb, gain: Some(gain), reason }) = self.choice else { return false };
        let is_larger = Some(kb) > self.current_kb && reason != Reason::Seeks;
        is_larger && gain < LEAST_GAIN && !self.is_disturbed()
    }
}

#[cfg(test)]
mod tests {
    use linux::identity::Identity;

    use super::*;

    fn tuning(choice: Option<Choice>) -> Tuning {
        let target = Target {
            given: "/dev/sdz".into(),
            sources: Vec::new(),
            knob: None,
            disk: None,
            identity: Identity::Disk(Vec::new()),
        };
        Tuning {
            target,
            current_kb: Some(128),
            formula_kb: Some(1024),
            measured: None,
            model: None,
            choice,
            recovered: Recovery::default(),
        }
    }

    #[test]
    fn a_choice_is_explained() {
        let choice = |kb, reason, gain| tuning(Some(Choice { kb, reason, gain })).explanation();
        let text = choice(512, Reason::Plateau, Some(1.07));
        assert_eq!(text.matches(". ").count(), 1, "{text}");
        assert!(text.ends_with(
            "The window is 128 KiB now, and the formula of 2011 suggests 1024 KiB; the change \
             multiplies sequential throughput by 1.07."
        ));
        assert!(choice(128, Reason::Plateau, Some(1.0)).ends_with("; it stays."));
        let text = choice(1024, Reason::Formula, None);
        assert!(text.ends_with("The window is 128 KiB now."), "{text}");
        assert!(text.contains("you may not read /dev/sdz (permission denied)"), "{text}");
        let text = choice(1024, Reason::Unmeasured, None);
        assert!(text.contains("1024 KiB is that window or, if larger, the current one"));
        assert!(tuning(None).explanation().contains("larger file"));
    }

    #[test]
    fn a_larger_window_that_gains_little_is_not_worth_a_change_and_a_smaller_one_saves_memory() {
        let of = |kb, reason, gain| tuning(Some(Choice { kb, reason, gain: Some(gain) }));
        let choice = |kb, gain| of(kb, Reason::Plateau, gain);
        let little = choice(512, 1.04);
        assert!(
            little.gains_little() && little.explanation().ends_with("too little to set it for.")
        );
        assert!(!choice(512, 1.06).gains_little() && !choice(64, 0.99).gains_little());
        assert!(!of(512, Reason::Seeks, 1.0).gains_little(), "it is for parallel readers");
    }

    #[test]
    fn disturbed_figures_promise_no_gain() {
        let mut tuning = tuning(Some(Choice { kb: 512, reason: Reason::Plateau, gain: Some(1.6) }));
        tuning.measured = Some(Measured { disturbed: true, ..Measured::default() });
        assert!(!tuning.explanation().contains("multiplies"), "{}", tuning.explanation());
    }

    #[test]
    fn without_a_measurement_nothing_is_remembered() {
        assert_eq!(tuning(None).profile(), None);
    }
}
