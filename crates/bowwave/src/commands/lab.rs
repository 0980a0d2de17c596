//! `bowwave lab`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail, ensure};
use clap::Subcommand;
use lab::{Fault, Lab, LabError, Options, ServeOptions, Status};
use linux::signals::{ENDING, not_ignored};
use serde_json::{Value, json};
use sim::size;

use crate::{print, signals};

/// Make a slow disk: a real block device with a file system, as slow as a device model.
///
/// Needs root and /dev/fuse. The image is kept in memory.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// List the available devices.
    #[arg(long)]
    list: bool,
    /// Print JSON instead of text.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Make a lab; prints its block device and mount point.
    Up(UpArgs),
    /// Show what a lab has served and how well it kept time; without a name, all labs.
    Status {
        /// Name of the lab.
        name: Option<String>,
    },
    /// Remove a lab: mount, block device, image and server.
    Down {
        /// Name of the lab.
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        name: Option<String>,
        /// All labs, including leftovers of killed ones.
        #[arg(long)]
        all: bool,
    },
    #[command(hide = true)]
    Serve {
        #[arg(long)]
        device: String,
        #[arg(long)]
        size: u64,
        #[arg(long)]
        folder: PathBuf,
        #[arg(long, default_value_t = 0.0)]
        inject_late: f64,
        #[arg(long)]
        fault: Vec<Fault>,
    },
}

#[derive(clap::Args)]
struct UpArgs {
    /// A device from `bowwave lab --list`, or a TOML file that describes one.
    #[arg(long, default_value = "hdd")]
    device: String,
    /// Size in bytes, or followed by K, M or G for KiB, MiB or GiB; at least 16M for ext4, more for
    /// xfs and btrfs.
    #[arg(long, default_value = "4G", value_parser = size::parse)]
    size: u64,
    /// File system: ext4, xfs or btrfs; none for a bare device.
    #[arg(long, default_value = "ext4")]
    fs: String,
    /// Name of the lab; by default that of the device, or of its file without the ending.
    #[arg(long)]
    name: Option<String>,
    /// I/O scheduler, for example mq-deadline.
    #[arg(long)]
    scheduler: Option<String>,
    /// For tests: delay replies by this many microseconds on average, as a busy machine does.
    #[arg(long, value_name = "US", default_value_t = 0, hide_default_value = true)]
    inject_late: u32,
    /// Inject a fault: eio:SECTORS, short, spike:MS, hang or vanish, followed by @SECONDS to begin later; may be given
    /// several times.
    #[arg(long, value_name = "FAULT")]
    fault: Vec<Fault>,
}

/// The smallest size for any file system.
const LEAST_BYTES: u64 = 16 << 20;

/// One sector.
const LEAST_BARE_BYTES: u64 = 512;

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        _ if args.list => {
            print::list(["device", "description"], &device::catalog(), args.json)?;
        }
        None => bail!("nothing to do; see `bowwave lab --help`"),
        Some(Action::Up(up)) => return make(up, args.json),
        Some(Action::Status { name }) => return show(name, args.json),
        Some(Action::Down { name, .. }) => return remove(name, args.json),
        Some(Action::Serve { device, size, folder, inject_late, fault }) => {
            let options = ServeOptions {
                device,
                size_bytes: size,
                folder,
                inject_late_us: inject_late,
                faults: fault,
            };
            lab::serve(&options, || {
                // Otherwise the file system of the current folder could not be unmounted while the lab is up.
                std::env::set_current_dir("/")?;
                print::line("ready").map_err(|error| error.0)
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn make(up: UpArgs, as_json: bool) -> anyhow::Result<ExitCode> {
    let least = if up.fs == "none" { LEAST_BARE_BYTES } else { LEAST_BYTES };
    ensure!(up.size >= least, "--size: a lab of this kind needs at least {}", size::format(least));
    let options = Options {
        name: up.name.unwrap_or_else(|| lab::name_for(&up.device)),
        device: up.device,
        size_bytes: up.size,
        fs_type: up.fs,
        scheduler: up.scheduler,
        server: None,
        inject_late_us: up.inject_late.into(),
        faults: up.fault,
    };
    let stop = stop_on_signals()?;
    let lab = match Lab::up_unless(&options, || stop.load(Ordering::Relaxed)) {
        Err(error @ LabError::Stopped) => {
            print::note(error);
            return Ok(ExitCode::from(signals::INTERRUPTED));
        }
        made => made.context("cannot make the lab")?,
    };
    let (node, folder) = (lab.block_device().display(), folder_of(&lab));
    if as_json {
        let row =
            json!({ "name": lab.name(), "block_device": node.to_string(), "mount_point": folder });
        print::line(row)?;
    } else {
        let place = folder.map_or(String::new(), |folder| format!(" {}", folder.display()));
        print::line(format_args!("{node}{place}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the lab's file system is mounted; `None` for a bare device.
fn folder_of(lab: &Lab) -> Option<PathBuf> {
    lab.is_mounted().then(|| lab.mount_point())
}

/// Returns a flag that SIGINT, SIGTERM and similar signals set.
fn stop_on_signals() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in not_ignored(ENDING) {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

fn show(name: Option<String>, as_json: bool) -> anyhow::Result<ExitCode> {
    each(name, as_json, |name| {
        let lab = Lab::attach(name)?;
        let status = lab.status()?;
        let row = json!({
            "name": name,
            "block_device": lab.block_device(),
            "mount_point": folder_of(&lab),
            "late_mean_us": status.late_mean_us(),
            "error_us": status.error_us(),
            "queue_depth_mean": status.depth_mean(),
            "counters": status,
        });
        Ok((row, describe(&lab, &status)))
    })
}

fn remove(name: Option<String>, as_json: bool) -> anyhow::Result<ExitCode> {
    each(name, as_json, |name| {
        lab::remove(name)?;
        Ok((json!({ "name": name, "removed": true }), String::new()))
    })
}

/// Runs `act` on that lab, or on all, and prints the results as JSON or text. A failure does not
/// hide the other results.
fn each(
    name: Option<String>,
    as_json: bool,
    act: impl Fn(&str) -> Result<(Value, String), LabError>,
) -> anyhow::Result<ExitCode> {
    let names = name.map_or_else(lab::list, |name| vec![name]);
    if names.is_empty() && !as_json {
        print::line("no lab is up")?;
    }
    let mut rows = Vec::new();
    let mut code = ExitCode::SUCCESS;
    for name in names {
        match act(&name) {
            Ok((row, text)) => {
                rows.push(row);
                if !as_json && !text.is_empty() {
                    print::line(text)?;
                }
            }
            // The same error would come for every other lab.
            Err(error @ LabError::NotRoot) => return Err(error.into()),
            Err(error) => {
                code = ExitCode::FAILURE;
                rows.push(json!({ "name": name, "error": error.to_string() }));
                print::note(format_args!("lab {name}: {error}"));
            }
        }
    }
    if as_json {
        print::json(&rows.into())?;
    }
    Ok(code)
}

fn describe(lab: &Lab, status: &Status) -> String {
    let place = folder_of(lab).map_or(String::new(), |folder| format!(" on {}", folder.display()));
    format!(
        "{}: {}{place}\n  {} reads, {:.1} MB; {} writes, {:.1} MB; {} seeks\n  \
         queue depth {:.1} on average, {} at most\n  replies {:.0} us late on average, {:.0} us at most; \
         times may be wrong by {:.3} s in total",
        lab.name(),
        lab.block_device().display(),
        status.reads,
        status.bytes_read as f64 * 1e-6,
        status.writes,
        status.bytes_written as f64 * 1e-6,
        status.seeks,
        status.depth_mean(),
        status.depth_max,
        status.late_mean_us(),
        status.late_max_us,
        status.error_us() * 1e-6,
    )
}
