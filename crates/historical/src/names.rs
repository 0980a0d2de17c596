//! Finds policies by the names that users type, with optional parameters: `name:key=value,...`.

use crate::adaptive2005::Adaptive2005;
use crate::drop_behind_2007::DropBehind2007;
use crate::linux2_5::Linux25;
use crate::linux6::Linux6;
use crate::none::NoReadAhead;
use crate::ondemand::{OnDemand, OnDemandRelease};
use crate::policy::KernelPolicy;
use crate::stock::{Stock, StockRelease};
use crate::v16::{AdaptiveV16, V16Parameters};

/// The names of all policies, oldest kernel first.
pub const NAMES: [&str; 11] = [
    "none",
    "linux-2.5",
    "stock-2.6.13",
    "stock-2.6.17",
    "adaptive-2005",
    "adaptive-v16",
    "ondemand-2.6.23",
    "drop-behind-2007",
    "context-2.6.31",
    "context-3.12",
    "linux-6",
];

/// The policy with this name, which tracks at least `open_files` open files; `None` if there is no
/// such policy or parameter.
///
/// Two policies take parameters: `adaptive-2005:ratio=101`, and
/// `adaptive-v16:ratio=50,hit-rate=1,max=256,initial=16,nfsd=1,loop=1,laptop=1` (any of these;
/// `max` and `initial` in pages). A value without a key means `ratio` for the first and `hit-rate`
/// for the second.
pub fn by_name(name: &str, open_files: usize) -> Option<Box<dyn KernelPolicy>> {
    let (name, parameters) = name.split_once(':').unwrap_or((name, ""));
    match name {
        "adaptive-2005" => {
            let ratio = adaptive_2005_ratio(parameters)?;
            return Some(Box::new(Adaptive2005::new(open_files, ratio)));
        }
        "adaptive-v16" => {
            let parameters = v16_parameters(parameters)?;
            return Some(Box::new(AdaptiveV16::new(open_files, parameters)));
        }
        _ if !parameters.is_empty() => return None,
        _ => {}
    }
    let stock = |release| Box::new(Stock::new(open_files, release));
    let on_demand = |release| Box::new(OnDemand::new(open_files, release));
    Some(match name {
        "none" => Box::new(NoReadAhead),
        "linux-2.5" => Box::new(Linux25::new(open_files)),
        "stock-2.6.13" => stock(StockRelease::Linux2_6_13),
        "stock-2.6.17" => stock(StockRelease::Linux2_6_17),
        "drop-behind-2007" => {
            let kernel = OnDemand::new(open_files, OnDemandRelease::Linux2_6_23);
            Box::new(DropBehind2007(kernel))
        }
        "ondemand-2.6.23" => on_demand(OnDemandRelease::Linux2_6_23),
        "context-2.6.31" => on_demand(OnDemandRelease::Linux2_6_31),
        "context-3.12" => on_demand(OnDemandRelease::Linux3_12),
        "linux-6" => Box::new(Linux6::new(open_files)),
        _ => return None,
    })
}

/// The parameters of the policy with this name, as shown in an error; `None` if there is no such
/// policy.
pub fn parameters_of(name: &str) -> Option<&'static str> {
    match name {
        "adaptive-2005" => Some("ratio=PERCENT of 10 or more, or that number alone"),
        "adaptive-v16" => Some(
            "hit-rate=N (or that number alone), ratio=PERCENT, max=PAGES, initial=PAGES, nfsd=1, loop=1, laptop=1",
        ),
        _ => NAMES.contains(&name).then_some("none"),
    }
}

/// Parses `key=value` pairs; `None` for a value that is not a number. A value without a key gets
/// the key `first`.
fn pairs<'a>(parameters: &'a str, first: &'a str) -> impl Iterator<Item = Option<(&'a str, u32)>> {
    let parts = parameters.split(',').filter(|part| !part.is_empty());
    parts.map(move |part| {
        let (key, value) = part.split_once('=').unwrap_or((first, part));
        Some((key, value.parse().ok()?))
    })
}

fn adaptive_2005_ratio(parameters: &str) -> Option<u32> {
    let mut ratio = Adaptive2005::DEFAULT_RATIO;
    for pair in pairs(parameters, "ratio") {
        match pair? {
            ("ratio", value) if value >= Adaptive2005::SMALLEST_RATIO => ratio = value,
            _ => return None,
        }
    }
    Some(ratio)
}

fn v16_parameters(parameters: &str) -> Option<V16Parameters> {
    let mut chosen = V16Parameters::default();
    for pair in pairs(parameters, "hit-rate") {
        match pair? {
            ("hit-rate", value) => chosen.readahead_hit_rate = value,
            ("ratio", value) => chosen.readahead_ratio = value,
            ("max", value) => chosen.max_pages = value,
            ("initial", value) => chosen.initial_pages = value,
            ("nfsd", value) => chosen.nfsd = value != 0,
            ("loop", value) => chosen.loop_device = value != 0,
            ("laptop", value) => chosen.laptop = value != 0,
            _ => return None,
        }
    }
    Some(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_makes_the_policy_that_bears_it() {
        for name in NAMES {
            let policy = by_name(name, 16).expect(name);
            assert_eq!(policy.name(), name);
        }
    }

    #[test]
    fn parameters_are_given_with_or_without_their_key() {
        assert_eq!(adaptive_2005_ratio(""), Some(50));
        assert_eq!(adaptive_2005_ratio("101"), Some(101));
        assert_eq!(adaptive_2005_ratio("ratio=102"), Some(102));
        let v16 =
            |hit_rate| V16Parameters { readahead_hit_rate: hit_rate, ..V16Parameters::default() };
        assert_eq!(v16_parameters("8"), Some(v16(8)));
        assert_eq!(
            v16_parameters("hit-rate=2,ratio=100,nfsd=1"),
            Some(V16Parameters { readahead_ratio: 100, nfsd: true, ..v16(2) })
        );
    }

    #[test]
    fn every_parameter_that_is_told_is_taken() {
        for name in NAMES {
            let told = parameters_of(name).expect("it is a policy's name");
            let keys = told.split([' ', ',']).filter_map(|word| word.split_once('='));
            let taken = |key: &str| by_name(&format!("{name}:{key}=10"), 16).is_some();
            let keys: Vec<&str> = keys.map(|(key, _)| key).collect();
            assert!(keys.iter().all(|key| taken(key)), "{name} takes {told}");
            assert_eq!(keys.is_empty(), by_name(&format!("{name}:10"), 16).is_none(), "{name}");
        }
        assert!(
            by_name("adaptive-2005:9", 16).is_none() && by_name("adaptive-2005:10", 16).is_some()
        );
        assert_eq!(parameters_of("linux-7"), None);
    }

    #[test]
    fn what_is_unknown_makes_no_policy() {
        let unknown = [
            "",
            "linux-7",
            "linux-6:window=3",
            "adaptive-2005:9",
            "adaptive-2005:much",
            "adaptive-v16:hit-rate=",
            "adaptive-v16:speed=3",
        ];
        for name in unknown {
            assert!(by_name(name, 16).is_none(), "{name}");
        }
    }
}
