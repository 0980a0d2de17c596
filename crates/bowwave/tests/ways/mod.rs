//! Ways of reading a file, each with a known number of reads, faults and pages. The numbers are primes, so that none of
//! them comes about by chance.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::fs::File;
use std::io::{IoSliceMut, Read, Seek, SeekFrom, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};

use rustix::fs::{Advice, copy_file_range, fadvise, sendfile};
use rustix::io::preadv;

use crate::managed::Bench;
use crate::own::Own;
use crate::stage::skipped;

pub(crate) const PAGE: u64 = 4096;
pub(crate) const FILE_BYTES: u64 = 8 << 20;

/// A way of reading, its name, and how many reads, faults and pages it makes.
pub(crate) type Way = (fn(&Path), &'static str, u64, u64, u64);

pub(crate) const ALL: [Way; 8] = [
    (pread, "pread", 23, 0, 23),
    (read, "read", 29, 0, 29 * 16),
    (read_to_end, "read-to-end", 1, 0, FILE_BYTES / PAGE),
    (tails, "tails", 14, 0, 7 * 17),
    (into_flight, "into-flight", 26, 0, 13 * 22),
    (read_vectors, "vectors", 11, 0, 44),
    (send, "sendfile", 5, 0, 505),
    (map, "mmap", 0, 101, 101),
];

/// Whether the command succeeds; and its standard output and error.
pub(crate) fn run(command: &mut Command) -> (bool, String, String) {
    let mut child = Own::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    // A command that prints more than a pipe holds waits until somebody reads.
    let output = in_the_background(child.stdout.take().expect("piped"));
    let error = in_the_background(child.stderr.take().expect("piped"));
    let has_succeeded = child.wait().expect("it ends").success();
    (has_succeeded, output.join().expect("text"), error.join().expect("text"))
}

fn in_the_background(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).expect("text");
        text
    })
}

/// `None` where that program is not installed.
pub(crate) fn installed(program: &str) -> Option<()> {
    match Command::new(program).arg("--version").output() {
        Ok(_) => Some(()),
        Err(error) => skipped(&format!("{program}: {error}")),
    }
}

/// A cold file of the lab.
pub(crate) fn file(bench: &Bench, name: &str) -> PathBuf {
    let path = bench.lab.mount_point().join(name);
    let mut file = File::create(&path).expect("made");
    file.write_all(&vec![7; FILE_BYTES as usize]).expect("written");
    file.sync_all().expect("on the disk");
    path
}

pub(crate) fn pread(path: &Path) {
    let file = File::open(path).expect("opened");
    fadvise(&file, 0, None, Advice::Random).expect("advised");
    let mut page = [0; PAGE as usize];
    (0..23).for_each(|n| file.read_exact_at(&mut page, n * 7 * PAGE).expect("read"));
}

pub(crate) fn read(path: &Path) {
    let mut file = File::open(path).expect("opened");
    (0..29).for_each(|_| file.read_exact(&mut [0; 65536]).expect("read"));
}

/// At the end of the file there is nothing to read, which is no read.
pub(crate) fn read_to_end(path: &Path) {
    let mut file = File::open(path).expect("opened");
    let mut all = vec![0; FILE_BYTES as usize + 1];
    assert_eq!(file.read(&mut all).expect("read"), FILE_BYTES as usize);
    assert_eq!(file.read(&mut all).expect("read"), 0);
}

/// Each read ends where the one before it has ended.
pub(crate) fn tails(path: &Path) {
    let file = File::open(path).expect("opened");
    for _ in 0..7 {
        file.read_exact_at(&mut [0; 16 * PAGE as usize], 0).expect("read");
        file.read_exact_at(&mut [0; PAGE as usize], 15 * PAGE).expect("read");
    }
}

/// Each second read finds its first pages cached and the others on their way.
pub(crate) fn into_flight(path: &Path) {
    let mut file = File::open(path).expect("opened");
    fadvise(&file, 0, None, Advice::Random).expect("advised");
    let (mut begin, mut all) = ([0; 6 * PAGE as usize], [0; 16 * PAGE as usize]);
    for n in 0..13 {
        let at = n * 64 * PAGE;
        file.read_exact_at(&mut begin, at).expect("read");
        let rest = NonZeroU64::new(10 * PAGE);
        fadvise(&file, at + 6 * PAGE, rest, Advice::WillNeed).expect("advised");
        if n % 2 == 0 {
            file.read_exact_at(&mut all, at).expect("read");
        } else {
            file.seek(SeekFrom::Start(at)).expect("there");
            file.read_exact(&mut all).expect("read");
        }
    }
}

pub(crate) fn read_vectors(path: &Path) {
    let file = File::open(path).expect("opened");
    let (mut one, mut three) = ([0; PAGE as usize], [0; 3 * PAGE as usize]);
    for n in 0..11 {
        let buffers = &mut [IoSliceMut::new(&mut one), IoSliceMut::new(&mut three)];
        assert_eq!(preadv(&file, buffers, n * 4 * PAGE), Ok(4 * PAGE as usize));
    }
}

pub(crate) fn send(path: &Path) {
    let mut file = File::open(path).expect("opened");
    let nowhere = File::options().write(true).open("/dev/null").expect("opened");
    for _ in 0..5 {
        let sent = sendfile(&nowhere, &file, None, 101 * PAGE as usize).expect("sent");
        assert_eq!(sent as u64, 101 * PAGE);
    }
    assert_eq!(file.stream_position().expect("a position"), 505 * PAGE);
}

/// A way of copying 505 pages from a file to another one, in 5 calls; and its name.
pub(crate) type Copying = (fn(&File, &File) -> usize, &'static str);

pub(crate) const COPIES: [Copying; 2] = [
    (|from, to| sendfile(to, from, None, 101 * PAGE as usize).expect("sent"), "sendfile"),
    (
        |from, to| copy_file_range(from, None, to, None, 101 * PAGE as usize).expect("copied"),
        "copy_file_range",
    ),
];

pub(crate) fn copy((part, _): Copying, from: &Path, to: &Path) {
    let (from, to) = (File::open(from).expect("opened"), File::create(to).expect("made"));
    (0..5).for_each(|_| assert_eq!(part(&from, &to) as u64, 101 * PAGE));
}

/// Splices 7 times 64 KiB from given places; `false` where that is not possible.
pub(crate) fn splice(path: &Path) -> bool {
    const SCRIPT: &str = "import os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
end, begin = os.pipe()
for n in range(7):
    assert os.splice(file, begin, 65536, offset_src=n * 53 * 4096) == 65536
    assert len(os.read(end, 65536)) == 65536";
    installed("python3").is_some() && {
        let (has_succeeded, _, error) = run(Command::new("python3").args(["-c", SCRIPT]).arg(path));
        assert!(has_succeeded, "{error}");
        true
    }
}

/// Each page of a mapping, in order.
#[allow(unsafe_code)]
pub(crate) fn map_in_order(path: &Path) {
    let file = File::open(path).expect("opened");
    // SAFETY: nobody changes the file.
    let mapping = unsafe { memmap2::Mmap::map(&file) }.expect("mapped");
    mapping.advise(memmap2::Advice::Sequential).expect("advised");
    let sum: u64 = mapping.iter().step_by(PAGE as usize).map(|byte| u64::from(*byte)).sum();
    assert_eq!(sum, 7 * FILE_BYTES / PAGE);
}

/// One page of each 64 KiB, as much as the kernel maps around a fault.
#[allow(unsafe_code)]
pub(crate) fn map(path: &Path) {
    let file = File::open(path).expect("opened");
    // SAFETY: nobody changes the file.
    let mapping = unsafe { memmap2::Mmap::map(&file) }.expect("mapped");
    mapping.advise(memmap2::Advice::Random).expect("advised");
    let sum: u64 = (0..101).map(|n| u64::from(mapping[n * 65536])).sum();
    assert_eq!(sum, 707);
}

/// 17 random reads of 4 KiB by io_uring; whether it succeeds, and what it prints.
pub(crate) fn read_by_io_uring(path: &Path, bench: &Bench) -> (bool, String) {
    let mut fio = Command::new("fio");
    fio.args(["--name=uring", "--ioengine=io_uring", "--rw=randread", "--bs=4k"]);
    fio.args(["--iodepth=4", "--io_size=68k", "--invalidate=0", "--output-format=terse"]);
    fio.arg(format!("--filename={}", path.display())).arg(format!("--size={FILE_BYTES}"));
    let (has_succeeded, _, error) = run(fio.current_dir(bench.state.path()));
    (has_succeeded, error)
}

/// A cold file of that bench, if fio can read it by io_uring.
pub(crate) fn file_for_io_uring(bench: &Bench) -> Option<PathBuf> {
    installed("fio")?;
    let path = file(bench, "uring");
    let (is_able, error) = read_by_io_uring(&path, bench);
    if !is_able {
        return skipped(&format!("fio cannot use io_uring: {}", error.replace('\n', " ")));
    }
    bench.lab.evict().expect("evicted");
    Some(path)
}
