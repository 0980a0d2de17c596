//! What `scripts/test-kernels` runs in a virtual machine, as its first process: does bowwave work on this kernel?
//!
//! Prints one line for each feature: `RESULT`, the hooks, the feature, `works` or `fails`, and figures. For patterns,
//! these are the bytes that the reader itself had to ask the disk for, and the requests that the disk served; each
//! with the stock kernel and with bowwave.
//!
//! With `bowwave.servers` on the kernel's command line, it looks at what servers read from instead: LVM over LUKS over
//! md, and a folder of NFS.

use std::fs;

use rustix::system::{RebootCommand, reboot};

use features::Extent;

mod features;
mod machine;
mod measuring;
mod servers;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["read", pattern, folder] => measuring::read(pattern, folder),
        ["copy", from, to] => fs::copy(from, to).map(drop).map_err(Into::into),
        ["stream", path] => servers::stream(path),
        ["tool", program, ref arguments @ ..] => servers::tool(program, arguments),
        _ if std::process::id() == 1 => {
            if let Err(error) = look_at_everything() {
                println!("RESULT\t-\tguest\tfails\t{error}");
            }
            let _ = reboot(RebootCommand::PowerOff);
            return;
        }
        _ => Err("scripts/test-kernels runs this in a virtual machine".into()),
    };
    if let Err(error) = done {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn look_at_everything() -> Result<()> {
    machine::prepare()?;
    println!("KERNEL\t{}", fs::read_to_string("/proc/sys/kernel/osrelease")?.trim());
    let asked = fs::read_to_string("/proc/cmdline")?;
    if asked.contains("bowwave.servers") {
        return servers::look();
    }
    machine::mount_disk(&machine::disk_named(machine::PLAIN)?)?;
    let extent = match &asked {
        asked if asked.contains("bowwave.loads_only") => Extent::Loading,
        asked if asked.contains("bowwave.short") => Extent::Short,
        _ => Extent::Everything,
    };
    let usual = features::look("", extent)?;
    // Functions are the usual choice of kernels without these tracepoints, which leaves nothing to compare.
    if asked.contains("bowwave.compares") && usual.contains("tracepoints") {
        features::look("functions", extent)?;
    }
    Ok(())
}

/// One line for scripts/test-kernels.
fn report(hooks: &str, feature: &str, works: bool, figures: &str) {
    let verdict = if works { "works" } else { "fails" };
    println!("RESULT\t{hooks}\t{feature}\t{verdict}\t{figures}");
}
