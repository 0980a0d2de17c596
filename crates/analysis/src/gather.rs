//! One pass over a trace, and what its figures add up to.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use readahead::{Hint, PAGE_BYTES};
use trace::{Record, Trace, TraceOp, covered};

use crate::ahead::{self, Ahead};
use crate::cached::Cached;
use crate::cause::{Cause, Setting};
use crate::devices;
use crate::folders::is_small;
use crate::order::{Order, Steps};
use crate::pattern::Pattern;
use crate::wait::{Durations, Waits};
use crate::{Analysis, Part, Stream, Use, Wait};

/// Process, file, and whether through a mapping.
type Key = (u32, u32, bool);

/// Analyses a trace.
pub(crate) fn gather(trace: &Trace) -> Analysis {
    let mut pass = Pass::new(trace);
    trace.records().iter().enumerate().for_each(|(index, record)| pass.take(index, record));
    pass.sum_up()
}

/// What is known of the records so far.
struct Pass<'a> {
    trace: &'a Trace,
    /// The number of each stream.
    numbers: HashMap<Key, usize>,
    streams: Vec<Stream>,
    /// The order in which each stream reads.
    orders: Vec<Order>,
    /// Process and file, where the program has announced random reading.
    advised: HashSet<(u32, u32)>,
    cached: Cached,
    waits: Vec<Wait>,
    /// Stream, first byte, byte after the last.
    ranges: Vec<(usize, u64, u64)>,
    processes: Vec<Part>,
    files: Vec<Part>,
    /// Writes, and their bytes.
    written: (u64, u64),
    durations: Durations,
}

impl<'a> Pass<'a> {
    fn new(trace: &'a Trace) -> Self {
        Pass {
            trace,
            numbers: HashMap::new(),
            streams: Vec::new(),
            orders: Vec::new(),
            advised: HashSet::new(),
            cached: Cached::new(trace.files().len()),
            waits: Vec::new(),
            ranges: Vec::new(),
            processes: vec![Part::default(); trace.processes().len()],
            files: vec![Part::default(); trace.files().len()],
            written: (0, 0),
            durations: Durations::of(trace),
        }
    }

    fn take(&mut self, index: usize, record: &Record) {
        let opened = (record.process, record.file);
        match record.op {
            TraceOp::Close => self.close(opened),
            TraceOp::Advise(Hint::Random) => {
                self.advised.insert(opened);
            }
            TraceOp::Advise(_) => {
                self.advised.remove(&opened);
            }
            _ if !self.trace.has_bytes(record) => {}
            TraceOp::Write => self.write(record),
            TraceOp::Read => self.read(index, record, false),
            TraceOp::Mmap => self.read(index, record, true),
        }
    }

    fn close(&mut self, (process, file): (u32, u32)) {
        self.advised.remove(&(process, file));
        // A mapping stays when the file is closed.
        if let Some(number) = self.numbers.get(&(process, file, false)) {
            self.orders[*number].close();
        }
    }

    fn write(&mut self, record: &Record) {
        self.written.0 += 1;
        self.written.1 += record.bytes;
        let file_bytes = self.trace.files()[record.file as usize].bytes;
        self.cached.take(record, record.end().min(file_bytes));
    }

    fn read(&mut self, index: usize, record: &Record, is_mapped: bool) {
        let file_bytes = self.trace.files()[record.file as usize].bytes;
        let (start, end) = (record.offset, record.end().min(file_bytes));
        let number = self.stream(record, is_mapped);
        let stream = &mut self.streams[number];
        stream.usage.operations += 1;
        stream.usage.bytes += end - start;
        let step = self.orders[number].step(start, end);
        stream.steps.add(step);
        self.ranges.push((number, start, end));
        let before = self.cached.take(record, end);
        let [process, file] =
            [&mut self.processes[record.process as usize], &mut self.files[record.file as usize]];
        [process, file].into_iter().for_each(|part| part.last_until(record));
        if let Some(wait) = self.durations.wait(record.took, end - start) {
            let setting = Setting {
                is_mapped,
                is_small_file: is_small(file_bytes),
                is_advised_random: self.advised.contains(&(record.process, record.file)),
                is_at_start: start < PAGE_BYTES,
                before,
            };
            let cause = Cause::of(step, setting);
            self.waits.push(Wait { record: index, stream: number, wait, cause });
        }
    }

    /// The number of the record's stream, a new one if it is new.
    fn stream(&mut self, record: &Record, is_mapped: bool) -> usize {
        let (process, file) = (record.process, record.file);
        *self.numbers.entry((process, file, is_mapped)).or_insert_with(|| {
            self.streams.push(Stream {
                process,
                file,
                is_mapped,
                pattern: Pattern::FewPlaces,
                steps: Steps::default(),
                usage: Use::default(),
                ahead: Ahead::default(),
            });
            self.orders.push(Order::new(is_mapped));
            self.streams.len() - 1
        })
    }

    fn sum_up(mut self) -> Analysis {
        self.finish_streams();
        self.finish_parts();
        let has_windows = !self.trace.windows().is_empty();
        let ahead = has_windows.then(|| ahead::follow(self.trace, &mut self.streams));
        let causes = Waits::of_each(
            Cause::ALL.len(),
            self.waits.iter().map(|wait| (wait.cause as usize, wait.wait)),
        );
        let mut causes: Vec<_> = Cause::ALL.into_iter().zip(causes).collect();
        causes.retain(|(_, waits)| waits.count > 0);
        causes.sort_by_key(|(_, waits)| Reverse(waits.total));
        let all = Waits::of_each(1, self.waits.iter().map(|wait| (0, wait.wait)));
        let sum = |of: fn(&Use) -> u64| self.files.iter().map(|file| of(&file.usage)).sum();
        let records = self.trace.records();
        let ends = records.iter().map(|record| record.at + record.took);
        let began = records.first().map_or(0, |record| record.at);
        let span = (began, ends.max().unwrap_or(began));
        Analysis {
            span,
            durations: self.durations,
            total: Use {
                operations: sum(|usage| usage.operations),
                bytes: sum(|usage| usage.bytes),
                distinct_bytes: sum(|usage| usage.distinct_bytes),
                waits: all[0],
            },
            written: self.written,
            ahead,
            devices: devices::used(self.trace, span),
            streams: self.streams,
            files: self.files,
            processes: self.processes,
            causes,
            waits: self.waits,
        }
    }

    /// Distinct bytes, waits and patterns of the streams, and what these say of the causes.
    fn finish_streams(&mut self) {
        let waits = self.waits.iter().map(|wait| (wait.stream, wait.wait));
        let waits = Waits::of_each(self.streams.len(), waits);
        // Every stream has read something, so each has its place in the list.
        for (number, distinct_bytes) in covered(self.ranges.clone()) {
            let stream = &mut self.streams[number];
            stream.usage.distinct_bytes = distinct_bytes;
            stream.usage.waits = waits[number];
            let file_bytes = self.trace.files()[stream.file as usize].bytes;
            stream.pattern = Pattern::of(&stream.steps, distinct_bytes, file_bytes);
        }
        for wait in &mut self.waits {
            wait.cause = wait.cause.within(self.streams[wait.stream].pattern);
        }
    }

    /// The figures of files and processes.
    fn finish_parts(&mut self) {
        let streams = &self.streams;
        let of_process = |(number, start, end): &(usize, u64, u64)| {
            let Stream { process, file, .. } = streams[*number];
            ((process, file), *start, *end)
        };
        let mut distinct = vec![0; self.processes.len()];
        for ((process, _), bytes) in covered(self.ranges.iter().map(of_process).collect()) {
            distinct[process as usize] += bytes;
        }
        let keys = |stream: &Stream| (stream.process, stream.file);
        add_up(&mut self.processes, streams, &self.waits, keys, &distinct);
        let of_file =
            |(number, start, end): &(usize, u64, u64)| (streams[*number].file, *start, *end);
        let mut distinct = vec![0; self.files.len()];
        for (file, bytes) in covered(self.ranges.iter().map(of_file).collect()) {
            distinct[file as usize] = bytes;
        }
        let keys = |stream: &Stream| (stream.file, stream.process);
        add_up(&mut self.files, streams, &self.waits, keys, &distinct);
    }
}

/// Adds up the streams of each part. `keys` gives a stream's part and that part's partner.
fn add_up(
    parts: &mut [Part],
    streams: &[Stream],
    waits: &[Wait],
    keys: fn(&Stream) -> (u32, u32),
    distinct: &[u64],
) {
    let of = |wait: &Wait| (keys(&streams[wait.stream]).0 as usize, wait.wait);
    let waits = Waits::of_each(parts.len(), waits.iter().map(of));
    let mut patterns: Vec<BTreeMap<(bool, Pattern), u64>> = vec![BTreeMap::new(); parts.len()];
    let mut partners: HashSet<(u32, u32)> = HashSet::new();
    for stream in streams {
        let index = keys(stream).0 as usize;
        let part = &mut parts[index];
        part.usage.operations += stream.usage.operations;
        part.usage.bytes += stream.usage.bytes;
        part.partners += u64::from(partners.insert(keys(stream)));
        let pattern = (stream.is_mapped, stream.pattern);
        *patterns[index].entry(pattern).or_default() += stream.usage.operations;
    }
    for (index, part) in parts.iter_mut().enumerate() {
        part.usage.distinct_bytes = distinct[index];
        part.usage.waits = waits[index];
        let counts = std::mem::take(&mut patterns[index]).into_iter();
        part.patterns = counts.map(|((mapped, pattern), count)| (mapped, pattern, count)).collect();
        part.patterns.sort_by_key(|(.., count)| Reverse(*count));
    }
}

impl Part {
    /// The part lasts until the end of this record at least.
    fn last_until(&mut self, record: &Record) {
        let end = record.at + record.took;
        let (began, ended) = self.span.unwrap_or((record.at, end));
        self.span = Some((began, ended.max(end)));
    }
}
