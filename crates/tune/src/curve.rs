//! Throughput by read-ahead size, and where that curve's plateau begins.

use serde::{Deserialize, Serialize};

/// One point of a curve: the throughput of a sequential reader with this setting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The setting, in KiB.
    pub readahead_kb: u64,
    /// Throughput in MB/s (10^6 bytes).
    pub mb_s: f64,
}

/// The plateau begins at the smallest size that reaches this share of the median of all larger
/// sizes. The curves of 2011 came without a rule. This share finds every size marked in them; 98 %
/// and 99 % do not.
const PLATEAU_SHARE: f64 = 0.985;

/// The plateau also reaches this share of the best throughput. If throughput falls again after a
/// peak, the median of larger sizes says little.
const SHARE_OF_BEST: f64 = 0.97;

/// The point where the plateau begins, for points sorted by size; `None` without points. `margin` is added to the share
/// of larger sizes that it must reach.
pub fn plateau(curve: &[Point], margin: f64) -> Option<Point> {
    let least = SHARE_OF_BEST * best(curve);
    let share = PLATEAU_SHARE + margin;
    let begins = |index: &usize| {
        let larger = linux::median(curve[index + 1..].iter().map(|point| point.mb_s));
        let mb_s = curve[*index].mb_s;
        mb_s >= least && larger.is_none_or(|larger| mb_s >= share * larger)
    };
    (0..curve.len()).find(begins).map(|index| curve[index])
}

/// The best throughput of a curve, in MB/s.
pub fn best(curve: &[Point]) -> f64 {
    curve.iter().map(|point| point.mb_s).fold(0.0, f64::max)
}

/// Throughput at a size, interpolated between its neighbours on the curve; beyond the ends, that of
/// the last point.
pub fn at(curve: &[Point], readahead_kb: u64) -> Option<f64> {
    let above = curve.iter().find(|point| point.readahead_kb >= readahead_kb);
    let below = curve.iter().rev().find(|point| point.readahead_kb <= readahead_kb);
    let (below, above) = (below.or(above)?, above.or(below)?);
    if above.readahead_kb == below.readahead_kb {
        return Some(below.mb_s);
    }
    let log = |kb: u64| (kb.max(1) as f64).log2();
    let (from, to) = (log(below.readahead_kb), log(above.readahead_kb));
    Some(below.mb_s + (above.mb_s - below.mb_s) * (log(readahead_kb) - from) / (to - from))
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Record {
        device: String,
        readahead_kb: u64,
        mb_per_s_median: f64,
        published_plateau: u8,
    }

    /// The published curves by device, each with the size marked in it.
    pub(crate) fn published() -> Vec<(String, Vec<Point>, u64)> {
        let text = include_str!("../../../experiments/device-curves-2011.csv");
        let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
        let records: Vec<Record> = reader.deserialize().collect::<Result<_, _>>().expect("valid");
        let curve = |of: &[Record]| {
            let point =
                |r: &Record| Point { readahead_kb: r.readahead_kb, mb_s: r.mb_per_s_median };
            let marked = of.iter().find(|r| r.published_plateau == 1).expect("one is marked");
            (of[0].device.clone(), of.iter().map(point).collect(), marked.readahead_kb)
        };
        records.chunk_by(|a, b| a.device == b.device).map(curve).collect()
    }

    #[test]
    fn the_plateau_begins_where_the_published_curves_are_marked() {
        for (device, curve, marked) in published() {
            assert_eq!(
                plateau(&curve, 0.0).map(|point| point.readahead_kb),
                Some(marked),
                "{device}"
            );
        }
    }

    #[test]
    fn throughput_between_two_sizes_is_interpolated() {
        let curve: Vec<Point> = [(4, 10.0), (16, 20.0)]
            .map(|(readahead_kb, mb_s)| Point { readahead_kb, mb_s })
            .to_vec();
        assert_eq!(
            [1, 4, 8, 16, 99].map(|kb| at(&curve, kb).unwrap_or(0.0)),
            [10.0, 10.0, 15.0, 20.0, 20.0]
        );
        assert_eq!(at(&[], 4), None);
    }

    #[test]
    fn with_a_margin_the_larger_of_two_close_sizes_is_chosen() {
        let close: Vec<Point> = [(256, 73.4), (512, 74.4), (1024, 74.5)]
            .map(|(readahead_kb, mb_s)| Point { readahead_kb, mb_s })
            .to_vec();
        let chosen = |margin| plateau(&close, margin).map(|point| point.readahead_kb);
        assert_eq!((chosen(0.0), chosen(0.003)), (Some(256), Some(512)));
    }

    #[test]
    fn a_flat_curve_needs_no_read_ahead() {
        let flat: Vec<Point> =
            [4, 16, 64].map(|readahead_kb| Point { readahead_kb, mb_s: 30.0 }).to_vec();
        assert_eq!(plateau(&flat, 0.0).map(|point| point.readahead_kb), Some(4));
        assert_eq!(plateau(&[], 0.0), None);
    }

    #[test]
    fn a_curve_that_falls_again_is_cut_at_its_peak() {
        let curve: Vec<Point> = [(128, 680.0), (1024, 942.0), (15_360, 380.0)]
            .map(|(readahead_kb, mb_s)| Point { readahead_kb, mb_s })
            .to_vec();
        let chosen = plateau(&curve, 0.0).map(|point| point.readahead_kb);
        assert_eq!(chosen, Some(1024), "not 128, though it beats the median of what is larger");
    }

    fn any_curve() -> impl Strategy<Value = Vec<Point>> {
        let rates = prop::collection::vec(0.001..10_000.0f64, 1..14);
        rates.prop_map(|rates| {
            let sizes = (0..).map(|log| 4u64 << log);
            sizes.zip(rates).map(|(readahead_kb, mb_s)| Point { readahead_kb, mb_s }).collect()
        })
    }

    fn is_possible(fit: &crate::fit::Fit) -> bool {
        let channels = toml::to_string(&fit.channels).expect("TOML");
        device::Spec::parse(&format!("description = 'x'\n[channels]\n{channels}"), "x").is_ok()
    }

    #[test]
    fn a_curve_that_wants_more_bandwidth_than_any_device_has_gets_a_possible_one() {
        let curve = [(4, 1951.6503813196148), (8, 406.05174500548026), (16, 7576.4902307016055)]
            .map(|(readahead_kb, mb_s)| Point { readahead_kb, mb_s });
        let fit = crate::fit::fit(&curve);
        assert!(fit.as_ref().is_none_or(is_possible), "{fit:?}");
    }

    proptest! {
        #[test]
        fn a_plateau_is_a_point_of_the_curve_that_gives_nearly_the_best(curve in any_curve()) {
            let found = plateau(&curve, 0.0).expect("there are points");
            prop_assert!(curve.contains(&found));
            prop_assert!(found.mb_s >= SHARE_OF_BEST * best(&curve));
        }

        #[test]
        fn a_margin_never_makes_it_smaller(curve in any_curve(), margin in 0.0..0.01f64) {
            let kb = |margin| plateau(&curve, margin).map(|point| point.readahead_kb);
            prop_assert!(kb(margin) >= kb(0.0));
        }

        #[test]
        fn between_points_lies_nothing_outside_them(curve in any_curve(), kb in 1u64..100_000) {
            let least = curve.iter().map(|point| point.mb_s).fold(f64::INFINITY, f64::min);
            let found = at(&curve, kb).expect("there are points");
            prop_assert!((least * (1.0 - 1e-9)..=best(&curve) * (1.0 + 1e-9)).contains(&found));
        }

        #[test]
        fn a_fit_describes_a_possible_device(curve in any_curve()) {
            let fit = crate::fit::fit(&curve);
            prop_assert!(fit.as_ref().is_none_or(is_possible), "{:?}", fit);
        }
    }
}
