//! How much sooner programs walk a real tree, on a file system that is not new.
//!
//! ```text
//! cargo build --release
//! cargo run --release -p bowwave --example real-tree -- target/release/bowwave net,hdd grep,tar FOLDER
//! ```
//!
//! Copies the named folders to a lab disk whose file system was aged: files of many sizes have come and gone, before
//! and while the folders were copied, so directories and files lie apart. Then the named walkers, of `grep`, `tar`,
//! `cp` and `rsync`, walk them with the stock kernel's windows of 128 KiB and 4 MiB, and under `bowwave run`. Medians of
//! 3 rounds, each of which walks in every way once. `cp` copies to a tmpfs, and `rsync` compares with a copy there.
//! Directories and inodes are cached, unless the last argument is `metadata`. Needs root, FUSE and eBPF.

mod cold;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use cold::{Fallible, shell};
use lab::LabGuard;
use patterns::order::next_random;

const ROUNDS: usize = 3;

/// A file system of this size is half full of files that age it, and has room for a large tree.
const LAB_BYTES: u64 = 4 << 30;

const AGED_BYTES: u64 = LAB_BYTES / 2;

/// Folders for the files that age it.
const AGED_FOLDERS: u64 = 40;

/// The walkers, as shell commands. `tar` reads nothing if its archive is `/dev/null`.
const WALKERS: [(&str, &str); 4] = [
    ("grep", "grep -rqs no-such-word . ; test $? = 1"),
    ("tar", "{ tar cf - . || kill $$; } | cat > /dev/null"),
    ("cp", "cp -r . \"$MEMORY/copied\""),
    ("rsync", "rsync -rn --checksum . \"$MEMORY/other\""),
];

/// The ways to walk, each of which is a column in seconds: windows of the stock kernel in KiB, and bowwave.
const WAYS: [Option<u64>; 3] = [Some(128), Some(4096), None];

const DEFAULT_KB: u64 = 128;

fn main() -> Fallible<()> {
    let (bowwave, words, is_metadata_cold) = cold::words()?;
    let [devices, walkers, folders @ ..] = &words[..] else {
        return Err("name devices, and walkers, separated by commas; and folders to copy".into());
    };
    let walkers = walkers.split(',').map(|name| {
        let known = WALKERS.into_iter().find(|(known, _)| *known == name);
        known.ok_or_else(|| format!("{name} is no walker"))
    });
    let walkers = walkers.collect::<Result<Vec<_>, _>>()?;
    println!("device  walker   files    MiB  128K s    4M s  bowwave  to 128K  to best");
    for device in devices.split(',') {
        let lab = cold::lab("real-tree", device, LAB_BYTES, &bowwave)?;
        lab.set_fast(true)?;
        let tree = lab.mount_point().join("tree");
        fs::create_dir(&tree)?;
        copy_while_aging(folders, &tree, &mut Aging::begin(&lab.mount_point())?)?;
        let state = tempfile::tempdir()?;
        let memory = tempfile::tempdir_in("/dev/shm")?;
        shell(Command::new("cp").arg("-r").arg(&tree).arg(memory.path().join("other")))?;
        lab.set_fast(false)?;
        let bench = Bench {
            bowwave: &bowwave,
            lab: &lab,
            tree,
            state: state.path(),
            memory: memory.path(),
        };
        let (files, bytes) = size_of(&bench.tree)?;
        for (name, walker) in &walkers {
            let rounds = (0..ROUNDS)
                .map(|_| bench.round(walker, is_metadata_cold))
                .collect::<Fallible<Vec<_>>>()?;
            let seconds: [f64; WAYS.len()] = std::array::from_fn(|way| {
                linux::median(rounds.iter().map(|times| times[way]).collect::<Vec<_>>())
                    .unwrap_or(f64::NAN)
            });
            let [small, large, ours] = seconds;
            println!(
                "{device:<7} {name:<7} {files:>6} {:>6} {small:>7.2} {large:>7.2} {ours:>8.2} {:>8.2} {:>8.2}",
                bytes >> 20,
                small / ours,
                small.min(large) / ours
            );
        }
    }
    Ok(())
}

struct Bench<'a> {
    bowwave: &'a Path,
    lab: &'a LabGuard,
    tree: PathBuf,
    state: &'a Path,
    /// A folder in a tmpfs, with a copy of the tree, `other`.
    memory: &'a Path,
}

impl Bench<'_> {
    /// Seconds of all ways to walk.
    fn round(&self, walker: &str, is_metadata_cold: bool) -> Fallible<[f64; WAYS.len()]> {
        let mut seconds = [0.0; WAYS.len()];
        for (way, seconds) in WAYS.iter().zip(&mut seconds) {
            cold::cool(self.lab, is_metadata_cold)?;
            self.lab.set_read_ahead_kb(way.unwrap_or(DEFAULT_KB))?;
            let mut command = match way {
                Some(_) => Command::new("sh"),
                None => {
                    let mut run = Command::new(self.bowwave);
                    run.arg("run").arg("--state").arg(self.state).args(["--", "sh"]);
                    run
                }
            };
            command.args(["-c", walker]).current_dir(&self.tree).env("MEMORY", self.memory);
            let begun = Instant::now();
            shell(&mut command)?;
            *seconds = begun.elapsed().as_secs_f64();
            let _ = fs::remove_dir_all(self.memory.join("copied"));
        }
        Ok(seconds)
    }
}

/// Copies what is in these folders, part by part. Between two parts, other files come and go.
fn copy_while_aging(folders: &[String], tree: &Path, aging: &mut Aging) -> Fallible<()> {
    for (number, folder) in folders.iter().enumerate() {
        let to = tree.join(number.to_string());
        fs::create_dir(&to)?;
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() || entry.file_type()?.is_file() {
                shell(Command::new("cp").arg("-a").arg(entry.path()).arg(&to))?;
                aging.live_on()?;
            }
        }
    }
    Ok(())
}

/// Files that come and go. Their sizes and which of them go are the same each time.
struct Aging {
    folder: PathBuf,
    files: Vec<(PathBuf, u64)>,
    bytes: u64,
    created: u64,
    state: u64,
}

impl Aging {
    /// Fills half of the file system, and then lets twice as many come and go.
    fn begin(mount: &Path) -> Fallible<Self> {
        let folder = mount.join("aged");
        for number in 0..AGED_FOLDERS {
            fs::create_dir_all(folder.join(number.to_string()))?;
        }
        let mut aging = Aging { folder, files: Vec::new(), bytes: 0, created: 0, state: 1 };
        while aging.bytes < AGED_BYTES {
            aging.create()?;
        }
        for _ in 0..2 * aging.files.len() {
            aging.live_on()?;
        }
        Ok(aging)
    }

    /// One file goes, and others come in its place.
    fn live_on(&mut self) -> Fallible<()> {
        let index = (self.random() * self.files.len() as f64) as usize;
        let (path, bytes) = self.files.swap_remove(index);
        fs::remove_file(path)?;
        self.bytes -= bytes;
        while self.bytes < AGED_BYTES {
            self.create()?;
        }
        Ok(())
    }

    /// A file of 4 KiB to 4 MiB, small ones as often as large ones.
    fn create(&mut self) -> Fallible<()> {
        let bytes = (4096.0 * 1024_f64.powf(self.random())) as u64;
        let path = self.folder.join(format!("{}/{}", self.created % AGED_FOLDERS, self.created));
        let mut file = File::create(&path)?;
        file.write_all(&vec![0x5a; bytes as usize])?;
        self.created += 1;
        self.bytes += bytes;
        self.files.push((path, bytes));
        Ok(())
    }

    /// From 0 up to 1.
    fn random(&mut self) -> f64 {
        next_random(&mut self.state) as f64 / (1_u64 << 32) as f64
    }
}

/// Files and bytes below a folder.
fn size_of(folder: &Path) -> Fallible<(u64, u64)> {
    let mut size = (0, 0);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let (files, bytes) = if kind.is_dir() {
            size_of(&entry.path())?
        } else if kind.is_file() {
            (1, entry.metadata()?.len())
        } else {
            (0, 0)
        };
        size = (size.0 + files, size.1 + bytes);
    }
    Ok(size)
}
