//! Records the demonstration's figures, which `bowwave reproduce demo` compares with the simulator's.
//!
//! ```text
//! cargo build --release
//! cargo run --release -p bowwave-demo --example record -- target/release/bowwave > demo.csv
//! mv demo.csv experiments/
//! ```
//!
//! Needs root, an idle machine and more than an hour. Further arguments go to `bowwave demo`, for example `--rounds 1`.

use std::error::Error;
use std::process::{Command, Stdio};

use patterns::PATTERNS;
use serde_json::Value;

/// Settings of a row, by the names of its times and of their errors.
const TIMES: [(&str, &str, &str); 3] = [
    ("stock 128K", "stock_128k_s", "stock_128k"),
    ("stock 4M", "stock_4m_s", "stock_4m"),
    ("bowwave", "bowwave_s", "bowwave"),
];

/// Settings of a trade-off: their names in the file, and in the demonstration's rows. Others lie between these.
const POINTS: [(&str, &str); 3] =
    [("stock 128K", "stock 128K"), ("stock 4M", "stock 4096K"), ("bowwave", "bowwave")];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let program = arguments.next().ok_or("name the bowwave program")?;
    let all: Vec<&str> = PATTERNS.iter().map(|pattern| pattern.name).collect();
    let mut command = Command::new(&program);
    command.args(["demo", "--json", "--full", "--device", "hdd,net"]);
    let arguments: Vec<String> = arguments.collect();
    if !arguments.iter().any(|argument| argument == "--only") {
        command.args(["--only", &all.join(",")]);
    }
    let output = command.args(arguments).stderr(Stdio::inherit()).output()?;
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    let kernel = said_by(Command::new("uname").arg("-r"))?;
    let date = said_by(Command::new("date").args(["-u", "+%F"]))?;
    let version = said_by(Command::new(&program).arg("--version"))?;
    println!(
        "# Recorded by the example `record` of crates/demo: {version}, Linux {kernel}, {date}."
    );
    println!("# error_percent: by how much the busy machine may have changed the figure.");
    println!("device,pattern,setting,unit,live,error_percent");
    rows.iter().for_each(print);
    Ok(())
}

fn said_by(command: &mut Command) -> Result<String, Box<dyn Error>> {
    Ok(String::from_utf8(command.output()?.stdout)?.trim().to_owned())
}

/// Prints the figures of a row; one without any was rejected or skipped.
fn print(row: &Value) {
    for (setting, time, error) in TIMES {
        print_figure(row, setting, "s", &row[time], &row["error_percent"][error]);
    }
    for (setting, _) in POINTS.iter().filter(|(_, name)| row["setting"] == *name) {
        print_figure(row, setting, "MB/s", &row["streams_mb_s"], &row["error_percent"]);
        print_figure(row, setting, "ms", &row["median_ms"], &row["error_percent"]);
    }
}

fn print_figure(row: &Value, setting: &str, unit: &str, figure: &Value, error_percent: &Value) {
    let (Some(device), Some(pattern)) = (row["device"].as_str(), row["pattern"].as_str()) else {
        return;
    };
    if let (Some(figure), Some(error)) = (figure.as_f64(), error_percent.as_f64()) {
        println!("{device},{pattern},{setting},{unit},{figure:.4},{error:.1}");
    }
}
