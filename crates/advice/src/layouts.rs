//! Where files may be on the device. On a disk, that decides what reading many of them costs. A trace does not tell,
//! but its durations may.

use sim::replay::Layout;

/// A layout explains the waiting in a trace if it simulates it within this factor. Within one layout, other places of
/// the files change a disk's waiting by a third; the models of device and kernel have errors of their own.
const EXPLAINS: f64 = 1.5;

/// The layouts that explain how long the reads of a trace took, the best one first; all, if none does or the trace does
/// not tell. `simulated` has the seconds of waiting for each layout.
pub(crate) fn plausible(simulated: &[(Layout, f64)], traced: Option<f64>) -> Vec<Layout> {
    let distance = |seconds: f64| scale(seconds, traced).map(|scale| scale.max(1.0 / scale));
    let explain = simulated.iter().filter_map(|(layout, s)| Some((*layout, distance(*s)?)));
    let mut explain: Vec<(Layout, f64)> = explain.collect();
    explain.sort_by(|a, b| a.1.total_cmp(&b.1));
    if explain.is_empty() {
        return vec![Layout::ByDirectory, Layout::AsTraced, Layout::Shuffled];
    }
    explain.into_iter().map(|(layout, _)| layout).collect()
}

/// How many times longer reads took than simulated; `None` if that does not explain them, or the trace does not tell.
pub(crate) fn scale(simulated: f64, traced: Option<f64>) -> Option<f64> {
    let scale = traced? / simulated;
    (1.0 / EXPLAINS..=EXPLAINS).contains(&scale).then_some(scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIMULATED: [(Layout, f64); 3] =
        [(Layout::AsTraced, 1.0), (Layout::ByDirectory, 4.0), (Layout::Shuffled, 4.4)];

    #[test]
    fn durations_tell_which_layouts_may_be() {
        let plausible = |traced| plausible(&SIMULATED, Some(traced));
        assert_eq!(plausible(1.1), [Layout::AsTraced]);
        assert_eq!(plausible(4.3), [Layout::Shuffled, Layout::ByDirectory]);
    }

    #[test]
    fn all_may_be_if_durations_tell_of_another_device_or_are_missing() {
        for traced in [None, Some(0.01), Some(2.0), Some(60.0)] {
            let layouts = plausible(&SIMULATED, traced);
            assert_eq!((layouts[0], layouts.len()), (Layout::ByDirectory, 3), "{traced:?}");
        }
    }
}
