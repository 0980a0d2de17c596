//! Compares the demonstration on a quiet machine with runs on a machine that replies late or has other work.
//!
//! ```text
//! cargo build --release && cargo run --release -p bowwave-demo --example busy-machine -- target/release/bowwave
//! ```
//!
//! Needs root, and takes some ten minutes. Further arguments go to each `bowwave demo`, for example
//! `--only backward-64k`.

use std::error::Error;
use std::hint::spin_loop;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use serde_json::Value;

/// What disturbs a demonstration.
#[derive(Clone, Copy)]
enum Disturbance {
    Nothing,
    /// Replies are this many microseconds late on average.
    Late(u32),
    /// This many threads run busy loops.
    Loops(usize),
}

impl Disturbance {
    const ALL: [Disturbance; 5] = [
        Disturbance::Nothing,
        Disturbance::Late(200),
        Disturbance::Late(400),
        Disturbance::Late(1000),
        Disturbance::Loops(2),
    ];

    fn name(self) -> String {
        match self {
            Disturbance::Nothing => "quiet".into(),
            Disturbance::Late(us) => format!("{us} us late"),
            Disturbance::Loops(count) => format!("{count} busy loops"),
        }
    }

    /// The rows of a demonstration under it.
    fn demonstrate(
        self,
        program: &str,
        arguments: &[String],
    ) -> Result<Vec<Value>, Box<dyn Error>> {
        let late_us = if let Disturbance::Late(us) = self { us } else { 0 };
        let loops = if let Disturbance::Loops(count) = self { count } else { 0 };
        let mut command = Command::new(program);
        command.args(["demo", "--json", "--inject-late", &late_us.to_string()]).args(arguments);
        command.stderr(Stdio::inherit());
        let is_over = AtomicBool::new(false);
        let output = thread::scope(|scope| {
            let spin = || {
                while !is_over.load(Ordering::Relaxed) {
                    spin_loop()
                }
            };
            (0..loops).for_each(|_| drop(scope.spawn(spin)));
            let output = command.output();
            is_over.store(true, Ordering::Relaxed);
            output
        })?;
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

/// A figure, and how far it may be wrong in percent.
type Bounded = (f64, f64);

/// The times of a row, or throughput and latency of a point.
fn figures(row: &Value) -> Vec<(&'static str, Bounded)> {
    let error = &row["error_percent"];
    let times =
        [("stock_128k_s", "stock_128k"), ("stock_4m_s", "stock_4m"), ("bowwave_s", "bowwave")];
    let timed = times
        .iter()
        .filter_map(|(name, of)| Some((*name, (row[name].as_f64()?, error[of].as_f64()?))));
    let of_point = ["streams_mb_s", "median_ms"];
    let point =
        of_point.iter().filter_map(|name| Some((*name, (row[name].as_f64()?, error.as_f64()?))));
    timed.chain(point).collect()
}

/// Whether two figures agree within their errors.
fn agree(one: Bounded, other: Bounded) -> bool {
    let error = |(value, percent): Bounded| value * percent.ceil() / 100.0;
    (one.0 - other.0).abs() <= error(one) + error(other)
}

/// Prints the figures of both side by side. Returns how many agree, and how many there are.
fn compare(quiet: &[Value], busy: &[Value]) -> (usize, usize) {
    let (mut within, mut all) = (0, 0);
    for row in quiet {
        let is_same = |other: &&Value| {
            ["device", "pattern", "setting"].iter().all(|key| row[key] == other[key])
        };
        let Some(other) = busy.iter().find(is_same) else { continue };
        let label = [&row["device"], &row["pattern"], &row["setting"]]
            .map(|key| key.as_str().unwrap_or(""));
        for ((name, one), (_, other)) in figures(row).into_iter().zip(figures(other)) {
            all += 1;
            within += usize::from(agree(one, other));
            println!(
                "  {:<40}{name:<14}{:>9.3} \u{b1}{:>3.0}% {:>9.3} \u{b1}{:>3.0}%{}",
                label.join(" "),
                one.0,
                one.1.ceil(),
                other.0,
                other.1.ceil(),
                if agree(one, other) { "" } else { "  outside" }
            );
        }
    }
    (within, all)
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let program = arguments.next().ok_or("name the bowwave program")?;
    let arguments: Vec<String> = arguments.collect();
    let mut quiet = Vec::new();
    let mut summary = Vec::new();
    for disturbance in Disturbance::ALL {
        let began = Instant::now();
        let rows = disturbance.demonstrate(&program, &arguments)?;
        let seconds = began.elapsed().as_secs();
        let refused = rows.iter().filter(|row| row.get("rejected").is_some()).count();
        println!("{}: {} rows in {seconds} s, {refused} refused", disturbance.name(), rows.len());
        if quiet.is_empty() {
            quiet = rows;
            continue;
        }
        let (within, all) = compare(&quiet, &rows);
        summary.push(format!(
            "{:<14}{within} of {all} figures within their bounds, {seconds} s",
            disturbance.name()
        ));
    }
    println!("\n{}", summary.join("\n"));
    Ok(ExitCode::SUCCESS)
}
