//! The workloads for the rules: runs, runs of pieces, clusters of random reads, long requests, headers of archives,
//! and readers that announce that they read sequentially.

use patterns::order::{Read, backward, forward, stride};
use readahead::{Hint, Nanos};
use sim::scripts::random::Random;
use sim::scripts::sizes::Sizes;

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;

/// Bytes of a program's read.
const REQUEST: u64 = 16 * K;

/// Computing this long for each request limits a reader to 20 MB/s.
const SLOW_NS: Nanos = 800_000;

/// The longest run in bytes.
const LONGEST: u64 = 8 * M;

/// Least distance of the runs of one file in bytes; the largest is twice that.
const APART: u64 = 4 * M;

/// Pieces of the longest sparse run.
const PIECES: u64 = 256;

/// Most reads in a span that is read four times: more would take the simulator too long.
const MOST_HELD: u64 = 1024;

/// Bytes of all files that are read with one request each.
const TOTAL_WHOLE: u64 = 128 * M;

/// Long requests of one reader.
const LONG_REQUESTS: usize = 40;

/// Bytes of an archive of which only the headers are read.
const ARCHIVE: u64 = 64 * M;

/// Bytes that a program reads for one header.
const HEADER: u64 = 8 * K;

/// Bytes of a file whose reader announces sequential reading.
const ANNOUNCED: u64 = 8 * M;

/// Bytes that such a program reads at once, as `cat` does.
const CHUNK: u64 = 128 * K;

/// Number of readers in workloads with several.
const READERS: u64 = 4;

/// One workload.
#[derive(Clone, Debug)]
pub(super) struct Workload {
    pub(super) name: String,
    /// Bytes of each file.
    pub(super) files: Vec<u64>,
    /// The reads of each reader in order: the number of the file, offset and bytes.
    pub(super) readers: Vec<Vec<(usize, Read)>>,
    /// Computing time after each read.
    pub(super) compute: Nanos,
    /// What the readers announce first.
    pub(super) advice: Hint,
}

/// The distribution of run lengths.
#[derive(Clone, Copy, Debug)]
enum Lengths {
    /// `P(run >= x) = x^-a`, from the shortest to the longest.
    Pareto(f64),
    Fixed(u64),
}

impl Lengths {
    /// Lengths between `shortest` and `longest` that add up to `total` or slightly more.
    fn draw(self, total: u64, shortest: u64, longest: u64, random: &mut Random) -> Vec<u64> {
        let count = |count: u64| match self {
            Lengths::Fixed(length) => vec![length; count as usize],
            Lengths::Pareto(a) => (0..count)
                .map(|i| (i as f64 + 0.5) / count as f64)
                .map(|share| (shortest as f64 * share.powf(-1.0 / a)) as u64)
                .map(|length| length.min(longest) / shortest * shortest)
                .collect(),
        };
        let mut lengths = count(16);
        while lengths.iter().sum::<u64>() < total {
            lengths = count(lengths.len() as u64 * 5 / 4);
        }
        random.shuffle(&mut lengths);
        lengths
    }
}

/// Places of extents with these lengths in one file, in random order, and the file's size in bytes.
fn scatter(lengths: &[u64], random: &mut Random) -> (Vec<u64>, u64) {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    random.shuffle(&mut order);
    let mut starts = vec![0; lengths.len()];
    let mut at = 0;
    for index in order {
        at += APART + random.below(APART / REQUEST) * REQUEST;
        starts[index] = at;
        at += lengths[index].next_multiple_of(REQUEST);
    }
    (starts, at + 2 * APART)
}

/// Workloads of plain runs, for every distribution and kind of reader; `total` bytes each.
pub(super) fn runs(total: u64) -> Vec<Workload> {
    let kinds = [
        ("pareto 0.5", Some(Lengths::Pareto(0.5))),
        ("pareto 1", Some(Lengths::Pareto(1.0))),
        ("pareto 1.5", Some(Lengths::Pareto(1.5))),
        ("64 KiB", Some(Lengths::Fixed(64 * K))),
        ("1 MiB", Some(Lengths::Fixed(M))),
        ("files", None),
    ];
    let reading = [
        ("forward", 1, 0, true),
        ("4 readers", READERS, 0, true),
        ("slow", 1, SLOW_NS, true),
        ("backward", 1, 0, false),
    ];
    let mut all = Vec::new();
    for (kind, lengths) in kinds {
        for (name, readers, compute, is_forward) in reading {
            let mut workload = Workload {
                name: format!("{kind} {name}"),
                files: Vec::new(),
                readers: Vec::new(),
                compute,
                advice: Hint::Normal,
            };
            for seed in 0..readers {
                let bytes = total / readers;
                let mut random = Random::new(seed);
                match lengths {
                    Some(lengths) => workload.add_runs(lengths, bytes, is_forward, &mut random),
                    None => workload.add_files(bytes, is_forward),
                }
            }
            all.push(workload);
        }
    }
    all
}

impl Workload {
    /// Adds a reader of runs at random places of one file.
    fn add_runs(&mut self, lengths: Lengths, total: u64, is_forward: bool, random: &mut Random) {
        let lengths = lengths.draw(total, REQUEST, LONGEST, random);
        let (starts, size) = scatter(&lengths, random);
        let file = self.files.len();
        self.files.push(size);
        let runs = starts.iter().zip(&lengths);
        let reads = runs.flat_map(|(start, length)| match is_forward {
            true => forward(*start, *length, REQUEST),
            false => backward(start + length, *length, REQUEST),
        });
        self.readers.push(reads.map(|read| (file, read)).collect());
    }

    /// Adds a reader of whole files.
    fn add_files(&mut self, total: u64, is_forward: bool) {
        let files = (total / (M / 2)).max(4) as usize;
        let sizes = Sizes { files, total_mb: total as f64 / 1e6, spread: 1.5 }.sizes();
        let mut reads = Vec::new();
        for size in sizes {
            let (file, size) = (self.files.len(), size.next_multiple_of(REQUEST));
            self.files.push(size);
            let of_this = match is_forward {
                true => forward(0, size, REQUEST),
                false => backward(size, size, REQUEST),
            };
            reads.extend(of_this.into_iter().map(|read| (file, read)));
        }
        self.readers.push(reads);
    }
}

/// Runs of pieces at equal distances.
pub(super) fn sparse_runs(total: u64) -> Vec<Workload> {
    let pieces = [
        (4, 32),
        (4, 64),
        (4, 128),
        (4, 256),
        (4, 1024),
        (16, 64),
        (16, 256),
        (64, 128),
        (64, 256),
        (64, 1024),
    ];
    let mut all = Vec::new();
    for (piece, step) in pieces.map(|(piece, step)| (piece * K, step * K)) {
        for (kind, lengths) in
            [("scale-free", Lengths::Pareto(1.0)), ("256", Lengths::Fixed(PIECES))]
        {
            let mut random = Random::new(0);
            let count = (total / 4 / step).clamp(PIECES, 4 * PIECES);
            let lengths = lengths.draw(count, 4, PIECES, &mut random);
            let bytes: Vec<u64> = lengths.iter().map(|pieces| pieces * step).collect();
            let (starts, size) = scatter(&bytes, &mut random);
            let runs = starts.iter().zip(&bytes);
            let reads = runs.flat_map(|(start, bytes)| {
                stride(*bytes, piece, step).into_iter().map(move |(at, each)| (start + at, each))
            });
            all.push(Workload {
                name: format!("{}K of {}K x {kind}", piece / K, step / K),
                files: vec![size],
                readers: vec![reads.map(|read| (0, read)).collect()],
                compute: 0,
                advice: Hint::Normal,
            });
        }
    }
    all
}

/// Clusters of random reads, one after the other.
pub(super) fn clusters(total: u64) -> Vec<Workload> {
    let mut all = Vec::new();
    for (request, span) in [(4 * K, M), (4 * K, 4 * M), (4 * K, 16 * M), (64 * K, 16 * M)] {
        let held = span / request;
        let kinds = [
            ("pareto 0.5", Lengths::Pareto(0.5)),
            ("pareto 1", Lengths::Pareto(1.0)),
            ("pareto 1.5", Lengths::Pareto(1.5)),
            ("1/4", Lengths::Fixed(held / 4)),
            ("1", Lengths::Fixed(held)),
            ("4", Lengths::Fixed(4 * held)),
        ];
        let most = if held <= MOST_HELD { kinds.len() } else { kinds.len() - 1 };
        for (kind, lengths) in &kinds[..most] {
            let mut random = Random::new(0);
            let count = (total / 4 / request).min(4 * held);
            let counts = lengths.draw(count, 4, 8 * held, &mut random);
            let (starts, size) = scatter(&vec![span; counts.len()], &mut random);
            let mut reads = Vec::new();
            for (start, count) in starts.into_iter().zip(counts) {
                reads.extend(
                    (0..count).map(|_| (0, (start + random.below(held) * request, request))),
                );
            }
            all.push(Workload {
                name: format!("{}K in {}M x {kind}", request / K, span / M),
                files: vec![size],
                readers: vec![reads],
                compute: 0,
                advice: Hint::Normal,
            });
        }
    }
    all
}

/// Requests at scattered places of a file, some as long as the kernel's window, most longer; the same, each after the
/// header before it; and files that are each read with one request.
pub(super) fn long_requests() -> Vec<Workload> {
    let of = |bytes: u64| {
        let mut random = Random::new(0);
        let (starts, size) = scatter(&[bytes; LONG_REQUESTS], &mut random);
        Workload {
            name: format!("{} KiB", bytes / K),
            files: vec![size],
            readers: vec![starts.into_iter().map(|at| (0, (at, bytes))).collect()],
            compute: 0,
            advice: Hint::Normal,
        }
    };
    let whole = |bytes: u64| Workload {
        name: format!("files of {} MiB", bytes / M),
        files: vec![bytes; (TOTAL_WHOLE / bytes) as usize],
        readers: vec![(0..(TOTAL_WHOLE / bytes) as usize).map(|file| (file, (0, bytes))).collect()],
        compute: 0,
        advice: Hint::Normal,
    };
    let section = |bytes: u64| {
        let scattered = of(bytes);
        let parts = |&(file, (at, bytes)): &(usize, Read)| {
            [(file, (at, HEADER)), (file, (at + HEADER, bytes - HEADER))]
        };
        let reads = scattered.readers[0].iter().flat_map(parts).collect();
        let name = format!("sections of {} KiB", bytes / K);
        Workload { name, readers: vec![reads], ..scattered }
    };
    let scattered = [128 * K, 256 * K, M, 2 * M, 4 * M, 8 * M].map(of);
    let sections = [256 * K, M, 4 * M].map(section);
    let whole = [2 * M, 8 * M, 32 * M].map(whole);
    [scattered.as_slice(), &sections, &whole].concat()
}

/// The headers of an archive, in order or from the last one on; its members are so long in the mean.
pub(super) fn headers() -> Vec<Workload> {
    let of = |mean: u64, is_forward: bool| {
        let mut random = Random::new(0);
        let (mut reads, mut at) = (Vec::new(), APART);
        while at < ARCHIVE {
            reads.push((0, (at, HEADER)));
            // Exponential lengths.
            at += HEADER + (-(mean as f64) * (1.0 - random.unit()).ln()) as u64 / HEADER * HEADER;
        }
        if !is_forward {
            reads.reverse();
        }
        let order = if is_forward { "" } else { " backward" };
        Workload {
            name: format!("headers every {} KiB{order}", mean / K),
            files: vec![ARCHIVE + APART],
            readers: vec![reads],
            compute: 0,
            advice: Hint::Normal,
        }
    };
    [16 * K, 64 * K, 256 * K]
        .into_iter()
        .flat_map(|mean| [of(mean, true), of(mean, false)])
        .collect()
}

/// One reader or several at once, each like a `cat` of its own file: it announces sequential reading.
pub(super) fn announced() -> Vec<Workload> {
    let of = |readers: usize| {
        let reads = |file| (0..ANNOUNCED / CHUNK).map(move |i| (file, (i * CHUNK, CHUNK)));
        Workload {
            name: format!("announced by {readers}"),
            files: vec![ANNOUNCED; readers],
            readers: (0..readers).map(|file| reads(file).collect()).collect(),
            compute: 0,
            advice: Hint::Sequential,
        }
    };
    [1, 4, 16].map(of).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_read_lies_inside_its_file() {
        let requests = [long_requests(), headers(), announced()].concat();
        for workload in [runs(M), sparse_runs(M), clusters(M), requests].concat() {
            let mut reads = workload.readers.iter().flatten();
            let is_inside =
                |(file, (at, bytes)): &(usize, Read)| at + bytes <= workload.files[*file];
            assert!(reads.all(is_inside), "{}", workload.name);
        }
    }

    #[test]
    fn runs_add_up_and_are_as_unequal_as_their_tail() {
        let mut random = Random::new(0);
        let mut draw = |a| Lengths::Pareto(a).draw(32 * M, REQUEST, LONGEST, &mut random);
        let (heavy, light) = (draw(0.5), draw(1.5));
        assert!(heavy.iter().sum::<u64>() >= 32 * M && light.iter().sum::<u64>() >= 32 * M);
        assert!(heavy.iter().max() == Some(&LONGEST) && light.len() > 10 * heavy.len());
    }
}
