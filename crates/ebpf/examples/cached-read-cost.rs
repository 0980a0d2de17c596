//! Measures what a read of a cached page costs while bowwave watches, in ns: the best of several rounds. Needs root.
//!
//! `cargo run --release -p bowwave-ebpf --example cached-read-cost`

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::Instant;

use controller::{Interest, Listening};
use ebpf::observe::{self, Scope, Watch};
use readahead::{DeviceNumber, FileKey, Mark};

const PAGES: u64 = 256;
const READS: u64 = 400_000;
const ROUNDS: usize = 9;

fn best_ns(file: &File) -> std::io::Result<f64> {
    let mut buffer = [0; 4096];
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        for n in 0..READS {
            file.read_exact_at(&mut buffer, n % PAGES * 4096)?;
        }
        best = best.min(started.elapsed().as_nanos() as f64 / READS as f64);
    }
    Ok(best)
}

fn key(file: &File) -> std::io::Result<FileKey> {
    let about = file.metadata()?;
    Ok(FileKey { dev: DeviceNumber::from_stat(about.dev()), ino: about.ino() })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut file = tempfile::tempfile_in("/var/tmp")?;
    file.write_all(&vec![0; (PAGES * 4096) as usize])?;
    let other = tempfile::tempfile_in("/var/tmp")?;
    println!("{:<44}{:>8}", "cached read of 4 KiB", "ns");
    let show = |what: &str, ns: f64| println!("{what:<44}{ns:>8.0}");

    show("without bowwave", best_ns(&file)?);
    let mut observer = observe::open(&Scope::Machine, None, &[])?;
    observer.watch_file_system(key(&file)?.dev, Interest::All)?;
    show("bowwave runs, no marks are out", best_ns(&file)?);
    let far = Mark { first: 1 << 20, last: 1 << 20 };
    let state = Listening { marked_chunks: 1, ..Default::default() };
    observer.set_mark(key(&other)?, far)?;
    observer.listen(key(&other)?, state)?;
    show("marks are out, in another file", best_ns(&file)?);
    observer.set_mark(key(&file)?, far)?;
    observer.listen(key(&file)?, state)?;
    show("marks are out, in this file", best_ns(&file)?);
    drop(observer);
    let mut observer = observe::open(&Scope::Machine, Some(Watch { least_file_pages: 0 }), &[])?;
    observer.watch_file_system(key(&file)?.dev, Interest::All)?;
    observer.look_behind(true)?;
    show("drop-behind looks at other files", best_ns(&file)?);
    Ok(())
}
