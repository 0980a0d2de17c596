//! Any number in a device file is either refused by name or gives a device whose time goes forward.

use device::{Request, Spec};
use proptest::prelude::*;

const KINDS: [&str; 3] = [
    include_str!("../devices/st3250820a.toml"),
    include_str!("../devices/sandisk-cruzer-4g.toml"),
    include_str!("../devices/raid5-pe1750.toml"),
];

/// All numeric settings, as `(device text, name)`.
fn settings() -> Vec<(&'static str, &'static str)> {
    let is_number = |value: &str| value.trim_start().starts_with(|c: char| c.is_ascii_digit());
    let of = |text: &'static str| {
        let lines = text.lines().filter_map(|line| line.split_once(" = "));
        lines.filter(|(_, value)| is_number(value)).map(move |(name, _)| (text, name))
    };
    KINDS.into_iter().flat_map(of).collect()
}

/// The text with a different value of one setting.
fn with(text: &str, name: &str, value: &str) -> String {
    let begins = format!("{name} = ");
    let line = |line: &str| match line.starts_with(&begins) {
        true => format!("{begins}{value}\n"),
        false => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// Numbers of any size, integers and others.
fn numbers() -> impl Strategy<Value = String> {
    prop_oneof![
        (-300..300i32, 1..10u8).prop_map(|(exponent, digit)| format!("{digit}e{exponent}")),
        (0..63u32).prop_map(|bits| format!("{}", 1u64 << bits)),
        prop::sample::select(vec!["0", "-1", "9223372036854775807", "0.0", "-0.5", "nan", "inf"])
            .prop_map(str::to_owned),
    ]
}

/// Serves several reads, one after the other. Fails if time runs backwards.
fn serve(spec: &Spec) -> Result<(), TestCaseError> {
    let mut model = spec.build(1 << 30);
    let (mut now, mut done) = (0u64, Vec::new());
    for id in 0..6u64 {
        let bytes = 4096 << (2 * id);
        model.submit(now, Request { id, offset: (id * 0x1234_5000) % (1 << 29), bytes });
        while let Some(at) = model.next_event() {
            prop_assert!(at >= now, "from {now} to {at}");
            now = at;
            model.advance(now, &mut done);
        }
        now = now.saturating_add(1_000_000);
    }
    prop_assert_eq!(done.len(), 6);
    Ok(())
}

proptest! {
    #[test]
    fn any_number_is_refused_by_name_or_can_be_served(
        (text, name) in prop::sample::select(settings()), value in numbers(),
    ) {
        match Spec::parse(&with(text, name, &value), "mine.toml") {
            Ok(spec) => serve(&spec)?,
            Err(error) => prop_assert!(error.to_string().contains("mine.toml"), "{error}"),
        }
    }
}

#[test]
fn impossible_figures_are_refused_with_their_range() {
    let refused = |text: &str, name: &str, value: &str, allowed: &str| {
        let error = Spec::parse(&with(text, name, value), "mine.toml").expect_err(name).to_string();
        assert!(error.contains(&format!("{name} must be {allowed}")), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    };
    let [disk, channels, array] = KINDS;
    refused(disk, "segments", "9223372036854775807", "1 to 1024");
    refused(disk, "segment_kib", "9223372036854775807", "0 to 16777216");
    refused(disk, "settle_us", "1e300", "0 to 60000000");
    refused(disk, "rpm", "1e-300", "1 to 1000000");
    refused(disk, "capacity_gb", "1e300", "0.000001 to 1000000");
    refused(channels, "latency_us", "1e300", "0 to 60000000");
    refused(channels, "bandwidth_mb_s", "1e-300", "0.001 to 1000000");
    refused(channels, "request_cap_kib", "9223372036854775807", "1 to 16777216, or absent");
    refused(array, "controller_us", "1e300", "0 to 60000000");
    refused(array, "controller_busy_us", "1e300", "0 to 60000000");
    refused(array, "controller_mb_s", "1e-300", "0.001 to 1000000, or absent");
}
