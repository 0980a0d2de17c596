//! Data of plots: series of points, with what the axes mean.

/// One axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// What is on it, with its unit.
    pub label: String,
    /// Whether equal distances are equal factors.
    pub is_log: bool,
}

impl Axis {
    /// An axis of equal steps.
    pub fn linear(label: &str) -> Self {
        Axis { label: label.to_owned(), is_log: false }
    }

    /// An axis of equal factors.
    pub fn log(label: &str) -> Self {
        Axis { label: label.to_owned(), is_log: true }
    }
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Simulated: dots joined by a line.
    Line,
    /// Simulated: dots that are not joined, as several streams made them in turn.
    Dots,
    /// Published: rings.
    Rings,
    /// Amounts, each of what lies between a value and twice that value: bars.
    Bins,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The policy, as a rule; what was published and what was simulated have the same name.
    pub name: String,
    /// In the order they are joined.
    pub points: Vec<(f64, f64)>,
    /// How it is drawn.
    pub style: Style,
}

impl Series {
    /// What the simulator found.
    pub fn simulated(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Series { name: name.into(), points, style: Style::Line }
    }

    /// What the simulator found, of several streams at once.
    pub fn scattered(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Series { name: name.into(), points, style: Style::Dots }
    }

    /// Amounts in bins: each point is where a bin begins, and how much is in it. A bin ends at twice its beginning.
    pub fn binned(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Series { name: name.into(), points, style: Style::Bins }
    }

    /// What was published.
    pub fn published(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Series { name: name.into(), points, style: Style::Rings }
    }
}

/// One plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// To the right.
    pub x: Axis,
    /// Upward.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
}
