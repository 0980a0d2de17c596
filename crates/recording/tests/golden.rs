//! A recording that is kept with the code. This test fails when a decision changes, or the form of
//! a recording.
//!
//! * If it cannot be read: raise the format in `src/lib.rs`, since older recordings cannot be read, either.
//! * If it differs: look at the entry. If the new decision is better, say so in the commit.
//!
//! In both cases, record it anew and commit it:
//!
//! ```text
//! RENEW_GOLDEN=1 cargo test -p bowwave-recording --test golden
//! ```

mod support;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use controller::Input;
use recording::{End, Entry, Event, Item, Recorder, Recording, Verdict, verify};
use support::session::{Session, play};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/session.bowrec")
}

fn make(path: &Path) {
    let header = support::header();
    let recorder = Recorder::create(path, &header).expect("a folder of ours");
    let mut session = Session::begin(&header, Some(recorder));
    play(&mut session);
    let totals = session.finish().expect("it records");
    assert_eq!(totals.lost_inputs, 0);
}

fn entries(path: &Path) -> Vec<Entry> {
    let recording = Recording::open(path).expect("raise FORMAT, see above");
    let entry = |item| match item {
        Ok(Item::Entry(entry)) => entry,
        odd => panic!("raise FORMAT, see above: {odd:?}"),
    };
    recording.map(entry).collect()
}

#[test]
fn the_golden_session_gives_the_same_commands_as_ever() {
    if std::env::var_os("RENEW_GOLDEN").is_some() {
        make(&golden());
    }
    let mut recording = Recording::open(&golden()).expect("raise FORMAT, see above");
    match verify(&mut recording).expect("its policy is known") {
        Verdict::Identical(checked) => assert_eq!(checked.end, Some(End::Clean), "{checked:?}"),
        Verdict::Differs(difference) => {
            panic!("{}\nnow asks for {:?}", difference.recorded, difference.replayed)
        }
    }
}

/// A change of the form must fail here, not for a user with an older recording.
#[test]
fn the_golden_session_holds_every_kind_of_input_and_command() {
    let entries = entries(&golden());
    let name = |thing: &dyn Debug| {
        let text = format!("{thing:?}");
        text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
    };
    let mut names = BTreeSet::new();
    for entry in &entries {
        match &entry.event {
            Event::Input(Input::Completed(completed)) => names.insert(name(completed)),
            Event::Input(input) => names.insert(name(input)),
            other => names.insert(name(other)),
        };
        names.extend(entry.commands.iter().map(|command| format!("-> {}", name(command))));
    }
    let expected = [
        "-> Count",
        "-> Describe",
        "-> ForgetListing",
        "-> ForgetStream",
        "-> List",
        "-> Listen",
        "-> LookBehind",
        "-> Mark",
        "-> Probe",
        "-> Read",
        "-> ReadFiles",
        "-> Release",
        "-> Remember",
        "-> SetWindow",
        "-> Touched",
        "-> Watch",
        "-> WatchProcess",
        "-> WriteOut",
        "Access",
        "Begun",
        "Described",
        "DiskStats",
        "Exited",
        "FileMiss",
        "FilesRead",
        "Finishing",
        "History",
        "LeftBehind",
        "Listed",
        "MemoryStats",
        "Mounted",
        "Passed",
        "Probed",
        "Read",
        "Released",
        "Tick",
        "Touched",
        "Unmounted",
        "WindowSet",
        "WroteOut",
    ];
    assert_eq!(names.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[test]
fn the_same_session_gives_the_same_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
    make(&one);
    make(&two);
    assert_eq!(entries(&one), entries(&two));
}
