//! How busy block devices were, how large their requests were, and how long these took.

use std::cmp::Reverse;
use std::ops::Range;

use readahead::Nanos;
use trace::{Request, RequestOp, Trace};

use crate::Analysis;
use crate::timeline::{INTERVALS, interval, spread};
use crate::wait::rank;

/// Some reads of a device, or some writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// How many.
    pub count: u64,
    /// The bytes of all.
    pub bytes: u64,
    /// The size that half of them do not exceed, in bytes.
    pub median_bytes: u32,
    /// The largest, in bytes.
    pub largest_bytes: u32,
    /// How long one took on average, from when the driver got it until it was complete.
    pub mean: Nanos,
    /// How long 95 % of them took at most.
    pub p95: Nanos,
}

/// What a device did within some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// For how long it had at least one request, of any kind.
    pub busy: Nanos,
    /// Its reads.
    pub reads: Requests,
    /// Its writes.
    pub writes: Requests,
}

/// What a device did within [`Analysis::span`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceUse {
    /// Index into [`Trace::devices`].
    pub device: u32,
    /// All of it.
    pub all: Activity,
    /// Requests that neither read nor wrote.
    pub others: u64,
}

/// What a device did, interval by interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceTimeline {
    /// The length of an interval; the first one begins with [`Analysis::span`].
    pub interval: Nanos,
    /// Each of them, with the requests that began in it. The first one also has those that began before.
    pub each: Vec<Activity>,
}

/// The devices that had requests, the busiest first. None if the time is empty.
pub(crate) fn used(trace: &Trace, span: (Nanos, Nanos)) -> Vec<DeviceUse> {
    let requests = within(trace, span);
    let numbers = 0..trace.devices().len() as u32;
    let mut all: Vec<DeviceUse> =
        numbers.map(|device| DeviceUse { device, ..DeviceUse::default() }).collect();
    let mut last_ends = vec![0; all.len()];
    for request in requests.clone() {
        let number = request.device as usize;
        let busy = more_busy(request, span, &mut last_ends[number]);
        all[number].all.busy += busy.end - busy.start;
        all[number].others += u64::from(request.op == RequestOp::Other);
    }
    let numbered = requests.map(|request| (request.device as usize, request));
    let each = reads_and_writes(all.len(), numbered);
    for (one, [reads, writes]) in all.iter_mut().zip(each) {
        (one.all.reads, one.all.writes) = (reads, writes);
    }
    all.retain(|one| one.all.reads.count + one.all.writes.count + one.others > 0);
    all.sort_by_key(|one| Reverse(one.all.busy));
    all
}

/// What this device did when.
pub fn device_timeline(trace: &Trace, analysis: &Analysis, device: u32) -> DeviceTimeline {
    let (span, interval) = (analysis.span, interval(analysis));
    let requests = within(trace, span).filter(|request| request.device == device);
    let mut busy = vec![0; INTERVALS];
    let mut last_end = 0;
    for request in requests.clone() {
        let more = more_busy(request, span, &mut last_end);
        spread(&mut busy, interval, more.start - span.0, more.end - span.0);
    }
    let numbered = requests.map(|request| {
        let number = (request.at.saturating_sub(span.0) / interval) as usize;
        (number.min(INTERVALS - 1), request)
    });
    let each = busy.into_iter().zip(reads_and_writes(INTERVALS, numbered));
    let each = each.map(|(busy, [reads, writes])| Activity { busy, reads, writes });
    DeviceTimeline { interval, each: each.collect() }
}

/// The requests that a device had at some moment of this time.
fn within(trace: &Trace, (began, ended): (Nanos, Nanos)) -> impl Iterator<Item = &Request> + Clone {
    let is_within = move |request: &&Request| {
        began < ended && request.at <= ended && request.at + request.took >= began
    };
    trace.requests().iter().filter(is_within)
}

/// The part of this time during which the device had this request and none that began before. `last_end` is until when it
/// is known to be busy.
fn more_busy(
    request: &Request,
    (began, ended): (Nanos, Nanos),
    last_end: &mut Nanos,
) -> Range<Nanos> {
    let start = request.at.max(*last_end).max(began);
    let end = (request.at + request.took).min(ended).max(start);
    *last_end = end;
    start..end
}

/// The reads and the writes of each group.
fn reads_and_writes<'a>(
    groups: usize,
    requests: impl Iterator<Item = (usize, &'a Request)> + Clone,
) -> Vec<[Requests; 2]> {
    let keyed = requests.filter_map(|(group, request)| match request.op {
        RequestOp::Read => Some(((group, 0), request)),
        RequestOp::Write => Some(((group, 1), request)),
        RequestOp::Other => None,
    });
    let mut each = vec![[Requests::default(); 2]; groups];
    let mut times: Vec<((usize, usize), Nanos)> =
        keyed.clone().map(|(key, request)| (key, request.took)).collect();
    times.sort_unstable();
    for of_one in times.chunk_by(|(one, _), (other, _)| one == other) {
        let (group, kind) = of_one[0].0;
        let sum: u128 = of_one.iter().map(|(_, took)| u128::from(*took)).sum();
        let to = &mut each[group][kind];
        to.count = of_one.len() as u64;
        to.mean = (sum / of_one.len() as u128) as Nanos;
        to.p95 = of_one[rank(of_one.len(), 95)].1;
    }
    let mut sizes: Vec<((usize, usize), u32)> =
        keyed.map(|(key, request)| (key, request.bytes)).collect();
    sizes.sort_unstable();
    for of_one in sizes.chunk_by(|(one, _), (other, _)| one == other) {
        let (group, kind) = of_one[0].0;
        let to = &mut each[group][kind];
        to.bytes = of_one.iter().map(|(_, bytes)| u64::from(*bytes)).sum();
        to.median_bytes = of_one[rank(of_one.len(), 50)].1;
        to.largest_bytes = of_one[of_one.len() - 1].1;
    }
    each
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trace::recorded::{Header, Recorder, Run};
    use trace::{Record, TraceOp};

    use super::*;

    const MS: Nanos = 1_000_000;

    fn request(device: u32, op: RequestOp, at_ms: u64, took_ms: u64, bytes: u32) -> Request {
        Request { at: at_ms * MS, took: took_ms * MS, device, op, bytes }
    }

    fn read(device: u32, at_ms: u64, took_ms: u64) -> Request {
        request(device, RequestOp::Read, at_ms, took_ms, 131_072)
    }

    /// A trace of three devices, whose only read begins after 100 ms and takes 997 ms.
    fn traced(requests: &[Request]) -> Trace {
        let header = Header { bowwave: "1".into(), kernel: "6".into(), date: "2026-11-23".into() };
        let mut bytes = Vec::new();
        let mut recorder = Recorder::begin(&mut bytes, &header).expect("room");
        recorder.process("cat").expect("room");
        recorder.file("/f", 4096).expect("room");
        let (at, took, op) = (100 * MS, 997 * MS, TraceOp::Read);
        let record = Record { at, took, process: 0, file: 0, op, offset: 0, bytes: 4096 };
        recorder.run(&Run { record, calls: 1, lasted: 0 }).expect("room");
        for name in ["sda", "sdb", "sdc"] {
            recorder.device(name).expect("room");
        }
        requests.iter().for_each(|request| recorder.request(request).expect("room"));
        recorder.finish().expect("room");
        trace::read(&bytes[..]).expect("a trace")
    }

    fn analysed(requests: &[Request]) -> (Trace, Analysis) {
        let trace = traced(requests);
        let analysis = Analysis::of(&trace);
        (trace, analysis)
    }

    #[test]
    fn a_device_is_busy_while_it_has_a_request_and_the_busiest_comes_first() {
        let mut all = Vec::new();
        // 23 reads of 7 ms, during 13 of which a write begins that takes 1 ms longer.
        all.extend((0..23).map(|n| read(1, 200 + 11 * n, 7)));
        all.extend(
            (0..13).map(|n| request(1, RequestOp::Write, 203 + 11 * n, 5, 4096 + 512 * n as u32)),
        );
        all.extend((0..5).map(|n| request(1, RequestOp::Other, 600 + 10 * n, 3, 0)));
        // 101 reads at once, of which the last one takes 101 ms.
        all.extend((1..=101).map(|took| read(2, 500, took)));
        let (_, analysis) = analysed(&all);
        let reads = |count: u64, mean, p95| Requests {
            count,
            bytes: count * 131_072,
            median_bytes: 131_072,
            largest_bytes: 131_072,
            mean: mean * MS,
            p95: p95 * MS,
        };
        let writes = Requests {
            count: 13,
            bytes: 13 * 4096 + 78 * 512,
            median_bytes: 4096 + 6 * 512,
            largest_bytes: 4096 + 12 * 512,
            mean: 5 * MS,
            p95: 5 * MS,
        };
        let busy = (23 * 7 + 13 + 5 * 3) * MS;
        let first = Activity { busy, reads: reads(23, 7, 7), writes };
        let second =
            Activity { busy: 101 * MS, reads: reads(101, 51, 96), writes: Requests::default() };
        let expected = [
            DeviceUse { device: 1, all: first, others: 5 },
            DeviceUse { device: 2, all: second, others: 0 },
        ];
        assert_eq!(analysis.devices, expected);
    }

    #[test]
    fn a_device_is_busy_within_the_analysed_time_only() {
        // From 100 ms to 1097 ms.
        let all = [
            read(0, 1, 17),
            read(1, 10, 113),
            read(1, 1090, 5000),
            read(2, 0, 9000),
            read(0, 1098, 1),
        ];
        let (_, analysis) = analysed(&all);
        let told = analysis.devices.iter();
        let told = told.map(|one| (one.device, one.all.busy / MS, one.all.reads.count));
        assert_eq!(told.collect::<Vec<_>>(), [(2, 997, 1), (1, 23 + 7, 2)]);
    }

    #[test]
    fn a_trace_that_lasts_no_time_tells_nothing() {
        let (trace, analysis) = analysed(&[read(0, 0, 9000)]);
        let analysis = Analysis { span: (100, 100), ..analysis };
        assert!(used(&trace, analysis.span).is_empty());
        assert_eq!(device_timeline(&trace, &analysis, 0).each, [Activity::default(); INTERVALS]);
    }

    fn any_requests() -> impl Strategy<Value = Vec<Request>> {
        let op = prop::sample::select(vec![RequestOp::Read, RequestOp::Write, RequestOp::Other]);
        let one = (0..3u32, op, 0..1300u64, 0..200u64, any::<u32>());
        let one =
            one.prop_map(|(device, op, at, took, bytes)| request(device, op, at, took, bytes));
        prop::collection::vec(one, 0..60)
    }

    proptest! {
        #[test]
        fn each_moment_counts_once_and_intervals_add_up(requests in any_requests()) {
            let (trace, analysis) = analysed(&requests);
            for one in &analysis.devices {
                let mine = requests.iter().filter(|request| request.device == one.device);
                let has = |ms: u64| mine.clone().any(|request| {
                    (request.at..request.at + request.took).contains(&(ms * MS))
                });
                let busy = (100..1097).filter(|ms| has(*ms)).count() as u64 * MS;
                prop_assert_eq!(one.all.busy, busy);
                let timeline = device_timeline(&trace, &analysis, one.device);
                let sum = |of: fn(&Activity) -> u64| timeline.each.iter().map(of).sum::<u64>();
                prop_assert_eq!(sum(|each| each.busy), busy);
                prop_assert_eq!(sum(|each| each.reads.count), one.all.reads.count);
                prop_assert_eq!(sum(|each| each.writes.bytes), one.all.writes.bytes);
                prop_assert!(timeline.each.iter().all(|each| each.busy <= timeline.interval));
            }
        }
    }
}
