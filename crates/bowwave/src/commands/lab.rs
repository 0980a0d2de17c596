//! `bowwave lab`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Subcommand;
use lab::{Lab, Options, ServeOptions, Status};
use serde_json::json;

/// Make a slow disk: a device model behind a real block device and file system.
///
/// Needs root and /dev/fuse. The image lives in memory.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Name the devices there are.
    #[arg(long)]
    list: bool,
    /// JSON instead of text.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Make a lab; prints its block device and where it is mounted.
    Up(UpArgs),
    /// What a lab has served and how well it kept time; all labs without a name.
    Status {
        /// The lab's name.
        name: Option<String>,
    },
    /// Remove a lab and every trace of it.
    Down {
        /// The lab's name.
        #[arg(required_unless_present = "all")]
        name: Option<String>,
        /// All that are up, or were left behind.
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
    },
}

#[derive(clap::Args)]
struct UpArgs {
    /// A device of `bowwave lab --list`, or a TOML file that describes one.
    #[arg(long, default_value = "hdd")]
    device: String,
    /// Size, for example 4G.
    #[arg(long, default_value = "4G", value_parser = parse_size)]
    size: u64,
    /// File system.
    #[arg(long, default_value = "ext4")]
    fs: String,
    /// Name; the device's by default.
    #[arg(long)]
    name: Option<String>,
    /// I/O scheduler, for example mq-deadline.
    #[arg(long)]
    scheduler: Option<String>,
}

pub(crate) fn main(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        _ if args.list => list_devices(args.json)?,
        None => bail!("nothing to do; see `bowwave lab --help`"),
        Some(Action::Up(up)) => make(up, args.json)?,
        Some(Action::Status { name }) => show(name, args.json)?,
        Some(Action::Down { name, all }) => return remove(name, all),
        Some(Action::Serve { device, size, folder }) => {
            let options = ServeOptions { device, size_bytes: size, folder };
            lab::serve(&options, || println!("ready"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list_devices(as_json: bool) -> anyhow::Result<()> {
    let devices = device::catalog();
    if as_json {
        let rows =
            devices.iter().map(|(name, text)| json!({ "device": name, "description": text }));
        println!("{}", serde_json::to_string_pretty(&rows.collect::<Vec<_>>())?);
    } else {
        devices.iter().for_each(|(name, description)| println!("{name:<19} {description}"));
    }
    Ok(())
}

fn make(up: UpArgs, as_json: bool) -> anyhow::Result<()> {
    let options = Options {
        name: up.name.unwrap_or_else(|| up.device.clone()),
        device: up.device,
        size_bytes: up.size,
        fs_type: up.fs,
        scheduler: up.scheduler,
        server: None,
    };
    let lab = Lab::up(&options).context("cannot make the lab")?;
    let (node, folder) = (lab.block_device().display(), lab.mount_point());
    if as_json {
        let row =
            json!({ "name": lab.name(), "block_device": node.to_string(), "mount_point": folder });
        println!("{row}");
    } else {
        println!("{node} {}", folder.display());
    }
    Ok(())
}

fn show(name: Option<String>, as_json: bool) -> anyhow::Result<()> {
    let names = name.map_or_else(lab::list, |name| vec![name]);
    let mut rows = Vec::new();
    for name in names {
        let lab = Lab::attach(&name)?;
        let status = lab.status()?;
        if as_json {
            rows.push(json!({
                "name": name,
                "block_device": lab.block_device(),
                "mount_point": lab.mount_point(),
                "late_mean_us": status.late_mean_us(),
                "queue_depth_mean": status.depth_mean(),
                "counters": status,
            }));
        } else {
            println!("{}", describe(&lab, &status));
        }
    }
    if as_json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    }
    Ok(())
}

fn describe(lab: &Lab, status: &Status) -> String {
    format!(
        "{}: {} on {}\n  {} reads, {:.1} MB; {} writes, {:.1} MB; {} seeks\n  \
         queue depth {:.1} on average, {} at most\n  replies {:.0} us late on average, {:.0} us at most{}",
        lab.name(),
        lab.block_device().display(),
        lab.mount_point().display(),
        status.reads,
        status.bytes_read as f64 * 1e-6,
        status.writes,
        status.bytes_written as f64 * 1e-6,
        status.seeks,
        status.depth_mean(),
        status.depth_max,
        status.late_mean_us(),
        status.late_max_us,
        status
            .rejection()
            .map_or(String::new(), |reason| format!("\n  NOT FIT FOR FIGURES: {reason}")),
    )
}

fn remove(name: Option<String>, all: bool) -> anyhow::Result<ExitCode> {
    let names = if all { lab::list() } else { name.into_iter().collect() };
    let mut code = ExitCode::SUCCESS;
    for name in names {
        if let Err(error) = Lab::attach(&name).and_then(|lab| lab.down()) {
            eprintln!("bowwave: lab {name}: {error}");
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

/// `4G`, `512M`, `65536`.
fn parse_size(text: &str) -> Result<u64, String> {
    let (number, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: u64 =
        number.parse().map_err(|_| format!("{text:?} is no size; write 512M or 4G"))?;
    let bytes = number.checked_mul(1 << shift).ok_or_else(|| format!("{text:?} is too large"))?;
    if bytes < 16 << 20 { Err("a lab needs at least 16M".into()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_unit() {
        assert_eq!(parse_size("4G"), Ok(4 << 30));
        assert_eq!(parse_size("512M"), Ok(512 << 20));
        for bad in ["", "G", "4T", "-1G", "1M", "99999999999999G"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }
}
