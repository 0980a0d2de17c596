//! `bowwave replay --verify` and `--show` as users call them: no root, no device.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use recording::{Event, Item, Recorder, Recording};

fn bowwave(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bowwave")).args(arguments).output().expect("it was built")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../recording/tests/golden/session.bowrec")
}

/// The golden recording, changed, as a file in a folder.
fn changed(folder: &Path, change: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut bytes = fs::read(golden()).expect("it is in the repository");
    change(&mut bytes);
    let path = folder.join("changed.bowrec");
    fs::write(&path, bytes).expect("a writable folder");
    path.to_string_lossy().into_owned()
}

fn verify(path: &str) -> Output {
    bowwave(&["replay", "--verify", path])
}

#[test]
fn a_recording_that_is_decided_as_it_was_is_told_in_one_line() {
    let golden = golden().to_string_lossy().into_owned();
    let output = verify(&golden);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(said.contains(" inputs, ") && said.contains(" commands, identical; "), "{said}");
    assert!(said.trim_end().ends_with(" s recorded") && said.lines().count() == 1, "{said}");
    let output = bowwave(&["replay", "--verify", &golden, "--json"]);
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&object["identical"], &object["end"]), (&true.into(), &"clean".into()));
    assert_eq!(object["recorded_by"]["kernel"], "6.18.0");
}

#[test]
fn what_differs_is_named_and_fails() {
    use controller::{Command, Controller, Input};
    use recording::{Header, Recorder};

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("recording");
    let limits = readahead::adaptive::Limits { files: 16, ..Default::default() };
    let header = Header::new("6.18\u{1b}".into(), "today".into(), Default::default(), limits);
    let mut commands = Vec::new();
    let policy = recording::policy(header.limits).expect("sane");
    let mut controller = Controller::new(header.options.clone(), policy, &mut commands);
    let mut recorder = Recorder::create(&path, &header).expect("a folder of ours");
    recorder.begun(0, &commands);
    for (now, wrong) in [(1_000, false), (2_500_000, true), (3_000_000, false)] {
        commands.clear();
        controller.on(now, &Input::Tick, &mut commands);
        commands.extend(wrong.then_some(Command::LookBehind(true)));
        recorder.note(now, &Input::Tick, &commands);
    }
    recorder.finish().expect("there is room");
    let path = path.to_string_lossy();
    let output = verify(&path);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("entry 2 differs, 0.002500 s after the first\n"), "{said}");
    assert!(said.contains("\nrecorded  [LookBehind(true)]\nreplayed  []\n"), "{said}");
    assert!(said.contains(r"Linux 6.18\u{1b}"), "{said}");
    let output = bowwave(&["replay", "--verify", &path, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&object["identical"], &object["number"]), (&false.into(), &2.into()));
    assert_eq!(object["recorded"][0]["LookBehind"], true);
}

#[test]
fn a_recording_is_shown_a_line_an_entry() {
    let golden = golden().to_string_lossy().into_owned();
    let shown = text(&bowwave(&["replay", "--show", &golden]).stdout);
    assert!(shown.starts_with("# bowwave 0.1.0, x86_64, Linux 6.18.0, 2026-11-22"), "{shown}");
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[1].starts_with("0 1.000000 Begun -> [LookBehind("), "{}", lines[1]);
    assert!(shown.contains(" Access(") && shown.contains("-> [Read {"));
    let objects = text(&bowwave(&["replay", "--show", &golden, "--json"]).stdout);
    let objects: Vec<serde_json::Value> =
        objects.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(objects.len(), lines.len());
    assert_eq!(objects[1]["told"], "Begun");
}

#[test]
fn a_recording_that_nobody_finished_is_checked_as_far_as_it_goes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("cut.bowrec");
    let mut whole = Recording::open(&golden()).expect("it is in the repository");
    let mut recorder = Recorder::create(&path, whole.header()).expect("a writable folder");
    let mut entries = 0;
    for item in whole.by_ref() {
        let Ok(Item::Entry(entry)) = item else { panic!("{item:?}") };
        match &entry.event {
            Event::Begun => recorder.begun(entry.at, &entry.commands),
            Event::Input(input) => recorder.note(entry.at, input, &entry.commands),
            Event::Finishing => break,
        }
        entries += 1;
    }
    let written = || Recording::open(&path).map_or(0, Iterator::count);
    let end = Instant::now() + Duration::from_secs(60);
    while written() < entries {
        assert!(Instant::now() < end, "it is never written");
        thread::yield_now();
    }
    drop(recorder);
    let output = verify(&path.to_string_lossy());
    let said = text(&output.stdout);
    assert!(output.status.success() && said.contains("where the recording was cut off"), "{said}");
    assert!(said.starts_with(&format!("{} inputs", entries - 1)), "{entries}: {said}");
}

#[test]
fn a_recording_that_was_cut_off_in_its_first_block_shows_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    // The shortest file that can be opened ends where the first block begins.
    let opens = |length: &usize| {
        let cut = changed(folder.path(), |bytes| bytes.truncate(*length));
        Recording::open(Path::new(&cut)).is_ok()
    };
    let header = (0..10_000).find(opens).expect("it has a header");
    let output = verify(&changed(folder.path(), |bytes| bytes.truncate(header + 1)));
    let said = text(&output.stderr);
    assert!(said.contains("there is nothing to check") && output.stdout.is_empty(), "{said}");
    assert_eq!(output.status.code(), Some(1));
    let cut = folder.path().join("changed.bowrec").to_string_lossy().into_owned();
    let object = bowwave(&["replay", "--verify", &cut, "--json"]).stdout;
    let object: serde_json::Value = serde_json::from_slice(&object).expect("JSON");
    assert_eq!((&object["identical"], &object["inputs"]), (&false.into(), &0.into()));
    let shown = text(&bowwave(&["replay", "--show", &cut, "--json"]).stdout);
    let last: serde_json::Value =
        serde_json::from_str(shown.lines().last().expect("its origin")).expect("JSON");
    assert!(last["end"] == "cut" && last["at_byte"].is_number(), "{last}");
}

#[test]
fn what_cannot_be_read_is_told_in_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |path: &str, why: &str| {
        for option in ["--verify", "--show"] {
            let output = bowwave(&["replay", option, path]);
            let said = text(&output.stderr);
            assert!(said.starts_with("bowwave: ") && said.contains(why), "{option}: {said}");
            assert!(output.status.code() == Some(1) && said.lines().count() == 1, "{said}");
        }
    };
    let middle = fs::metadata(golden()).expect("there").len() as usize / 2;
    refused(&changed(folder.path(), |bytes| bytes[middle] ^= 1), "is damaged at byte ");
    refused(&changed(folder.path(), |bytes| bytes[30] ^= 1), "its header is damaged");
    refused(&changed(folder.path(), |bytes| bytes[8] = 99), "use the version that recorded it");
    refused(&changed(folder.path(), |bytes| bytes.truncate(20)), "nothing was recorded");
    refused(&changed(folder.path(), |bytes| bytes[0] = b'#'), "it is not a recording of bowwave");
    refused(&changed(folder.path(), Vec::clear), "it is not a recording of bowwave");
    refused(&folder.path().to_string_lossy(), "it is not a regular file");
    refused("/no/such/recording", "No such file");
    let said = text(&verify("/no/such/recording").stderr);
    assert_eq!(said.matches("No such file").count(), 1, "{said}");
    let as_trace = text(&bowwave(&["replay", &golden().to_string_lossy()]).stderr);
    assert!(as_trace.contains("--verify") && as_trace.lines().count() == 1, "{as_trace}");
}

#[test]
fn options_of_traces_are_none_of_recordings() {
    let golden = golden().to_string_lossy().into_owned();
    for more in [&["--policy", "linux-6"][..], &["trace.csv"], &["--show", &golden], &["--log"]] {
        let output = bowwave(&[&["replay", "--verify", &golden], more].concat());
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        assert!(text(&output.stderr).contains("cannot be used with"), "{more:?}");
    }
}
