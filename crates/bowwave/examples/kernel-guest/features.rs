//! Looks at each feature of bowwave on an ordinary disk.

use std::fs::{self, File};
use std::io;

use crate::Result;
use crate::machine::{DISK, FOLDER, bowwave, forget_everything};
use crate::measuring::{compare, figures, measure};

/// What `seq-64k` reads.
const LARGE: &str = "/mnt/f100";
/// A group that holds less than what is read: its pages are evicted.
const LITTLE_MEMORY: &str = "/sys/fs/cgroup/little";
const LITTLE_BYTES: u64 = 64 << 20;
/// Names of checks begin so that doctor calls degraded because of the guest and not of its kernel.
const NOT_OF_THE_KERNEL: [&str; 2] = ["lab", "/"];

/// Features of read-ahead, each with the pattern of `bowwave demo` that shows it.
const READ_AHEAD: [(&str, &str); 5] = [
    ("backward", "backward-64k"),
    ("strided", "stride-64k-256k"),
    ("mapped", "mmap-seq"),
    ("mapped backward", "mmap-backward"),
    ("tree", "grep-tree"),
];

/// How much to look at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Whether the eBPF programs load.
    Loading,
    /// That, and the first pattern.
    Short,
    Everything,
}

/// Looks at features with these hooks (the usual ones for an empty text). Returns which hooks doctor says are used,
/// or why none can be.
pub(crate) fn look(hooks: &str, extent: Extent) -> Result<String> {
    let doctor = bowwave(hooks, &["doctor"])?;
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    println!("{said}");
    let used =
        said.split_once(" (").and_then(|(_, rest)| rest.split_once(')')).unwrap_or_default().0;
    let told = said.lines().find(|line| line.starts_with("MISSING")).unwrap_or(used).to_owned();
    let report = |feature: &str, works: bool, figures: &str| {
        crate::report(if hooks.is_empty() { "usual" } else { hooks }, feature, works, figures);
    };
    report("loads", doctor.status.success(), &told);
    let degraded = said.lines().filter_map(|line| line.strip_prefix("degraded "));
    let degraded =
        degraded.filter(|line| !NOT_OF_THE_KERNEL.iter().any(|name| line.starts_with(name)));
    let names: Vec<&str> = degraded.filter_map(|line| line.split(':').next()).collect();
    report("degraded", true, &names.join(", "));
    if extent == Extent::Loading || !doctor.status.success() {
        return Ok(told);
    }
    // Bowwave measures the disk when it first meets it; that must not count below.
    measure(Some(hooks), "backward-64k", DISK)?;
    let patterns = if extent == Extent::Short { &READ_AHEAD[..1] } else { &READ_AHEAD[..] };
    for &(feature, pattern) in patterns {
        let (works, figures) = compare(hooks, pattern, DISK)?;
        report(feature, works, &figures);
    }
    if extent == Extent::Short {
        return Ok(told);
    }
    let (stock, with) = (measure(None, "seq-64k", DISK)?, measure(Some(hooks), "seq-64k", DISK)?);
    let is_no_worse = with.requests * 10 <= stock.requests * 11;
    report("sequential", is_no_worse && with.is_right(&stock), &figures(&stock, &with));
    little_memory(hooks, report)?;
    drop_behind(hooks, report)?;
    Ok(told)
}

/// Streams that together need more memory than their group has: they get the same bytes, and the disk reads no more than
/// five times as many.
fn little_memory(hooks: &str, report: impl Fn(&str, bool, &str)) -> Result<()> {
    let move_to = |group: &str| fs::write(format!("{group}/cgroup.procs"), "0");
    fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+memory")?;
    fs::create_dir(LITTLE_MEMORY)?;
    fs::write(format!("{LITTLE_MEMORY}/memory.max"), LITTLE_BYTES.to_string())?;
    // Children are born in the group of their parent.
    move_to(LITTLE_MEMORY)?;
    let taken = (measure(None, "streams-16-4k", DISK), measure(Some(hooks), "streams-16-4k", DISK));
    move_to("/sys/fs/cgroup")?;
    let (stock, with) = (taken.0?, taken.1?);
    report("little memory", with.is_right(&stock), &figures(&stock, &with));
    Ok(fs::remove_dir(LITTLE_MEMORY)?)
}

/// A stream, and a copy: next to nothing of what they read and wrote stays cached.
fn drop_behind(hooks: &str, report: impl Fn(&str, bool, &str)) -> Result<()> {
    let managed = ["run", "--strict", "--drop-behind", "--wait", "--", "/init"];
    forget_everything()?;
    let ran = bowwave(hooks, &[&managed[..], &["read", "seq-64k", FOLDER]].concat())?.status;
    let read = cached_percent(LARGE)?;
    report("drop-behind", ran.success() && read <= 10, &format!("{read} % stays cached"));
    let copy = "/mnt/copy";
    forget_everything()?;
    bowwave(hooks, &[&managed[..], &["copy", LARGE, copy]].concat())?;
    let (read, written) = (cached_percent(LARGE)?, cached_percent(copy)?);
    let is_whole = fs::metadata(LARGE)?.len() == fs::metadata(copy)?.len();
    let figures = format!("{read} % read, {written} % written stays cached");
    report("drop-behind of a copy", is_whole && read <= 10 && written <= 10, &figures);
    Ok(fs::remove_file(copy)?)
}

fn cached_percent(path: &str) -> io::Result<usize> {
    let pages = demo::resident(&File::open(path)?)?;
    Ok(pages.iter().filter(|is_cached| **is_cached).count() * 100 / pages.len())
}
