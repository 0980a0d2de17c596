//! Known programs are described as what they are, counts are exact, and sums agree.

use patterns::order::{Read, backward, forward, random, streams, stride};
use proptest::prelude::*;
use trace::recorded::{Header, Recorder, Run};
use trace::{HEADER, SIZES_HEADER, Trace};

use super::*;

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;

/// A disk's answer in microseconds.
const DISK_US: u64 = 8_000;

/// Text of reads, each of which takes so many microseconds, one after the other.
fn reads(process: &str, file: &str, op: &str, reads: &[Read], took_us: u64) -> String {
    let line = |(index, (offset, bytes)): (usize, &Read)| {
        let at = index as u64 * (took_us + 10);
        format!("{at},{process},{file},{op},{offset},{bytes},{took_us}\n")
    };
    reads.iter().enumerate().map(line).collect()
}

fn trace(sizes: &[(&str, u64)], records: &str) -> Trace {
    let sizes: String = sizes.iter().map(|(file, bytes)| format!("{bytes},{file}\n")).collect();
    let text = format!("{SIZES_HEADER}\n{sizes}{HEADER},took_us\n{records}");
    Trace::parse(text.as_bytes()).expect("a trace")
}

fn analysed(sizes: &[(&str, u64)], records: &str) -> Analysis {
    Analysis::of(&trace(sizes, records))
}

/// A text as if `bowwave record` had written it.
fn recorded(text: &Trace) -> Trace {
    let header = Header { bowwave: "1".into(), kernel: "6".into(), date: "2026-11-23".into() };
    let mut bytes = Vec::new();
    let mut recorder = Recorder::begin(&mut bytes, &header).expect("room");
    text.processes().iter().for_each(|name| _ = recorder.process(name));
    text.files().iter().for_each(|file| _ = recorder.file(&file.name, file.bytes));
    for record in text.records() {
        recorder.run(&Run { record: *record, calls: 1, lasted: record.took }).expect("room");
    }
    recorder.finish().expect("room");
    trace::read(&bytes[..]).expect("a trace")
}

/// The pattern and the main cause of waits of cold reads of one file.
fn of_one(op: &str, order: &[Read]) -> (Pattern, Cause) {
    let analysis = analysed(&[("/f", 4 << 30)], &reads("p", "/f", op, order, DISK_US));
    (analysis.streams[0].pattern, analysis.causes[0].0)
}

#[test]
fn patterns_and_causes_are_those_of_the_programs() {
    let order = forward(0, 101 * 64 * K, 64 * K);
    assert_eq!(of_one("read", &order), (Pattern::Forward, Cause::Forward));
    assert_eq!(of_one("mmap", &order), (Pattern::Forward, Cause::Mapped));
    let order = backward(1 << 30, 101 * 64 * K, 64 * K);
    assert_eq!(of_one("read", &order), (Pattern::Backward, Cause::Backward));
    let order = stride(101 * 256 * K, 64 * K, 256 * K);
    assert_eq!(of_one("read", &order), (Pattern::Strided, Cause::Strided));
    let order = random(101, 4 * K, 4 << 30);
    assert_eq!(of_one("read", &order), (Pattern::Random, Cause::Random));
    assert_eq!(of_one("mmap", &order), (Pattern::Random, Cause::MappedRandom));
    let order = streams(7, 23 * 64 * K, 128 * M, 64 * K);
    assert_eq!(of_one("read", &order), (Pattern::InTurn, Cause::Interrupted));
    assert_eq!(of_one("read", &[(0, K)]), (Pattern::FewPlaces, Cause::Start));
    assert_eq!(of_one("read", &[(7 * K, K)]), (Pattern::FewPlaces, Cause::Random));
    assert_eq!(of_one("mmap", &[(7 * M, K)]), (Pattern::FewPlaces, Cause::MappedRandom));
    // A header, then a part of the middle.
    assert_eq!(of_one("read", &[(0, K), (M, K)]).0, Pattern::FewPlaces);
    // Long runs in random order, and short ones.
    let runs = |each| {
        let starts = random(11, M, 4 << 30).into_iter();
        starts.flat_map(|(at, _)| forward(at, each, 16 * K)).collect::<Vec<_>>()
    };
    assert_eq!(of_one("read", &runs(M)).0, Pattern::Forward);
    assert_eq!(of_one("read", &runs(64 * K)).0, Pattern::Random);
}

#[test]
fn neighbours_among_random_reads_are_chance() {
    // A small file of which most is read: many reads adjoin earlier ones.
    let order = random(199, 4 * K, 2 * M);
    let analysis = analysed(&[("/f", 2 * M)], &reads("p", "/f", "read", &order, DISK_US));
    assert!(analysis.streams[0].steps.count(Step::Backward) > 0);
    let causes: Vec<Cause> = analysis.causes.iter().map(|(cause, _)| *cause).collect();
    assert_eq!(causes, [Cause::Random, Cause::Again]);
}

#[test]
fn prime_counts_are_exact() {
    let records = reads("cat", "/a", "read", &forward(0, 23 * 101, 101), DISK_US)
        + &reads("cat", "/a", "mmap", &forward(0, 7 * 4096, 4096), 3)
        + &reads("tac", "/b", "read", &backward(13 * 8 * K, 13 * 8 * K, 8 * K), DISK_US)
        + "0,tac,/b,write,0,17,0\n0,cat,/a,read,1048576,5,1\n0,cat,/a,close,,,\n";
    let analysis = analysed(&[("/a", M), ("/b", 13 * 8 * K)], &records);
    let figures = |usage: &Use| (usage.operations, usage.bytes, usage.distinct_bytes);
    let [cat, tac] = [0, 1].map(|process| &analysis.processes[process]);
    assert_eq!(figures(&cat.usage), (23 + 7, 23 * 101 + 7 * 4096, 7 * 4096));
    assert_eq!(figures(&tac.usage), (13, 13 * 8 * K, 13 * 8 * K));
    assert_eq!((cat.usage.waits.count, tac.usage.waits.count), (23, 13));
    assert_eq!(
        tac.usage.waits.total,
        13 * Durations::OfCalls.wait(DISK_US * 1000, 8 * K).expect("it waits")
    );
    assert_eq!((cat.partners, analysis.streams.len()), (1, 3), "two ways to one file");
    assert_eq!(analysis.written, (1, 17));
    assert_eq!(analysis.total.operations, 43, "what lies beyond the end reads nothing");
    assert_eq!(tac.patterns, [(false, Pattern::SmallFile, 13)]);
}

#[test]
fn small_files_one_after_another_are_told_from_the_start_of_a_large_one() {
    let files: Vec<String> = (0..31).map(|file| format!("/tree/{file}")).collect();
    let mut records: String =
        files.iter().map(|file| reads("grep", file, "read", &[(0, 5 * K)], DISK_US)).collect();
    records += &reads("grep", "/large", "read", &[(0, 5 * K)], DISK_US);
    let analysis = analysed(&[("/large", M)], &records);
    let causes: Vec<_> =
        analysis.causes.iter().map(|(cause, waits)| (*cause, waits.count)).collect();
    assert_eq!(causes, [(Cause::SmallFile, 31), (Cause::Start, 1)]);
    assert_eq!(analysis.processes[0].patterns[0], (false, Pattern::SmallFile, 31));
    assert_eq!(analysis.processes[0].partners, 32);
    let trace = trace(&[("/large", M)], &records);
    let [folder] = &folders(&trace, &analysis)[..] else { panic!("one folder") };
    assert_eq!((folder.path.as_str(), folder.files, folder.processes), ("/tree/", 31, 1));
    assert_eq!((folder.usage.bytes, folder.usage.waits.count), (31 * 5 * K, 31));
    let by_process = analysis.waiting(Cause::SmallFile, |stream| stream.process);
    assert_eq!((by_process.len(), by_process[0].1.count), (1, 31));
}

#[test]
fn what_was_read_before_is_no_matter_of_read_ahead() {
    let order = forward(0, 11 * 64 * K, 64 * K);
    let passes = [order.clone(), order].concat();
    let analysis = analysed(&[("/a", 4 * M)], &reads("cat", "/a", "read", &passes, DISK_US));
    let again = analysis.causes.iter().find(|(cause, _)| *cause == Cause::Again);
    assert_eq!(again.expect("it waits").1.count, 11);
}

#[test]
fn who_follows_close_behind_another_reader_waits_for_what_that_one_has_asked_for() {
    // Each read of `b` begins just after that of `a`, and both get their data at once.
    let pair = |number: u64, op| {
        let (at, offset) = (number * 10_000, number * 64 * K);
        format!("{at},a,/f,read,{offset},65536,9000\n{},b,/f,{op},{offset},65536,8990\n", at + 10)
    };
    for op in ["read", "mmap"] {
        let records: String = (0..23).map(|number| pair(number, op)).collect();
        let analysis = analysed(&[("/f", 64 * M)], &records);
        let of_b = analysis.waits.iter().filter(|wait| analysis.streams[wait.stream].process == 1);
        let causes: Vec<Cause> = of_b.map(|wait| wait.cause).collect();
        assert_eq!(causes, [Cause::UnderWay; 23], "{op}");
        assert!(!analysis.causes.iter().any(|(cause, _)| *cause == Cause::Again));
    }
}

#[test]
fn advice_counts_until_it_is_taken_back_or_the_file_is_closed() {
    let at = |place: u64| format!("{place},p,/a,read,{},4096,9000\n", place * 8192);
    let records = at(1)
        + "2,p,/a,advise random\n"
        + &at(3)
        + "4,p,/a,advise normal\n"
        + &at(6)
        + "7,p,/a,advise random\n"
        + &at(8)
        + "9,p,/a,close\n"
        + &at(13);
    let analysis = analysed(&[("/a", M)], &records);
    let advised: Vec<bool> =
        analysis.waits.iter().map(|wait| wait.cause == Cause::Advised).collect();
    assert_eq!(advised, [false, true, false, true, false]);
}

#[test]
fn without_durations_there_are_no_waits() {
    let text = format!("{HEADER}\n0,p,/a,read,0,4096\n5,p,/a,read,4096,4096\n");
    let analysis = Analysis::of(&Trace::parse(text.as_bytes()).expect("a trace"));
    assert_eq!((analysis.durations, analysis.waits.len()), (Durations::Unknown, 0));
    assert_eq!(analysis.span, (0, 5000));
    let text = format!("{HEADER},took_us\n0,p,/a,read,0,4096,0\n5,p,/a,write,0,4096,7\n");
    let analysis = Analysis::of(&Trace::parse(text.as_bytes()).expect("a trace"));
    assert_eq!(analysis.durations, Durations::Unknown, "a write tells nothing of reads");
}

#[test]
fn pictures_show_a_backward_reader_going_down() {
    let order = backward(16 * M, 16 * M, 64 * K);
    let trace = trace(&[("/a", 16 * M)], &reads("tac", "/a", "read", &order, DISK_US));
    let analysis = Analysis::of(&trace);
    let raster = file_raster(&trace, &analysis, 0);
    let left = |row| raster.waited.runs().iter().find(|run| run.0 == row).map(|run| run.1);
    // The lowest of 80 rows are the last four of 256 reads, from 252/256 of 160 columns on.
    assert_eq!((left(raster.waited.rows - 1), left(0)), (Some(0), Some(157)));
    let sizes = read_sizes(&trace, &analysis);
    assert_eq!(sizes, [SizeBin { from_bytes: 64 * K, reads: 256, waited: 256 }]);
    let (tree, files) = tree_raster(&trace, &analysis);
    assert_eq!((tree.read.rows, files), (1, 1));
}

#[test]
fn a_recorded_wait_counts_in_full_however_short_and_no_wait_is_known_to_be_none() {
    let order = forward(0, 23 * M, M);
    let of = |took_us| trace(&[("/a", 64 * M)], &reads("dd", "/a", "read", &order, took_us));
    let text = of(100);
    assert!(Analysis::of(&text).waits.is_empty(), "a call that copies 1 MiB may take so long");
    let analysis = Analysis::of(&recorded(&text));
    assert_eq!((analysis.total.waits.count, analysis.total.waits.total), (23, 23 * 100_000));
    let warm = Analysis::of(&recorded(&of(0)));
    assert_eq!((warm.durations, warm.waits.len()), (Durations::OfWaits, 0));
}

/// Operations of a few processes on a few files.
fn any_records() -> impl Strategy<Value = String> {
    let op = prop::sample::select(vec!["read", "read", "mmap", "write", "close", "advise random"]);
    let place = prop_oneof![0..1u64 << 20, (0..64u64).prop_map(|page| page * 4096)];
    let bytes = prop_oneof![Just(4096u64), 0..1u64 << 20];
    let record = (0..1u64 << 30, 0..5u8, 0..7u8, op, place, bytes, 0..1u64 << 24);
    prop::collection::vec(record, 0..60).prop_map(|records| {
        let line = |(at, process, file, op, place, bytes, took)| {
            format!("{at},{process},/{file},{op},{place},{bytes},{took}\n")
        };
        records.into_iter().map(line).collect::<String>() + "0,0,/0,read,0,1,1\n"
    })
}

proptest! {
    #[test]
    fn sums_by_stream_file_process_cause_and_time_agree(
        records in any_records(), size in 1..1u64 << 21,
    ) {
        let trace = trace(&[("/0", size), ("/1", size)], &records);
        let analysis = Analysis::of(&trace);
        let total = analysis.total;
        let sum = |usages: &mut dyn Iterator<Item = &Use>, of: fn(&Use) -> u64| -> u64 {
            usages.map(of).sum()
        };
        let streams = || analysis.streams.iter().map(|stream| &stream.usage);
        let parts = |parts: &'_ [Part]| parts.iter().map(|part| part.usage).collect::<Vec<_>>();
        let (files, processes) = (parts(&analysis.files), parts(&analysis.processes));
        for of in [
            (|usage: &Use| usage.operations) as fn(&Use) -> u64,
            |usage| usage.bytes,
            |usage| usage.waits.count,
            |usage| usage.waits.total,
        ] {
            prop_assert_eq!(sum(&mut streams(), of), of(&total));
            prop_assert_eq!(sum(&mut files.iter(), of), of(&total));
            prop_assert_eq!(sum(&mut processes.iter(), of), of(&total));
        }
        let by_cause: u64 = analysis.causes.iter().map(|(_, waits)| waits.total).sum();
        prop_assert_eq!(by_cause, total.waits.total);
        let timeline = timeline(&trace, &analysis, 3);
        let by_time: u64 = timeline.rows.iter().flat_map(|(_, row)| row).sum();
        prop_assert_eq!(by_time, total.waits.total);
        prop_assert!(timeline.rows.len() <= 4);
        let by_length: u64 = wait_lengths(&analysis).iter().map(|bin| bin.total).sum();
        prop_assert_eq!(by_length, total.waits.total);
        let sizes = read_sizes(&trace, &analysis);
        prop_assert_eq!(sizes.iter().map(|bin| bin.reads).sum::<u64>(), total.operations);
        prop_assert_eq!(sizes.iter().map(|bin| bin.waited).sum::<u64>(), total.waits.count);
        for usage in streams() {
            prop_assert!(usage.distinct_bytes <= usage.bytes && usage.distinct_bytes > 0);
        }
        prop_assert!(total.waits.median <= total.waits.p90);
        prop_assert!(total.waits.p90 <= total.waits.longest);
    }
}
