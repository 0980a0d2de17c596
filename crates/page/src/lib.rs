//! Shows tables and plots of the simulator and of measured devices on one HTML page. The page has
//! no scripts, fetches nothing and opens from the disk.
//!
//! ```text
//!   experiments::Table ----> published ---+
//!   sim::replay::Replay ----> replays ----+--> document (style, escaped text)
//!   analysis::Analysis -----> report -----+
//!                 sim::Plot --> plot (SVG)
//! ```

#[cfg(test)]
mod checks;
mod device;
mod document;
mod plot;
mod published;
mod replays;
mod report;
mod scale;

pub use device::{DeviceCurve, device_curve, device_svg};
pub use published::published;
pub use replays::replays;
pub use report::report;

/// A number with three significant digits.
pub fn short(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "-".into(),
        v if v >= 100.0 || (v.fract() == 0.0 && v < 1e6) => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 0.1 || v == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}
