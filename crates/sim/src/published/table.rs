//! A table: published figures beside simulated ones.

/// How a simulated figure relates to the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It has to be the same, to the last digit.
    Exact,
    /// An unknown of the experiment was chosen to bring it near.
    Calibrated,
    /// It follows from what other figures were calibrated to.
    Prediction,
}

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The row, as the published table names it.
    pub row: String,
    /// The policy or elevator: the column.
    pub policy: String,
    /// `s`, `pages`, `MB/s` ...
    pub unit: &'static str,
    /// The published figure, if there is one.
    pub published: Option<f64>,
    /// The simulator's.
    pub simulated: f64,
    /// Whether it was calibrated.
    pub kind: Kind,
}

impl Figure {
    /// Simulated over published, less one.
    pub fn error(&self) -> Option<f64> {
        self.published.filter(|published| *published != 0.0).map(|p| self.simulated / p - 1.0)
    }
}

/// A published table with what the simulator makes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// As users type it.
    pub name: &'static str,
    /// What was measured, by whom and when.
    pub title: String,
    /// What the sources do not tell, and was assumed.
    pub assumptions: Vec<String>,
    /// The figures, row by row.
    pub figures: Vec<Figure>,
    /// What the table was to show, and whether it does.
    pub verdicts: Vec<Verdict>,
}

/// One thing a table was to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// In a sentence.
    pub claim: String,
    /// Whether it holds.
    pub holds: bool,
}

impl Verdict {
    pub(super) fn new(claim: impl Into<String>, holds: bool) -> Self {
        Verdict { claim: claim.into(), holds }
    }
}
