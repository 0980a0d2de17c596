//! Formats reports as OpenMetrics text, for Prometheus and for scripts.
//!
//! Names, kinds and explanations are those of the reports' [figures](readahead::figures). Other users may read the
//! text, so no label is a path, a file, a command, or a text that somebody chose for a mount.
//!
//! The format: <https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md>.
//! The crate `prometheus-client` (0.25) does not escape label values, so it could not write a device's name.

#[cfg(test)]
mod strict;

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use controller::Device;
use controller::metrics::NotRead;
use readahead::Figure;
use readahead::figure::Kind;
use status::{Report, Role};

/// The end of a field's name, the unit of its metric, and the factor that turns the field's value into that unit.
const UNITS: [(&str, &str, f64); 4] = [
    ("_bytes", "bytes", 1.0),
    ("_mb_s", "bytes_per_second", 1e6),
    ("_ms", "seconds", 1e-3),
    ("_s", "seconds", 1.0),
];

/// The text for these processes.
pub(super) fn of(reports: &[Report]) -> String {
    let mut families = Families::default();
    reports.iter().for_each(|report| families.add_report(report));
    families.to_string()
}

/// Names and values, in the order of the text.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Labels(Vec<(&'static str, String)>);

impl Labels {
    fn and(&self, name: &'static str, value: impl Display) -> Labels {
        let mut labels = self.clone();
        labels.0.push((name, value.to_string()));
        labels
    }
}

/// All samples of one metric. No two have the same labels: a scraper would refuse the whole text.
struct Family {
    name: String,
    unit: Option<&'static str>,
    help: &'static str,
    kind: Kind,
    samples: BTreeMap<Labels, f64>,
}

/// In the order in which they appeared first.
#[derive(Default)]
struct Families(Vec<Family>);

impl Families {
    fn add_report(&mut self, report: &Report) {
        let role = match report.role {
            Role::Daemon => "daemon",
            Role::Run { .. } => "run",
        };
        let process = Labels::default().and("role", role).and("pid", report.pid);
        let status = &report.status;
        let totals = &status.metrics;
        self.add("bowwave", report.figures(), &process);
        self.add("bowwave", status.figures(), &process);
        self.add("bowwave", totals.figures(), &process);
        for count in totals.not_read.figures() {
            let labels = process.and("reason", count.name);
            let count = Figure { name: "not_read", help: NotRead::HELP, ..count };
            self.add("bowwave", [count], &labels);
        }
        for device in &status.devices {
            let labels = process.and("device", label(device));
            self.add("bowwave_device", device.figures(), &labels);
            for (volume, account) in device.volumes.iter().zip(&device.accounts) {
                let labels = labels.and("file_system", volume);
                self.add("bowwave_file_system", account.figures(), &labels);
            }
        }
    }

    fn add(&mut self, prefix: &str, figures: impl IntoIterator<Item = Figure>, labels: &Labels) {
        for figure in figures {
            let (name, unit, factor) = measure(figure.name);
            let family = self.family(format!("{prefix}_{name}"), unit, &figure);
            family.samples.entry(labels.clone()).or_insert(figure.value * factor);
        }
    }

    fn family(&mut self, name: String, unit: Option<&'static str>, of: &Figure) -> &mut Family {
        let at = self.0.iter().position(|family| family.name == name).unwrap_or_else(|| {
            let (help, kind) = (of.help, of.kind);
            self.0.push(Family { name, unit, help, kind, samples: BTreeMap::new() });
            self.0.len() - 1
        });
        &mut self.0[at]
    }
}

/// What [`UNITS`] says of a field: the name of its metric, the unit, and the factor.
fn measure(field: &str) -> (String, Option<&'static str>, f64) {
    let known = UNITS.iter().find_map(|(end, unit, factor)| {
        Some((format!("{}_{unit}", field.strip_suffix(end)?), Some(*unit), *factor))
    });
    known.unwrap_or_else(|| (field.to_owned(), None, 1.0))
}

/// `sda`, or the `major:minor` of a file system without a disk, as its name may be somebody's.
fn label(device: &Device) -> &str {
    if device.is_disk {
        return &device.name;
    }
    device.volumes.first().map_or("", |volume| volume)
}

impl Display for Families {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|family| family.fmt(f))?;
        f.write_str("# EOF\n")
    }
}

impl Display for Family {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Family { name, help, .. } = self;
        let (kind, end) = match self.kind {
            Kind::Counter => ("counter", "_total"),
            Kind::Gauge => ("gauge", ""),
        };
        writeln!(f, "# TYPE {name} {kind}")?;
        if let Some(unit) = self.unit {
            writeln!(f, "# UNIT {name} {unit}")?;
        }
        writeln!(f, "# HELP {name} {}", escaped(help))?;
        self.samples
            .iter()
            .try_for_each(|(labels, value)| writeln!(f, "{name}{end}{labels} {value}"))
    }
}

impl Display for Labels {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let labels = self.0.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
        write!(f, "{{{}}}", labels.collect::<Vec<_>>().join(","))
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use controller::Balance;
    use proptest::prelude::*;

    use super::strict::{Sample, parse};
    use super::*;
    use crate::commands::status::text::tests::report;

    fn run(pid: u32) -> Report {
        Report { role: Role::Run { command: "/home/ann/secret".into() }, pid, ..report() }
    }

    /// The samples of one metric, without the labels of the process.
    fn samples(text: &str, family: &str) -> Vec<(String, f64)> {
        let families = parse(text).unwrap_or_else(|fault| panic!("{fault}\n{text}"));
        let of = |sample: &Sample| {
            let own = sample.labels.iter().filter(|(name, _)| name != "role" && name != "pid");
            let own: Vec<_> = own.map(|(name, value)| format!("{name}={value}")).collect();
            (own.join(" "), sample.value)
        };
        families[family].samples.iter().map(of).collect()
    }

    #[test]
    fn a_known_report_gives_this_text() {
        assert_eq!(of(&[report()]), include_str!("openmetrics/report.txt"));
    }

    #[test]
    fn every_number_of_the_json_is_a_metric() {
        let reports = [report(), run(78)];
        let families = parse(&of(&reports)).expect("it is valid");
        let json = serde_json::to_value(&reports[0]).expect("it is JSON");
        let numbers = |at: &str| {
            let fields = json.pointer(at).and_then(serde_json::Value::as_object);
            let fields = fields.expect("an object").iter().filter(|(_, value)| value.is_number());
            fields.map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        let expected = [("", "bowwave"), ("/metrics", "bowwave")]
            .into_iter()
            .chain([("/devices/0", "bowwave_device")])
            .chain([("/devices/0/accounts/0", "bowwave_file_system")]);
        for (at, prefix) in expected {
            for field in numbers(at) {
                // They name the format, the process and the device.
                if !["schema", "pid", "backing"].contains(&&*field) {
                    let name = format!("{prefix}_{}", measure(&field).0);
                    assert!(families.contains_key(&name), "{field}: {name}");
                }
            }
        }
        let reasons = numbers("/metrics/not_read");
        assert_eq!(samples(&of(&reports[..1]), "bowwave_not_read").len(), reasons.len());
    }

    #[test]
    fn values_have_base_units() {
        let text = of(&[report()]);
        let device = |name: &str| samples(&text, name);
        assert_eq!(device("bowwave_device_latency_seconds"), [("device=sda".into(), 0.007)]);
        let rate = device("bowwave_device_bandwidth_bytes_per_second");
        assert_eq!(rate, [("device=sda".into(), 1e8)]);
        let credit = samples(&text, "bowwave_file_system_credit_seconds");
        let of_root = ("device=sda file_system=8:1".into(), 2.0);
        assert_eq!(credit, [of_root, ("device=sda file_system=8:2".into(), 1.0)]);
    }

    #[test]
    fn a_metric_has_the_samples_of_all_processes() {
        let families = parse(&of(&[report(), run(78), run(79)])).expect("it is valid");
        let events = &families["bowwave_events"].samples;
        let pids: Vec<_> = events.iter().map(|sample| &*sample.labels[1].1).collect();
        assert_eq!(pids, ["77", "78", "79"]);
        assert_eq!(parse(&of(&[])).expect("it is valid").len(), 0);
    }

    #[test]
    fn no_path_file_command_or_foreign_name_is_shown() {
        let mut report = run(78);
        let share = Device {
            name: "server:/export/ann".into(),
            is_disk: false,
            volumes: vec!["0:44".into()],
            mount_points: vec!["/home/ann".into()],
            accounts: vec![Balance::default()],
            ..report.status.devices[0].clone()
        };
        report.status.devices.push(share);
        let text = of(&[report]);
        let values = text.lines().filter(|line| !line.starts_with('#'));
        let shown: String = values.collect();
        for word in ["ann", "export", "srv", "/", "1234"] {
            assert!(!shown.contains(word), "{word}: {shown}");
        }
        let depth = samples(&text, "bowwave_device_depth_bytes");
        assert_eq!(depth, [("device=0:44".into(), 8e7), ("device=sda".into(), 8e7)]);
    }

    proptest! {
        #[test]
        fn any_names_are_escaped_and_no_sample_is_repeated(
            names in prop::collection::vec(("(.|\n){0,8}", "[\\\\\"\n{}=,a]{0,3}"), 1..4),
            are_disks in any::<bool>(),
        ) {
            let mut report = report();
            let device = report.status.devices.remove(0);
            for (name, volume) in &names {
                report.status.devices.push(Device {
                    name: name.clone(),
                    is_disk: are_disks,
                    volumes: vec![volume.clone()],
                    ..device.clone()
                });
            }
            let told = samples(&of(&[report]), "bowwave_device_concurrency");
            let label = |(name, volume)| format!("device={}", if are_disks { name } else { volume });
            let mut expected: Vec<String> = names.into_iter().map(label).collect();
            expected.sort();
            expected.dedup();
            prop_assert_eq!(told.into_iter().map(|(label, _)| label).collect::<Vec<_>>(), expected);
        }
    }
}
