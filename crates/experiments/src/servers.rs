//! Servers, 2006: slow clients of a web server, a sparse backup, and random reads from cold.

use derive_more::Sub;
use serde::Deserialize;
use sim::scripts::{Client, Server};
use sim::{Listed, Machine, Op};

use super::experiment::{Experiment, ExperimentError, figures};
use super::random_reads;
use super::side_by_side::side_by_side;
use super::table::{Figure, Kind, Table, Verdict, goes_the_same_way};

const NAME: &str = "servers-2006";

#[cfg(any(test, fuzzing))]
pub(super) const PARSERS: super::parsers::Parsers =
    super::parsers::Parsers::of::<Workload, Record>();

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Workload {
    web: Web,
    backup: Backup,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Web {
    file_mb: u64,
    cached_clients_percent: usize,
    /// Percentage of clients that resume a download: their first request begins inside the file.
    resumed_percent: usize,
    client_kb_per_second: f64,
    /// Seconds within which the clients arrive. If they arrived at once, they would also need their windows at once.
    arriving_seconds: f64,
    /// Bytes that a socket takes at a time: one of these values.
    takes: Vec<u64>,
    seconds: f64,
    processors: u32,
    disks: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Backup {
    device: String,
    file_mb: u64,
    piece_kb: u64,
    every_kb: u64,
}

/// One published row.
#[derive(Clone, Debug, Deserialize)]
struct Record {
    case: String,
    figure: String,
    unit: String,
    stock: Option<f64>,
    /// A number, or a range such as `-67..+1.6`.
    adaptive: String,
}

const COLUMNS: [&str; 2] = ["stock", "adaptive"];

/// Figures for which an unknown was chosen with both columns in view.
const CALIBRATED: [&str; 7] = [
    "clients",
    "avg readahead size",
    "cpu iowait",
    "disk util",
    "net bandwidth",
    "disk bandwidth",
    "throughput",
];

/// Where a download is resumed: the page of the posted calls.
const RESUMED_AT: u64 = 1_478_592 / 4096 * 4096;

/// The share of the simulated time of a web server that is left out at the start.
const WARM_UP: f64 = 0.5;

pub(super) fn run(progress: &mut dyn FnMut(f64)) -> Result<Table, ExperimentError> {
    let experiment: Experiment<Workload> =
        Experiment::parse(NAME, include_str!("../../../experiments/servers-2006.toml"))?;
    let records: Vec<Record> =
        figures(NAME, include_str!("../../../experiments/servers-2006.csv"))?;
    // The same number in both columns: adaptive had eight more by chance.
    let clients = records.iter().find(|record| record.figure == "clients");
    let clients = clients.and_then(|record| record.stock).unwrap_or(0.0) as usize;
    let run = |column: &&'static str| -> Result<_, ExperimentError> {
        Ok((web(&experiment, column, clients)?, backup(&experiment, column)?))
    };
    let outcomes = side_by_side(&COLUMNS, run, &mut |share| progress(share * 2.0 / 3.0))?;
    let (webs, backups): (Vec<_>, Vec<_>) = outcomes.into_iter().unzip();
    let mut changes = random_reads::total_changes()?;
    changes.sort_by(f64::total_cmp);
    progress(1.0);
    let mut table = experiment.table(NAME);
    for record in &records {
        if let Some((least, most)) = record.adaptive.split_once("..") {
            let ends = [("best", least, changes.first()), ("worst", most, changes.last())];
            table.figures.extend(ends.map(|(end, published, simulated)| Figure {
                row: format!("{}, {end}: {}", record.case, record.figure),
                policy: "adaptive".to_owned(),
                unit: "percent",
                published: published.parse().ok(),
                simulated: simulated.copied().unwrap_or(f64::NAN),
                kind: Kind::Prediction,
            }));
            continue;
        }
        for (index, column) in COLUMNS.into_iter().enumerate() {
            let simulated = match record.figure.as_str() {
                "throughput" => backups[index],
                figure => webs[index].value(figure),
            };
            table.figures.push(Figure {
                row: format!("{}: {}", record.case, record.figure),
                policy: column.to_owned(),
                unit: unit(&record.unit),
                published: if index == 0 { record.stock } else { record.adaptive.parse().ok() },
                simulated,
                kind: match record.figure.as_str() {
                    figure if CALIBRATED.contains(&figure) => Kind::Calibrated,
                    _ => Kind::Prediction,
                },
            });
        }
    }
    table.verdicts = judge(&table.figures);
    Ok(table)
}

fn unit(published: &str) -> &'static str {
    match published {
        "count" => "count",
        "percent" => "percent",
        "MB/s" => "MB/s",
        "pages of 4 KiB" => "pages",
        _ => "sectors",
    }
}

/// Counts of a web server and its disks, from the start to some time, or between two times. Times are in seconds.
#[derive(Clone, Copy, Debug, Default, Sub)]
struct Served {
    clients: usize,
    seconds: f64,
    chunks: f64,
    pages: f64,
    commands: f64,
    disk_bytes: f64,
    sent_bytes: f64,
    waited: f64,
    busy: f64,
    processors: f64,
    disks: f64,
}

impl Served {
    /// What was added since an earlier time; the numbers of clients, processors and disks stay.
    fn since(self, earlier: Served) -> Self {
        Served {
            clients: self.clients,
            processors: self.processors,
            disks: self.disks,
            ..self - earlier
        }
    }

    fn value(&self, figure: &str) -> f64 {
        match figure {
            "clients" => self.clients as f64,
            "avg readahead size" => self.pages / self.chunks,
            "avg io size" => self.disk_bytes / self.commands / 512.0,
            "cpu iowait" => self.waited / self.seconds / self.processors * 100.0,
            "disk util" => self.busy / self.seconds / self.disks * 100.0,
            "net bandwidth" => self.sent_bytes / self.seconds * 1e-6,
            "disk bandwidth" => self.disk_bytes / self.seconds * 1e-6,
            _ => f64::NAN,
        }
    }
}

/// The web server after its warm-up. The same run is simulated twice, the first time only until the warm-up is over.
fn web(
    experiment: &Experiment<Workload>,
    column: &str,
    clients: usize,
) -> Result<Served, ExperimentError> {
    let seconds = experiment.workload.web.seconds;
    let warm = web_until(experiment, column, clients, seconds * WARM_UP)?;
    Ok(web_until(experiment, column, clients, seconds)?.since(warm))
}

fn web_until(
    experiment: &Experiment<Workload>,
    column: &str,
    clients: usize,
    seconds: f64,
) -> Result<Served, ExperimentError> {
    let web = &experiment.workload.web;
    let mut machine = experiment.build(column)?;
    let bytes = web.file_mb * 1_000_000;
    let cached = machine.add_file(bytes);
    let client = |machine: &mut Machine, index: usize| {
        let is_cached = index % 100 < web.cached_clients_percent;
        let file = if is_cached { cached } else { machine.add_file(bytes) };
        // Cached files are resumed as often as others: 37 and 100 have no common divisor.
        let is_resumed = index * 37 % 100 < web.resumed_percent;
        let begin = if is_resumed { RESUMED_AT.min(bytes) } else { 0 };
        Client::new([0; 2].map(|_| machine.open(file)), bytes, begin)
    };
    let all = (0..clients).map(|index| client(&mut machine, index)).collect();
    let rate = web.client_kb_per_second * 1e3;
    let until = (seconds * 1e9) as u64;
    let arriving = (web.arriving_seconds * 1e9) as u64;
    let server = Server::new(all, arriving, web.takes.clone(), rate, until);
    let sent = server.sent();
    let server = machine.spawn(0, server);
    machine.run();
    let outcome = machine.outcome(server);
    let (total, device) = (machine.matrix().total(), machine.device_counters());
    Ok(Served {
        clients,
        seconds: outcome.ended as f64 * 1e-9,
        chunks: total.requests as f64,
        pages: total.read as f64,
        commands: device.requests as f64,
        disk_bytes: device.bytes as f64,
        sent_bytes: sent.load(std::sync::atomic::Ordering::Relaxed) as f64,
        waited: outcome.stalled as f64 * 1e-9,
        busy: machine.device_busy() as f64 * 1e-9,
        processors: f64::from(web.processors),
        disks: f64::from(web.disks),
    })
}

/// The sparse backup: MB/s that the array delivers.
fn backup(experiment: &Experiment<Workload>, column: &str) -> Result<f64, ExperimentError> {
    let Backup { device, file_mb, piece_kb, every_kb } = &experiment.workload.backup;
    let mut spec = experiment.machine.clone();
    spec.device.clone_from(device);
    let sparse = format!("{column}-sparse");
    let policies = &experiment.policies;
    let policy = policies.get(&sparse).or(policies.get(column)).map_or(column, String::as_str);
    let mut machine = spec.build(policy)?;
    let bytes = file_mb * 1_000_000;
    let file = machine.add_file(bytes);
    let open = machine.open(file);
    let (piece, every) = (piece_kb << 10, every_kb << 10);
    let reads = (0..bytes / every).map(move |i| Op::Read { open, at: i * every, bytes: piece });
    let process = machine.spawn(0, Listed(reads));
    machine.run();
    let seconds = machine.outcome(process).ended as f64 * 1e-9;
    Ok(machine.device_counters().bytes as f64 * 1e-6 / seconds)
}

/// Largest error of stock's figures, as a share.
const STOCK_WITHIN: f64 = 0.15;

fn judge(figures: &[Figure]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    // The number of clients is given, not found.
    let found = |figure: &&Figure| figure.policy == "stock" && !figure.row.ends_with(": clients");
    for stock in figures.iter().filter(found) {
        let Some(error) = stock.error() else { continue };
        let claim = format!(
            "{}: stock {:.1} {} for {:.1} ({:+.0} %), within {:.0} %",
            stock.row,
            stock.simulated,
            stock.unit,
            stock.published.unwrap_or(f64::NAN),
            error * 100.0,
            STOCK_WITHIN * 100.0
        );
        verdicts.push(Verdict::new(claim, error.abs() <= STOCK_WITHIN));
        let adaptive = figures.iter().find(|f| f.row == stock.row && f.policy == "adaptive");
        let Some(adaptive) = adaptive else { continue };
        let (Some(was), Some(now)) = (stock.published, adaptive.published) else { continue };
        let change = |from: f64, to: f64| (to / from - 1.0) * 100.0;
        let (was, is) = (change(was, now), change(stock.simulated, adaptive.simulated));
        let claim = format!(
            "{}: adaptive changes it by {is:+.0} % for {was:+.0} %, the sign right",
            stock.row
        );
        verdicts.push(Verdict::new(claim, goes_the_same_way(was, is)));
    }
    for figure in figures.iter().filter(|figure| figure.row.starts_with("random reads")) {
        let (is, was) = (figure.simulated, figure.published.unwrap_or(f64::NAN));
        let claim = format!("{}: {is:+.1} for {was:+.1}, within 15 points", figure.row);
        verdicts.push(Verdict::new(claim, (is - was).abs() <= 15.0));
    }
    verdicts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_table_shows_holds_with_a_tenth_of_the_clients() {
        const TENTH: usize = 10;
        let text = include_str!("../../../experiments/servers-2006.toml");
        let mut experiment: Experiment<Workload> = Experiment::parse(NAME, text).expect("valid");
        experiment.workload.web.seconds /= 2.0;
        experiment.workload.backup.file_mb /= TENTH as u64;
        let [stock, adaptive] =
            COLUMNS.map(|column| web(&experiment, column, 1240 / TENTH).expect("it runs"));
        for (figure, grows) in
            [("avg readahead size", true), ("avg io size", true), ("cpu iowait", false)]
        {
            let (was, is) = (stock.value(figure), adaptive.value(figure));
            assert_eq!(is > was, grows, "{figure}: {was} and {is}");
        }
        let [stock, adaptive] = COLUMNS.map(|column| backup(&experiment, column).expect("it runs"));
        assert!(adaptive > 20.0 * stock, "{stock} and {adaptive} MB/s");
    }
}
