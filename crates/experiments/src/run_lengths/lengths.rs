//! Ten distributions of run lengths: scale-free ones, typical sizes, and a size that changes.

use readahead::PAGE_BYTES;
use sim::scripts::random::Random;

const K: f64 = 1024.0;
const M: f64 = 1024.0 * K;

/// The longest run in bytes. A longer one would take most of a table's time.
const LONGEST: f64 = 64.0 * M;

/// A distribution of run lengths, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lengths {
    /// `P(run >= x) = (x / least)^-a`.
    Pareto { least: f64, a: f64 },
    /// Every run has this length.
    Always(f64),
    /// The first length with this probability, otherwise the second.
    Either(f64, f64, f64),
    /// Exponential, with this mean.
    Exponential(f64),
    /// Log-normal, with this median and a standard deviation of 1 in the logarithm.
    LogNormal(f64),
    /// Any length up to this one.
    Uniform(f64),
    /// The first length in the first half of the runs, then the second.
    Changes(f64, f64),
}

/// Every distribution by the name of its rows.
pub(super) const ALL: [(&str, Lengths); 10] = [
    ("pareto a=1", Lengths::Pareto { least: 16.0 * K, a: 1.0 }),
    ("pareto a=2", Lengths::Pareto { least: 64.0 * K, a: 2.0 }),
    ("always 1 MiB", Lengths::Always(M)),
    ("always 200 KiB", Lengths::Always(200.0 * K)),
    ("64 KiB or 64 MiB", Lengths::Either(0.9, 64.0 * K, 64.0 * M)),
    ("exponential 1 MiB", Lengths::Exponential(M)),
    ("log-normal 256 KiB", Lengths::LogNormal(256.0 * K)),
    ("uniform to 8 MiB", Lengths::Uniform(8.0 * M)),
    ("1 or 1.5 MiB", Lengths::Either(0.5, M, 1.5 * M)),
    ("128 KiB, then 4 MiB", Lengths::Changes(128.0 * K, 4.0 * M)),
];

impl Lengths {
    /// The lengths of `count` runs in bytes: whole pages, at least one.
    pub(super) fn draw(self, count: u64, random: &mut Random) -> Vec<u64> {
        let one = |number| {
            let bytes = self.bytes(number, count, random).min(LONGEST);
            ((bytes / PAGE_BYTES as f64).round() as u64).max(1) * PAGE_BYTES
        };
        (0..count).map(one).collect()
    }

    fn bytes(self, number: u64, count: u64, random: &mut Random) -> f64 {
        // In `(0, 1]`: a logarithm and a power of it are finite.
        let mut share = || 1.0 - random.unit();
        match self {
            Lengths::Pareto { least, a } => least * share().powf(-1.0 / a),
            Lengths::Always(length) => length,
            Lengths::Either(p, one, other) => {
                if share() <= p {
                    one
                } else {
                    other
                }
            }
            Lengths::Exponential(mean) => -mean * share().ln(),
            Lengths::LogNormal(median) => {
                let (radius, angle) = ((-2.0 * share().ln()).sqrt(), share());
                median * (radius * (std::f64::consts::TAU * angle).cos()).exp()
            }
            Lengths::Uniform(longest) => longest * share(),
            Lengths::Changes(before, after) => {
                if number < count / 2 {
                    before
                } else {
                    after
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The quartiles of 4,000 runs, in KiB.
    fn quartiles(lengths: Lengths) -> [u64; 3] {
        let mut drawn = lengths.draw(4_000, &mut Random::new(1));
        drawn.sort_unstable();
        [1_000, 2_000, 3_000].map(|rank| drawn[rank] / 1024)
    }

    #[test]
    fn each_distribution_has_its_quartiles() {
        let expected = [
            [21, 32, 64],
            [74, 91, 128],
            [1024; 3],
            [200; 3],
            [64; 3],
            [295, 710, 1420],
            [130, 256, 502],
            [2048, 4096, 6144],
            [1024, 1024, 1536],
            [128, 4096, 4096],
        ];
        for ((name, lengths), expected) in ALL.into_iter().zip(expected) {
            // "Either" has its median between both.
            let quartiles = quartiles(lengths);
            let is_near = |(is, expected): (u64, u64)| {
                is.abs_diff(expected) as f64 <= 4.0 + 0.08 * expected as f64
            };
            let ranks = if name.starts_with("1 or") { vec![0, 2] } else { vec![0, 1, 2] };
            assert!(
                ranks.into_iter().all(|rank| is_near((quartiles[rank], expected[rank]))),
                "{name}: {quartiles:?}"
            );
        }
    }
}
