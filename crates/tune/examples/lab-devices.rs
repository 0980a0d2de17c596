//! How exact is tuning? Tunes lab devices, whose parameters are known, through FUSE and loop.
//!
//! ```text
//!   cargo run --release -p bowwave-tune --example lab-devices -- BOWWAVE [RUNS [DEVICE...]]
//! ```
//!
//! For each flash drive with a curve published in 2011, prints the published curve, the measured
//! one, the model's error, and the chosen size beside the published one. For a disk, a network
//! volume and a memory card, prints the fitted model beside the true one. Needs root. A run takes
//! half a minute.

use std::path::{Path, PathBuf};

use device::{Request, Spec};
use lab::{LabGuard, Options};
use tune::curve::{self, Point};
use tune::measure::{Effort, Report, Stop};
use tune::target::Target;
use tune::tuning::Tuning;

const PUBLISHED: &str = include_str!("../../../experiments/device-curves-2011.csv");

/// Devices whose parameters tuning should find again.
const KNOWN: [&str; 3] = ["hdd", "net", "sd"];

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let mut words = std::env::args().skip(1);
    let program =
        PathBuf::from(words.next().ok_or("name the bowwave binary that serves the labs")?);
    let runs: u32 = words.next().map_or(Ok(1), |word| word.parse())?;
    let chosen: Vec<String> = words.collect();
    let is_chosen = |name: &str| chosen.is_empty() || chosen.iter().any(|word| word == name);
    println!("Linux {}, {}", linux::provenance::kernel(), linux::provenance::date());
    for drive in published().iter().filter(|drive| is_chosen(&drive.name)) {
        flash(drive, runs, &program)?;
    }
    for name in KNOWN.into_iter().filter(|name| is_chosen(name)) {
        known(name, runs, &program)?;
    }
    Ok(())
}

/// A published curve.
struct Drive {
    name: String,
    curve: Vec<Point>,
    /// Where the plateau begins according to the mark in the published curve.
    marked_kb: u64,
}

fn published() -> Vec<Drive> {
    let mut drives: Vec<Drive> = Vec::new();
    let lines = PUBLISHED.lines().filter(|line| !line.starts_with('#')).skip(1);
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let (Ok(readahead_kb), Ok(mb_s)) = (fields[1].parse(), fields[2].parse()) else {
            continue;
        };
        if drives.last().is_none_or(|drive| drive.name != fields[0]) {
            drives.push(Drive { name: fields[0].into(), curve: Vec::new(), marked_kb: 0 });
        }
        if let Some(drive) = drives.last_mut() {
            drive.curve.push(Point { readahead_kb, mb_s });
            if fields[3] == "1" {
                drive.marked_kb = readahead_kb;
            }
        }
    }
    drives
}

/// Creates the device, tunes it and removes it.
fn tuned(name: &str, program: &Path) -> Outcome<Tuning> {
    let bytes = if name.ends_with("64m") { 64 << 20 } else { 2 << 30 };
    let lab = LabGuard::up(&Options {
        name: format!("tuning-{name}"),
        device: name.into(),
        size_bytes: bytes,
        fs_type: "none".into(),
        scheduler: None,
        server: Some(program.to_owned()),
        inject_late_us: 0.0,
        faults: Vec::new(),
    })?;
    let target = Target::of(lab.block_device())?;
    let mut report = Report::to(|_, _| ());
    Ok(Tuning::of(target, &Effort::NORMAL, &Stop::default(), &mut report)?)
}

fn flash(drive: &Drive, runs: u32, program: &Path) -> Outcome<()> {
    println!("\n{}: marked at {} KiB", drive.name, drive.marked_kb);
    for run in 1..=runs {
        let tuning = tuned(&drive.name, program)?;
        let (Some(measured), Some(model), Some(choice)) =
            (&tuning.measured, &tuning.model, tuning.choice)
        else {
            return Err("nothing was measured".into());
        };
        if run == 1 {
            println!("  {:>6} {:>10} {:>10} {:>10}", "KiB", "published", "measured", "model");
            for (point, error) in measured.curve.iter().zip(&model.error_percent) {
                let of_2011 = drive.curve.iter().find(|p| p.readahead_kb == point.readahead_kb);
                let of_2011 = of_2011.map_or("-".into(), |p| format!("{:.3}", p.mb_s));
                let kb = point.readahead_kb;
                println!("  {kb:>6} {of_2011:>10} {:>10.3} {error:>+8.1} %", point.mb_s);
            }
        }
        let share =
            curve::at(&measured.curve, choice.kb).unwrap_or(0.0) / curve::best(&measured.curve);
        // As marked, or a smaller window that is on the plateau all the same (see `tune::curve`).
        let holds = choice.kb == drive.marked_kb || (choice.kb < drive.marked_kb && share >= 0.985);
        println!(
            "  run {run}: {} KiB at {:.1} % of the best, model off by {:.1} % (rms){}: {}",
            choice.kb,
            share * 100.0,
            model.rms_percent(),
            if measured.disturbed { ", disturbed" } else { "" },
            if holds { "holds" } else { "FAILS" }
        );
    }
    Ok(())
}

fn known(name: &str, runs: u32, program: &Path) -> Outcome<()> {
    let truth = device::load(name)?;
    println!("\n{name}: found, and true");
    for run in 1..=runs {
        let tuning = tuned(name, program)?;
        let model = tuning.model.as_ref().ok_or("nothing was measured")?;
        let figures = [
            ("random read, us", random_us(&model.spec), random_us(&truth)),
            ("bandwidth, MB/s", model.spec.cost().bandwidth * 1e-6, truth.cost().bandwidth * 1e-6),
            ("at once", model.spec.cost().concurrency, truth.cost().concurrency),
        ];
        let cells: Vec<String> = figures
            .iter()
            .map(|(what, found, truth)| {
                format!(
                    "{what} {found:.1} for {truth:.1} ({:+.1} %)",
                    (found / truth - 1.0) * 100.0
                )
            })
            .collect();
        let kb = tuning.choice.map_or(0, |choice| choice.kb);
        println!("  run {run}: {}; {kb} KiB chosen", cells.join(", "));
    }
    Ok(())
}

/// Microseconds of a random 4 KiB read according to the model, averaged over a lab's size.
fn random_us(spec: &Spec) -> f64 {
    const READS: u64 = 2000;
    const SIZE: u64 = 2 << 30;
    let mut model = spec.build(SIZE);
    let (mut now, mut done, mut waited, mut drawn) = (0, Vec::new(), 0, 1u64);
    for n in 0..READS {
        drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let place = (drawn >> 11) as f64 / (1u64 << 53) as f64 * (SIZE - 4096) as f64;
        // The host's own time varies.
        now += 20_000 + n * 7919 % 10_007;
        let began = now;
        model.submit(now, Request { id: n, offset: place as u64 / 4096 * 4096, bytes: 4096 });
        while let Some(next) = model.next_event() {
            now = next;
            model.advance(now, &mut done);
        }
        waited += now - began;
    }
    waited as f64 * 1e-3 / READS as f64
}
