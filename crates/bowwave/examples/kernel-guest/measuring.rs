//! Carries patterns out with the stock kernel and with bowwave, and tells what they took.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Result;
use crate::machine::{Place, bowwave, forget_everything};

const SELF: &str = "/proc/self/exe";

/// What a pattern took.
pub(crate) struct Taken {
    checksum: u64,
    /// What the reader had to ask for itself.
    pub(crate) own_bytes: u64,
    /// Of the disk or server, whoever asked.
    pub(crate) requests: u64,
    bytes: u64,
}

impl Taken {
    /// Whether the reader got the same bytes, and the disk read no more than five times as many: a strided reader
    /// passes over four times what it reads, and a window lies beyond. How much is worth reading is the policy's
    /// business, and this disk has far more bandwidth than its latency suggests.
    pub(crate) fn is_right(&self, stock: &Taken) -> bool {
        self.checksum == stock.checksum && self.bytes <= stock.bytes * 5
    }
}

pub(crate) fn figures(stock: &Taken, with: &Taken) -> String {
    let kib = |taken: &Taken| taken.own_bytes >> 10;
    let (stock_kib, with_kib) = (kib(stock), kib(with));
    let (stock_requests, requests) = (stock.requests, with.requests);
    let read = with.bytes as f64 / stock.bytes as f64;
    format!(
        "{stock_kib} -> {with_kib} KiB, {stock_requests} -> {requests} requests, {read:.2} x the bytes"
    )
}

/// Carries a pattern out with a cold cache, with these hooks or with the stock kernel alone.
pub(crate) fn measure(hooks: Option<&str>, pattern: &str, place: Place) -> Result<Taken> {
    forget_everything()?;
    let before = (place.served)()?;
    let words = ["read", pattern, place.folder];
    let output = match hooks {
        None => Command::new(SELF).args(words).output()?,
        Some(hooks) => bowwave(hooks, &[&["run", "--strict", "--", "/init"][..], &words].concat())?,
    };
    let after = (place.served)()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let told: Vec<u64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [checksum, own_bytes] = told[..] else {
        return Err(format!("{pattern}: {}", String::from_utf8_lossy(&output.stderr)).into());
    };
    Ok(Taken { checksum, own_bytes, requests: after.0 - before.0, bytes: after.1 - before.1 })
}

/// Whether bowwave helps the reader of a pattern: it must ask for at most half as much itself.
pub(crate) fn compare(hooks: &str, pattern: &str, place: Place) -> Result<(bool, String)> {
    let (stock, with) = (measure(None, pattern, place)?, measure(Some(hooks), pattern, place)?);
    let is_helped = with.own_bytes * 2 <= stock.own_bytes;
    Ok((is_helped && with.is_right(&stock), figures(&stock, &with)))
}

/// The reader: carries the pattern out; prints its checksum and the bytes that it asked the disk or server for.
pub(crate) fn read(pattern: &str, folder: &str) -> Result<()> {
    let found = patterns::find(pattern).ok_or("there is no such pattern")?;
    let before = own_bytes()?;
    let outcome = demo::worker::perform(found, Path::new(folder))?;
    println!("{} {}", outcome.checksum, own_bytes()? - before);
    Ok(())
}

/// Of this process, and of children that have ended.
fn own_bytes() -> Result<u64> {
    let counters = fs::read_to_string("/proc/self/io")?;
    let line = counters.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    Ok(line.ok_or("no read_bytes in /proc/self/io")?.parse()?)
}
