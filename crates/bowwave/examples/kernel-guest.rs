//! What `scripts/test-kernels` runs in a virtual machine, as its first process: does bowwave work on this kernel?
//!
//! Prints one line for each feature: `RESULT`, the hooks, the feature, `works` or `fails`, and figures. For patterns,
//! these are the bytes that the reader itself had to ask the disk for, and the requests that the disk served; each
//! with the stock kernel and with bowwave. Nothing is timed, since the machine is emulated.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, reboot};

const DISK: &str = "/dev/nvme0n1";
const FOLDER: &str = "/mnt";
/// What `seq-64k` reads.
const LARGE: &str = "/mnt/f100";
const SELF: &str = "/proc/self/exe";
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

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["read", pattern] => read(pattern),
        ["copy", from, to] => fs::copy(from, to).map(drop).map_err(Into::into),
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
    prepare()?;
    println!("KERNEL\t{}", fs::read_to_string("/proc/sys/kernel/osrelease")?.trim());
    let asked = fs::read_to_string("/proc/cmdline")?;
    let usual = look("", asked.contains("bowwave.loads_only"))?;
    // Functions are the usual choice of kernels without these tracepoints, which leaves nothing to compare.
    if asked.contains("bowwave.compares") && usual.contains("tracepoints") {
        look("functions", false)?;
    }
    Ok(())
}

fn prepare() -> Result<()> {
    for (kind, target) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/run"),
        ("tmpfs", "/tmp"),
    ] {
        mount(kind, target, kind, MountFlags::empty(), None)?;
    }
    mount("securityfs", "/sys/kernel/security", "securityfs", MountFlags::empty(), None)?;
    mount("cgroup2", "/sys/fs/cgroup", "cgroup2", MountFlags::empty(), None)?;
    fs::create_dir("/dev/shm")?;
    symlink("/proc/self/fd", "/dev/fd")?;
    mount(DISK, FOLDER, "ext4", MountFlags::empty(), None)?;
    Ok(())
}

/// Looks at all features with these hooks (the usual ones for an empty text). Returns which hooks doctor says are used,
/// or why none can be.
fn look(hooks: &str, loads_only: bool) -> Result<String> {
    let doctor = bowwave(hooks, &["doctor"])?;
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    println!("{said}");
    let used =
        said.split_once(" (").and_then(|(_, rest)| rest.split_once(')')).unwrap_or_default().0;
    let told = said.lines().find(|line| line.starts_with("MISSING")).unwrap_or(used).to_owned();
    let report = |feature: &str, works: bool, figures: &str| {
        let verdict = if works { "works" } else { "fails" };
        let hooks = if hooks.is_empty() { "usual" } else { hooks };
        println!("RESULT\t{hooks}\t{feature}\t{verdict}\t{figures}");
    };
    report("loads", doctor.status.success(), &told);
    let degraded = said.lines().filter_map(|line| line.strip_prefix("degraded "));
    let degraded =
        degraded.filter(|line| !NOT_OF_THE_KERNEL.iter().any(|name| line.starts_with(name)));
    let names: Vec<&str> = degraded.filter_map(|line| line.split(':').next()).collect();
    report("degraded", true, &names.join(", "));
    if loads_only || !doctor.status.success() {
        return Ok(told);
    }
    // Bowwave measures the disk when it first meets it; that must not count below.
    measure(Some(hooks), "backward-64k")?;
    for (feature, pattern) in READ_AHEAD {
        let (stock, with) = (measure(None, pattern)?, measure(Some(hooks), pattern)?);
        let is_helped = with.own_bytes * 2 <= stock.own_bytes;
        report(feature, is_helped && with.is_right(&stock), &figures(&stock, &with));
    }
    let (stock, with) = (measure(None, "seq-64k")?, measure(Some(hooks), "seq-64k")?);
    let is_no_worse = with.requests * 10 <= stock.requests * 11;
    report("sequential", is_no_worse && with.is_right(&stock), &figures(&stock, &with));
    little_memory(hooks, report)?;
    drop_behind(hooks, report)?;
    Ok(told)
}

/// What a pattern took.
struct Taken {
    checksum: u64,
    /// What the reader had to ask for itself.
    own_bytes: u64,
    /// Of the disk, whoever asked.
    requests: u64,
    bytes: u64,
}

impl Taken {
    /// Whether the reader got the same bytes, and the disk read no more than five times as many: a strided reader
    /// passes over four times what it reads, and a window lies beyond. How much is worth reading is the policy's
    /// business, and this disk has far more bandwidth than its latency suggests.
    fn is_right(&self, stock: &Taken) -> bool {
        self.checksum == stock.checksum && self.bytes <= stock.bytes * 5
    }
}

fn figures(stock: &Taken, with: &Taken) -> String {
    let kib = |taken: &Taken| taken.own_bytes >> 10;
    let (stock_kib, with_kib) = (kib(stock), kib(with));
    let (stock_requests, requests) = (stock.requests, with.requests);
    let read = with.bytes as f64 / stock.bytes as f64;
    format!(
        "{stock_kib} -> {with_kib} KiB, {stock_requests} -> {requests} requests, {read:.2} x the bytes"
    )
}

/// Carries a pattern out with a cold cache, with these hooks or with the stock kernel alone.
fn measure(hooks: Option<&str>, pattern: &str) -> Result<Taken> {
    forget_everything()?;
    let before = disk_counters()?;
    let output = match hooks {
        None => Command::new(SELF).args(["read", pattern]).output()?,
        Some(hooks) => bowwave(hooks, &["run", "--strict", "--", "/init", "read", pattern])?,
    };
    let after = disk_counters()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let told: Vec<u64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [checksum, own_bytes] = told[..] else {
        return Err(format!("{pattern}: {}", String::from_utf8_lossy(&output.stderr)).into());
    };
    let sectors = after.1 - before.1;
    Ok(Taken { checksum, own_bytes, requests: after.0 - before.0, bytes: sectors * 512 })
}

/// The reader: carries the pattern out; prints its checksum and the bytes that it asked the disk for.
fn read(pattern: &str) -> Result<()> {
    let found = patterns::find(pattern).ok_or("there is no such pattern")?;
    let before = own_bytes()?;
    let outcome = demo::worker::perform(found, Path::new(FOLDER))?;
    println!("{} {}", outcome.checksum, own_bytes()? - before);
    Ok(())
}

/// Of this process, and of children that have ended.
fn own_bytes() -> Result<u64> {
    let counters = fs::read_to_string("/proc/self/io")?;
    let line = counters.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    Ok(line.ok_or("no read_bytes in /proc/self/io")?.parse()?)
}

/// Streams that together need more memory than their group has: no more is read than with the stock kernel.
fn little_memory(hooks: &str, report: impl Fn(&str, bool, &str)) -> Result<()> {
    let move_to = |group: &str| fs::write(format!("{group}/cgroup.procs"), "0");
    fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+memory")?;
    fs::create_dir(LITTLE_MEMORY)?;
    fs::write(format!("{LITTLE_MEMORY}/memory.max"), LITTLE_BYTES.to_string())?;
    // Children are born in the group of their parent.
    move_to(LITTLE_MEMORY)?;
    let taken = (measure(None, "streams-16-4k"), measure(Some(hooks), "streams-16-4k"));
    move_to("/sys/fs/cgroup")?;
    let (stock, with) = (taken.0?, taken.1?);
    report("little memory", with.is_right(&stock), &figures(&stock, &with));
    Ok(fs::remove_dir(LITTLE_MEMORY)?)
}

/// A stream, and a copy: next to nothing of what they read and wrote stays cached.
fn drop_behind(hooks: &str, report: impl Fn(&str, bool, &str)) -> Result<()> {
    let managed = ["run", "--strict", "--drop-behind", "--wait", "--", "/init"];
    forget_everything()?;
    bowwave(hooks, &[&managed[..], &["read", "seq-64k"]].concat())?;
    let read = cached_percent(LARGE)?;
    report("drop-behind", read <= 10, &format!("{read} % stays cached"));
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

fn forget_everything() -> Result<()> {
    rustix::fs::sync();
    Ok(fs::write("/proc/sys/vm/drop_caches", "3")?)
}

/// Read requests, and sectors read.
fn disk_counters() -> Result<(u64, u64)> {
    let counters = fs::read_to_string("/sys/block/nvme0n1/stat")?;
    let fields: Vec<&str> = counters.split_whitespace().collect();
    Ok((fields[0].parse()?, fields[2].parse()?))
}

fn bowwave(hooks: &str, words: &[&str]) -> io::Result<Output> {
    let mut command = Command::new("/bin/bowwave");
    command.args(words).env("BOWWAVE_HOOKS", hooks).env("PATH", "/bin").stdin(Stdio::null());
    let output = command.output()?;
    if !output.status.success() {
        println!("bowwave {}: {}", words.join(" "), output.status);
    }
    print!("{}", String::from_utf8_lossy(&output.stderr));
    Ok(output)
}
