//! What is remembered of how a volume's files were read: how many are read whole, what becomes of single misses,
//! where runs end, and what an access costs a forward stream.
//!
//! All but the last can be [written down](History), so that the first read of tomorrow is met with what today's have
//! shown.

use serde::{Deserialize, Serialize};

use super::completion_rate::CompletionRate;
use super::starts::Starts;
use super::survival::Curve;
use super::waits::Waits;

/// How a volume's files were read of late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    pub(super) completion_rate: CompletionRate,
    pub(super) starts: Starts,
    pub(super) curve: Curve,
    /// Not written down: they tell of the readers at work.
    #[serde(skip)]
    pub(super) waits: Waits,
}

impl History {
    /// What is left when nobody has read for a while. The next readers may read alike, or not: so nothing weighs more
    /// than some 33 runs do.
    #[must_use]
    pub fn rested(self) -> History {
        let (curve, starts) = (self.curve.bounded(), self.starts.bounded());
        History { curve, starts, waits: Waits::default(), ..self }
    }

    /// Whether reading can have led to it. What was written down may be damaged.
    pub(super) fn is_possible(&self) -> bool {
        self.completion_rate.is_possible() && self.starts.is_possible() && self.curve.is_possible()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A volume whose files of 100 pages are read to their ends.
    fn read_whole() -> History {
        let mut history = History::default();
        for _ in 0..40 {
            history.completion_rate.begin(100);
            history.completion_rate.end();
            history.starts.miss();
            history.starts.went_on(1);
            history.curve.pass(1, 100);
            history.waits.note(1.0);
        }
        history.curve.end(100);
        history
    }

    #[test]
    fn a_history_is_written_and_read_back_without_its_waits() {
        let history = read_whole();
        let text = serde_json::to_string(&history).expect("JSON");
        assert!(text.len() < 2_000, "it is small: {text}");
        let again: History = serde_json::from_str(&text).expect("it is read");
        assert!(again.is_possible());
        assert_eq!(again, History { waits: Waits::default(), ..history });
    }

    #[test]
    fn impossible_numbers_are_recognised() {
        let text = serde_json::to_string(&read_whole()).expect("JSON");
        let is_possible = |text: &str| {
            serde_json::from_str(text).is_ok_and(|history: History| history.is_possible())
        };
        assert!(is_possible(&text));
        for number in ["begun", "misses"] {
            let at = text.find(&format!("\"{number}\":")).expect("it is there") + number.len() + 3;
            for wrong in ["-", "1e9"] {
                assert!(
                    !is_possible(&format!("{}{wrong}{}", &text[..at], &text[at..])),
                    "{number}"
                );
            }
        }
        for curve in ["[[96,1.0,1.0,5]]", "[[3,-1.0,1.0,5]]", "[[3,1.0,1e39,5]]", "[[3,1.0]]"] {
            let at = text.find("[[").expect("a curve");
            let end = text.find("]]").expect("its end") + 2;
            assert!(!is_possible(&format!("{}{curve}{}", &text[..at], &text[end..])), "{curve}");
        }
    }

    #[test]
    fn a_rest_leaves_what_was_learned_and_lets_others_be_heard() {
        let mut history = History::default();
        (0..100_000).for_each(|_| history.curve.pass(1, 1000));
        history.starts.miss();
        (0..100).for_each(|_| history.starts.went_on(-1));
        assert!(!history.is_possible() && history.rested().is_possible());
        let mut rested = history.rested();
        assert_eq!(rested.waits, Waits::default());
        for history in [&mut history, &mut rested] {
            (0..40).for_each(|_| history.curve.end(100));
        }
        let cut = |history: &History| history.curve.cut(50, 50, 1000, 10.0);
        assert_eq!((cut(&history), cut(&rested)), (1000, 100));
    }
}
