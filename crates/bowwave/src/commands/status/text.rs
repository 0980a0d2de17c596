//! Formats a status as text of 80 columns.

use controller::{BusyFile, Device};
use status::{Report, Role};

use crate::print::{thousands, visible};

const COLUMNS: usize = 80;

/// Column where text begins, after its label.
const INDENT: usize = 14;

/// The unit after a space at which lines do not break.
const UNBREAKABLE_MB: &str = "\u{a0}MB";

/// The lines for one process.
pub(super) fn of(report: &Report) -> Vec<String> {
    let mut lines = vec![title(report)];
    let status = &report.status;
    let metrics = &status.metrics;
    let managed = format!(
        "{} managed, of {} seen in the last 10 s",
        thousands(status.managed_files),
        thousands(status.files as u64)
    );
    lines.extend(wrapped("  files", &managed));
    let budget = format!(
        "{} MB read ahead and not used yet, of {} MB allowed; at most {} MB so far",
        mb(status.ahead_bytes),
        mb(status.budget_bytes),
        mb(metrics.most_ahead_bytes)
    );
    lines.extend(wrapped("  budget", &budget));
    let windows = format!(
        "{} kernel windows changed now, {} narrowed so far",
        thousands(status.changed_windows as u64),
        thousands(metrics.bounded_windows)
    );
    lines.extend(wrapped("  windows", &windows));
    lines.extend(wrapped("  so far", &metrics.to_string()));
    let ways = [
        ("  ahead", metrics.windows()),
        ("  trees", metrics.walks()),
        ("  starts", metrics.remembered()),
    ];
    for (label, text) in ways {
        lines.extend(text.into_iter().flat_map(|text| wrapped(label, &text)));
    }
    let not_read = metrics.not_read.to_string();
    if !not_read.is_empty() {
        lines.extend(wrapped("  not read", &not_read));
    }
    let behind = format!("{} streams; {}", status.behind_streams, metrics.behind());
    lines.extend(wrapped("  behind", &behind));
    lines.extend(failures(report));
    lines.extend(status.devices.iter().flat_map(device));
    if !status.busiest_files.is_empty() {
        lines.push("  most read ahead recently".into());
        lines.extend(status.busiest_files.iter().map(file));
    }
    lines
}

fn title(report: &Report) -> String {
    let minutes = report.uptime_s as u64 / 60;
    let time = match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{:.0} s", report.uptime_s),
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{} h {minutes} min", thousands(hours)),
    };
    let role = match &report.role {
        Role::Daemon => "daemon".into(),
        Role::Run { command } => format!("run of {}", cut(&visible(command), 30)),
    };
    format!("{role} (process {}), for {time}", report.pid)
}

/// Lists failures, if there were any.
fn failures(report: &Report) -> Vec<String> {
    let metrics = &report.status.metrics;
    let counts = [
        ("reads", metrics.failed_reads),
        ("changes of windows", metrics.refused_windows),
        ("changes of eBPF tables and programs", metrics.table_errors),
    ];
    let counts = counts.iter().filter(|(_, count)| *count > 0);
    let texts: Vec<_> =
        counts.map(|(what, count)| format!("{what}: {}", thousands(*count))).collect();
    if texts.is_empty() { Vec::new() } else { wrapped("  failed", &texts.join(", ")) }
}

fn device(device: &Device) -> Vec<String> {
    let places: Vec<_> = device.mount_points.iter().map(|place| visible(place)).collect();
    let mut lines = wrapped("  device", &format!("{}: {}", named(device), places.join(", ")));
    let cost = format!(
        "{} ms per access, {:.0} MB/s, {:.0} at once ({})",
        milliseconds(device.latency_ms),
        device.bandwidth_mb_s,
        device.concurrency,
        device.origin
    );
    lines.extend(wrapped("", &cost));
    let depth = format!(
        "{} MB in flight, of {} MB allowed",
        mb(device.in_flight_bytes),
        mb(device.depth_bytes)
    );
    lines.extend(wrapped("", &depth));
    for (account, place) in device.accounts.iter().zip(&places) {
        let account = format!(
            "{place}: {:.1} s earned, {:.1} s spent, {:.2} s of credit",
            account.earned_s, account.spent_s, account.credit_s
        );
        lines.extend(wrapped("", &account));
    }
    lines
}

/// `sda`, or `md0 (sda, sdb)`.
fn named(device: &Device) -> String {
    let name = visible(&device.name);
    let others: Vec<_> = device.disks.iter().filter(|disk| **disk != device.name).collect();
    if others.is_empty() {
        return name;
    }
    let disks: Vec<_> = device.disks.iter().map(|disk| visible(disk)).collect();
    format!("{name} ({})", disks.join(", "))
}

fn file(file: &BusyFile) -> String {
    let size = format!("{} MB", mb(file.read_ahead_bytes));
    let place = cut(&visible(&file.mount_point), 30);
    format!("{size:>18}  inode {} of {place} ({})", file.inode, visible(&file.volume))
}

fn mb(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 * 1e-6)
}

fn milliseconds(ms: f64) -> String {
    if ms < 1.0 { format!("{ms:.3}") } else { format!("{ms:.1}") }
}

/// At most `most` characters, ending in an ellipsis if some were cut.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most - 3).collect::<String>() + "...",
    }
}

/// A label and a text, wrapped into lines. Breaks neither long words nor between a number and its unit.
fn wrapped(label: &str, text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = format!("{label:<INDENT$}");
    let mut is_empty = true;
    for word in text.replace(" MB", UNBREAKABLE_MB).split(' ') {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            lines.push(std::mem::replace(&mut line, " ".repeat(INDENT)));
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines.push(line);
    lines.into_iter().map(|line| line.replace(UNBREAKABLE_MB, " MB")).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use controller::metrics::{Metrics, NotRead};
    use controller::{Balance, Status};

    use super::*;

    /// Of a daemon that has read ahead on one disk with two file systems.
    pub(in crate::commands::status) fn report() -> Report {
        let not_read = NotRead { nothing_to_gain: 812, device_busy: 3, ..NotRead::default() };
        let metrics = Metrics {
            events: 4_711,
            reads: 12,
            read_ahead_bytes: 25_000_000,
            used_bytes: 24_000_000,
            stalls_saved: 300,
            earned_s: 41.25,
            spent_s: 0.625,
            failed_reads: 2,
            not_read,
            ..Metrics::default()
        };
        let device = Device {
            backing: 1,
            name: "sda".into(),
            is_disk: true,
            disks: vec!["sda".into()],
            volumes: vec!["8:1".into(), "8:2".into()],
            mount_points: vec!["/".into(), "/srv".into()],
            accounts: vec![
                Balance { earned_s: 41.25, spent_s: 0.625, credit_s: 2.0 },
                Balance { earned_s: 0.0, spent_s: 0.0, credit_s: 1.0 },
            ],
            latency_ms: 7.0,
            bandwidth_mb_s: 100.0,
            concurrency: 1.0,
            origin: "measured".into(),
            depth_bytes: 80_000_000,
            in_flight_bytes: 2_000_000,
        };
        let busy = BusyFile {
            volume: "8:2".into(),
            inode: 1234,
            read_ahead_bytes: 20_000_000,
            mount_point: "/srv".into(),
        };
        Report {
            schema: status::SCHEMA,
            role: Role::Daemon,
            pid: 77,
            uptime_s: 7_980.0,
            status: Status {
                metrics,
                devices: vec![device],
                budget_bytes: 512_000_000,
                ahead_bytes: 12_000_000,
                files: 120,
                managed_files: 3,
                busiest_files: vec![busy],
                changed_windows: 0,
                behind_streams: 2,
            },
        }
    }

    #[test]
    fn a_daemon_is_shown_as_a_table_of_plain_sentences() {
        let expected = "\
daemon (process 77), for 2 h 13 min
  files       3 managed, of 120 seen in the last 10 s
  budget      12.0 MB read ahead and not used yet, of 512.0 MB allowed; at most
              0.0 MB so far
  windows     0 kernel windows changed now, 0 narrowed so far
  so far      41.2 s earned, 0.6 s spent; 4711 events, 0 lost; 0.000 s CPU
  ahead       25.0 MB read ahead in 12 windows: 24.0 MB used, 0.0 MB wasted,
              0.0 MB for dense random reading; 300 stalls saved
  not read    812 times nothing to gain, 3 times the device was busy
  behind      2 streams; dropped 0.0 MB behind streams; kept 0.0 MB that were
              cached before, or used by others or again; left 0.0 MB that were
              not written yet, or mapped
  failed      reads: 2
  device      sda: /, /srv
              7.0 ms per access, 100 MB/s, 1 at once (measured)
              2.0 MB in flight, of 80.0 MB allowed
              /: 41.2 s earned, 0.6 s spent, 2.00 s of credit
              /srv: 0.0 s earned, 0.0 s spent, 1.00 s of credit
  most read ahead recently
           20.0 MB  inode 1234 of /srv (8:2)";
        assert_eq!(of(&report()).join("\n"), expected);
    }

    #[test]
    fn a_device_of_several_disks_is_shown_with_them() {
        let mut report = report();
        let device = &mut report.status.devices[0];
        (device.name, device.disks) = ("md0".into(), vec!["sda".into(), "sdb".into()]);
        assert!(of(&report).contains(&"  device      md0 (sda, sdb): /, /srv".to_owned()));
    }

    #[test]
    fn eighty_columns_are_enough_for_long_names_and_large_numbers() {
        let mut report = report();
        report.role = Role::Run { command: "/opt/".to_owned() + &"x".repeat(200) };
        report.pid = u32::MAX;
        let status = &mut report.status;
        status.metrics.read_ahead_bytes = u64::MAX;
        status.metrics.not_read.larger_window = u64::MAX;
        status.devices[0].mount_points = (0..40).map(|n| format!("/srv/volume-{n}")).collect();
        status.busiest_files[0].mount_point = "/".to_owned() + &"y".repeat(200);
        status.busiest_files[0].read_ahead_bytes = 1 << 50;
        for line in of(&report) {
            assert!(line.chars().count() <= COLUMNS, "{line}");
        }
    }

    #[test]
    fn names_cannot_write_to_the_terminal() {
        let mut report = report();
        report.role = Role::Run { command: "\u{1b}[2J".into() };
        report.status.devices[0].mount_points[0] = "/a\nb".into();
        let text = of(&report).concat();
        assert!(!text.chars().any(char::is_control), "{text}");
    }
}
