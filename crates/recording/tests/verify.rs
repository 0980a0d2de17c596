//! The same inputs give the same commands, and a difference is found.

mod support;

use std::path::Path;

use controller::{Command, Controller, Input, Nanos};
use proptest::collection::vec;
use proptest::prelude::*;
use readahead::adaptive::Limits;
use recording::{Checked, End, Header, Recorder, Recording, Verdict, VerifyError, policy, verify};
use support::any;
use support::session::{Session, play};

/// Where a recording is made and checked.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Place(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self) -> std::path::PathBuf {
        self.0.path().join("recording")
    }

    fn recorder(&self, header: &Header) -> Recorder {
        Recorder::create(&self.path(), header).expect("a folder of ours")
    }

    fn verify(&self) -> Result<Verdict, VerifyError> {
        verify(&mut open(&self.path()))
    }
}

fn open(path: &Path) -> Recording<impl std::io::Read + use<>> {
    Recording::open(path).expect("its header is whole")
}

/// Records one input wrongly.
fn record_wrongly(place: &Place, wrong: usize) {
    let header = support::header();
    let mut commands = Vec::new();
    let policy = policy(header.limits).expect("sane");
    let mut controller = Controller::new(header.options.clone(), policy, &mut commands);
    let mut recorder = place.recorder(&header);
    recorder.begun(5, &commands);
    for number in 1..=20 {
        commands.clear();
        let now = 5 + number as Nanos * 1_000_000_000;
        controller.on(now, &Input::Tick, &mut commands);
        if number == wrong {
            commands.push(Command::LookBehind(true));
        }
        recorder.note(now, &Input::Tick, &commands);
    }
    recorder.finish().expect("there is room");
}

#[test]
fn a_replayed_session_gives_the_same_commands() {
    let (place, header) = (Place::new(), support::header());
    let mut session = Session::begin(&header, Some(place.recorder(&header)));
    play(&mut session);
    let totals = session.finish().expect("it records");
    let Verdict::Identical(checked) = place.verify().expect("its policy is known") else {
        panic!("it differs")
    };
    assert_eq!(checked.inputs, totals.inputs);
    assert!(checked.commands > totals.commands, "the first ones are compared as well");
    assert_eq!((checked.end, checked.lost_inputs), (Some(End::Clean), None));
    assert!(checked.recorded_ns > 12_000_000_000);
}

#[test]
fn the_first_entry_that_differs_is_named() {
    let place = Place::new();
    record_wrongly(&place, 13);
    let Verdict::Differs(difference) = place.verify().expect("its policy is known") else {
        panic!("nothing was found")
    };
    assert_eq!((difference.recorded.number, difference.after_ns), (13, 13_000_000_000));
    let recorded = &difference.recorded.commands;
    assert_eq!(recorded.last(), Some(&Command::LookBehind(true)));
    assert_eq!(difference.replayed, recorded[..recorded.len() - 1]);
}

#[test]
fn other_limits_give_other_commands() {
    let place = Place::new();
    let header = support::header();
    let small = Limits { plan_bytes: 1 << 17, ..Limits::default() };
    let told = Header { limits: small, ..header.clone() };
    let mut session = Session::begin(&header, Some(place.recorder(&told)));
    play(&mut session);
    session.finish();
    assert!(matches!(place.verify(), Ok(Verdict::Differs(_))));
}

#[test]
fn nothing_is_compared_after_lost_inputs() {
    let (place, header) = (Place::new(), support::header());
    let mut commands = Vec::new();
    let policy = policy(header.limits).expect("sane");
    Controller::new(header.options.clone(), policy, &mut commands);
    let mut recorder = place.recorder(&header);
    recorder.begun(0, &commands);
    // More than can wait for any disk: some inputs are lost, so what follows cannot be compared.
    let too_many = vec![Command::LookBehind(true); recording::QUEUE_BYTES];
    recorder.note(1, &Input::Tick, &too_many);
    recorder.note(2, &Input::Tick, &too_many[..1]);
    recorder.finish().expect("there is room");
    let checked = Checked { commands: 1, lost_inputs: Some(1), ..Checked::default() };
    assert_eq!(place.verify().expect("its policy is known"), Verdict::Identical(checked));
}

#[test]
fn limits_that_no_bowwave_sets_are_refused() {
    let place = Place::new();
    let limits = Limits { files: usize::MAX, ..Limits::default() };
    let header = Header { limits, ..support::header() };
    place.recorder(&header).finish().expect("there is room");
    let error = place.verify().expect_err("it cannot be built").to_string();
    assert!(error.contains("no bowwave sets"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_a_controller_is_told_it_decides_again_as_it_did(
        told in vec((0..100_000_000u64, any::input()), 0..200),
        files in prop_oneof![Just(64usize), Just(16), Just(1)],
    ) {
        let place = Place::new();
        let limits = Limits { files, ..Limits::default() };
        let header = Header { limits, ..support::header() };
        let (mut now, mut commands) = (0, Vec::new());
        let policy = policy(header.limits).expect("sane");
        let mut controller = Controller::new(header.options.clone(), policy, &mut commands);
        let mut recorder = place.recorder(&header);
        recorder.begun(now, &commands);
        for (pause, input) in &told {
            now += pause;
            commands.clear();
            controller.on(now, input, &mut commands);
            recorder.note(now, input, &commands);
        }
        recorder.finish().expect("there is room");
        let verdict = place.verify().expect("its policy is known");
        let is_identical = matches!(verdict, Verdict::Identical(c) if c.inputs == told.len() as u64);
        prop_assert!(is_identical, "{verdict:?}");
    }
}
