//! A recording can be read again, whatever happens to the file.

mod support;

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use controller::{Command, Input, Nanos};
use proptest::collection::vec;
use proptest::prelude::*;
use recording::{CreateError, End, Entry, Event, Item, OpenError, Recorder, Recording, Totals};
use support::any;

type Told = (Nanos, Input, Vec<Command>);

/// Records all of these. Returns the file's bytes.
fn record(told: &[Told]) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("recording");
    let mut recorder = Recorder::create(&path, &support::header()).expect("a folder of ours");
    for (now, input, commands) in told {
        recorder.note(*now, input, commands);
    }
    let totals = recorder.finish().expect("there is room");
    let bytes = fs::read(&path).expect("it was written");
    let commands = told.iter().map(|(_, _, commands)| commands.len() as u64).sum();
    let inputs = told.len() as u64;
    assert_eq!(totals, Totals { inputs, commands, lost_inputs: 0, bytes: bytes.len() as u64 });
    bytes
}

/// All items that can be read from these bytes, and how they end.
fn read(bytes: &[u8]) -> Result<(Vec<Item>, End), OpenError> {
    let mut recording = Recording::read(bytes)?;
    let items = recording.by_ref().collect::<Result<_, _>>().expect("memory can be read");
    Ok((items, recording.end().expect("it was read to its end")))
}

/// The bytes of a recording of several blocks, and the offset at which each block ends.
fn in_blocks() -> (Vec<u8>, Vec<usize>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("recording");
    let mut recorder = Recorder::create(&path, &support::header()).expect("a folder of ours");
    let length = || fs::metadata(&path).expect("there").len() as usize;
    let mut ends = vec![length()];
    for at in 0..3 {
        recorder.note(at, &Input::Exited(7), &[Command::LookBehind(true)]);
        wait_until("a block is written", || items_of(&path) == ends.len());
        ends.push(length());
    }
    recorder.finish().expect("there is room");
    ends.push(length());
    (fs::read(&path).expect("it was written"), ends)
}

fn items_of(path: &Path) -> usize {
    Recording::open(path).expect("its header is whole").count()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_inputs_and_commands_are_read_as_they_were_told(
        told in vec((any::<u64>(), any::input(), vec(any::command(), 0..4)), 0..40)
    ) {
        let (items, end) = read(&record(&told)).expect("it is a recording");
        let expected: Vec<Item> = (0..)
            .zip(told)
            .map(|(number, (at, input, commands))| {
                Item::Entry(Entry { number, at, event: Event::Input(input), commands })
            })
            .collect();
        prop_assert_eq!(items, expected);
        prop_assert_eq!(end, End::Clean);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..300), is_framed in any::<bool>()) {
        // With a complete header, the rest is read, too.
        let framed = [&record(&[])[..header_bytes()], &bytes].concat();
        let outcome = read(if is_framed { &framed } else { &bytes });
        prop_assert_eq!(outcome.is_ok(), is_framed);
    }
}

/// Size of the preamble and the header in bytes.
fn header_bytes() -> usize {
    let empty = record(&[]).len();
    let block_with_an_end = 13;
    empty - block_with_an_end
}

#[test]
fn a_recording_cut_at_any_byte_is_read_to_its_last_whole_block() {
    let (bytes, ends) = in_blocks();
    for length in 0..bytes.len() {
        let outcome = read(&bytes[..length]);
        let whole = ends.iter().filter(|end| **end <= length).count();
        match outcome {
            Err(OpenError::NotARecording) => assert!(length < 8, "{length}"),
            Err(OpenError::CutHeader) => assert!(whole == 0, "{length}"),
            Err(odd) => panic!("cut at {length}: {odd}"),
            Ok((items, end)) => {
                assert_eq!(items.len(), whole - 1, "cut at {length}");
                let at_byte = ends[whole - 1] as u64;
                assert_eq!(end, End::Cut { at_byte }, "cut at {length}");
            }
        }
    }
}

#[test]
fn a_changed_bit_is_noticed_at_its_block() {
    let (bytes, ends) = in_blocks();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        match read(&changed) {
            Err(OpenError::NotARecording) => assert!(at < 8, "{at}"),
            Err(OpenError::Format(_)) => assert!((8..12).contains(&at), "{at}"),
            Err(OpenError::DamagedHeader) => assert!((12..ends[0]).contains(&at), "{at}"),
            Err(odd) => panic!("changed at {at}: {odd}"),
            Ok((items, end)) => {
                let block = ends.iter().filter(|end| **end <= at).count();
                assert_eq!(end, End::Damaged { at_byte: ends[block - 1] as u64 }, "{at}");
                assert_eq!(items.len(), block - 1, "{at}");
            }
        }
    }
}

#[test]
fn data_after_the_end_is_damage() {
    let (bytes, ends) = in_blocks();
    let at_byte = ends[ends.len() - 2] as u64;
    let (items, end) = read(&[&bytes[..], b"x"].concat()).expect("its header is whole");
    assert_eq!((items.len(), end), (3, End::Damaged { at_byte }));
}

#[test]
fn inputs_are_in_the_file_before_the_recording_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("recording");
    let mut recorder = Recorder::create(&path, &support::header()).expect("a folder of ours");
    recorder.note(1, &Input::Tick, &[]);
    wait_until("it is written without anything following", || items_of(&path) == 1);
    drop(recorder);
    let mut recording = Recording::open(&path).expect("its header is whole");
    assert_eq!(recording.by_ref().count(), 1);
    assert!(matches!(recording.end(), Some(End::Cut { .. })), "nobody finished it");
}

#[test]
fn only_its_owner_may_read_a_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("recording");
    for _ in 0..2 {
        // The second time, this replaces the older one.
        Recorder::create(&path, &support::header()).expect("ours").finish().expect("room");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn a_reader_of_the_older_recording_sees_nothing_new() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("recording");
    fs::write(&path, "").expect("ours");
    let opened = File::open(&path).expect("there");
    Recorder::create(&path, &support::header()).expect("ours").finish().expect("room");
    assert_eq!(opened.metadata().expect("open").len(), 0);
}

#[test]
fn only_a_recording_is_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |path: &Path| {
        let error = Recorder::create(path, &support::header()).expect_err("it is taken");
        assert!(matches!(error, CreateError::Taken { .. }), "{error}");
        error.to_string()
    };
    let (text, link) = (folder.path().join("text"), folder.path().join("link"));
    fs::write(&text, "my notes").expect("ours");
    assert!(refused(&text).contains("is not overwritten"));
    assert_eq!(fs::read_to_string(&text).expect("there"), "my notes");
    symlink(folder.path().join("nowhere"), &link).expect("ours");
    assert!(refused(&link).contains("is a symbolic link"));
    assert!(!folder.path().join("nowhere").exists());
    assert!(refused(folder.path()).contains("is not a regular file"));
    let others = folder.path().join("others");
    fs::write(&others, "").expect("ours");
    // Only root may do this.
    if chown(&others, Some(1234), None).is_ok() {
        assert!(refused(&others).contains("belongs to another user"));
    }
    let nowhere = Recorder::create(&folder.path().join("none/recording"), &support::header());
    assert!(nowhere.expect_err("no folder").to_string().contains("none/recording"));
}
