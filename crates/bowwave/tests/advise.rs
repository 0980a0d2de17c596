//! `bowwave advise` as users call it: no root, no device.

use std::path::Path;
use std::process::{Command, Output};

use trace::recorded::{Header, Recorder, Run};
use trace::{Record, TraceOp};

fn bowwave(arguments: &[&str]) -> Output {
    let binary = env!("CARGO_BIN_EXE_bowwave");
    Command::new(binary).args(arguments).output().expect("it was built")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A file in a folder with this trace.
fn write(folder: &Path, trace: &str) -> String {
    let path = folder.join("load.csv");
    std::fs::write(&path, trace).expect("a writable folder");
    path.to_string_lossy().into_owned()
}

const HEAD: &str = "time_us,process,file,op,offset,bytes";

/// A program reads 400 files of 12 KiB in eight directories.
fn walk(process: &str) -> String {
    let read = |n: u32| format!("{n},{process},/nowhere/{}/file{n},read,0,12288\n", n / 50);
    format!("{HEAD}\n{}", (0..400).map(read).collect::<String>())
}

/// So many programs read a piece of each of 40 files, one in each directory.
fn start(programs: u32) -> String {
    let read = |n: u32| {
        let place = u64::from(n * 7919 % 1000) << 20;
        format!("{n},python{},/nowhere/{n}/lib{n},read,{place},8192\n", n % programs)
    };
    format!("{HEAD}\n{}", (0..40).map(read).collect::<String>())
}

/// A program reads 32 MiB forward.
fn stream() -> String {
    let read = |n: u32| format!("{n},cat,/nowhere/file,read,{},65536\n", n << 16);
    format!("{HEAD}\n{}", (0..512).map(read).collect::<String>())
}

fn json(arguments: &[&str]) -> serde_json::Value {
    let output = bowwave(&[&["advise", "--json"], arguments].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn a_walk_over_a_network_is_advised_to_use_bowwave_with_the_commands() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = write(folder.path(), &walk("grep"));
    let output = bowwave(&["advise", &trace, "--device", "net", "--memory", "1G"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let told = text(&output.stdout);
    let first = told.lines().find(|line| line.starts_with("1. ")).expect("a first remedy");
    assert!(first.starts_with("1. Use bowwave: "), "{told}");
    assert!(first.contains(" times as fast"), "{told}");
    for wanted in [
        "   apply: sudo bowwave run -- COMMAND",
        "sudo systemctl stop bowwave",
        "Leave it as it is.",
        "The trace does not tell how long reads took.",
        "Device net is a description.",
    ] {
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
    assert_eq!(
        told,
        text(&bowwave(&["advise", &trace, "--device", "net", "--memory", "1G"]).stdout)
    );
}

#[test]
fn a_window_is_applied_and_undone_by_exact_numbers() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = write(folder.path(), &stream());
    let advice = json(&[&trace, "--device", "net", "--memory", "8G"]);
    let first = &advice["remedies"][0];
    assert_eq!((&advice["schema"], &first["remedy"]), (&1.into(), &"window".into()), "{advice}");
    let kib = first["readahead_kb"].as_u64().expect("a number");
    assert!(kib > 128 && kib.is_power_of_two());
    let knob = "/sys/block/DISK/queue/read_ahead_kb";
    assert_eq!(first["apply"][0], format!("echo {kib} | sudo tee {knob}"));
    assert_eq!(first["undo"][0], format!("echo 128 | sudo tee {knob}"));
    let (saved, seconds) = (&first["saved_s"], |name: &str| first[name]["expected"].as_f64());
    assert!(saved["least"].as_f64() > Some(0.0) && saved["least"].as_f64() <= seconds("saved_s"));
    let today =
        advice["remedies"].as_array().expect("a list").iter().find(|it| it["remedy"] == "leave");
    let today = today.expect("leaving it is always there")["seconds"]["expected"].as_f64();
    let sum = seconds("saved_s").zip(seconds("seconds")).map(|(saved, left)| saved + left);
    assert!(sum.zip(today).is_some_and(|(sum, today)| (sum - today).abs() < 1e-9), "{advice}");
}

#[test]
fn todays_window_is_the_one_that_is_given() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = write(folder.path(), &stream());
    let advice = json(&[&trace, "--device", "net", "--memory", "8G", "--readahead", "16"]);
    assert_eq!(advice["readahead_kb"], 16);
    let undo = advice["remedies"][0]["undo"][0].as_str().expect("text");
    assert!(undo.starts_with("echo 16 | "), "{advice}");
    let today = json(&[&trace, "--device", "ssd", "--memory", "8G", "--readahead", "4096"]);
    assert_eq!(
        (&today["remedies"][0]["remedy"], &today["remedies"][0]["apply"]),
        (&"leave".into(), &serde_json::json!([]))
    );
}

#[test]
fn what_was_in_memory_when_the_trace_was_recorded_gains_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let read = |n: u32| format!("{},cat,/nowhere/file,read,{},65536,25\n", n * 30, n << 16);
    let reads: String = (0..512).map(read).collect();
    let trace = write(folder.path(), &format!("{HEAD},took_us\n{reads}"));
    let advice = json(&[&trace, "--device", "net", "--memory", "8G"]);
    assert_eq!(advice["remedies"][0]["remedy"], "leave");
    assert_eq!(advice["cached_bytes"], advice["needed_bytes"]);
    let told = text(&bowwave(&["advise", &trace, "--device", "net", "--memory", "8G"]).stdout);
    assert!(
        told.contains("33.6 MB of 33.6 MB were in memory when the trace was recorded"),
        "{told}"
    );
}

#[test]
fn the_start_of_a_program_that_nothing_else_helps_is_to_be_remembered() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = write(folder.path(), &start(1));
    let options = [&trace, "--device", "net", "--memory", "8G"];
    let advice = json(&options);
    let first = &advice["remedies"][0];
    assert_eq!((&first["remedy"], &advice["schema"]), (&"remember".into(), &1.into()), "{advice}");
    assert_eq!(first["apply"], serde_json::json!(["sudo bowwave run --remember NAME -- COMMAND"]));
    assert_eq!(first["undo"], serde_json::json!(["sudo bowwave remembered NAME --forget"]));
    let saved = first["saved_s"]["least"].as_f64().zip(first["seconds"]["expected"].as_f64());
    assert!(saved.is_some_and(|(saved, left)| saved > left), "{advice}");
    assert_eq!(first["unused_bytes"], 0);
    let told = text(&bowwave(&[&["advise"], &options[..]].concat()).stdout);
    let wanted = "1. Use bowwave, and have it remember how the program starts: ";
    assert!(told.contains(wanted) && told.contains("the less is saved."), "{told}");
    assert!(!advice["notes"].to_string().contains("--remember"), "{advice}");
}

#[test]
fn the_commands_that_forget_and_remember_are_ones() {
    for words in [["run", "--help"], ["remembered", "--help"]] {
        let help = text(&bowwave(&words).stdout);
        assert!(help.contains(if words[0] == "run" { "--remember" } else { "--forget" }), "{help}");
    }
}

#[test]
fn what_several_programs_read_when_they_start_is_only_hinted_at() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = write(folder.path(), &start(2));
    let advice = json(&[&trace, "--device", "net", "--memory", "8G"]);
    assert_eq!(advice["remedies"][0]["remedy"], "leave", "{advice}");
    let remedies = advice["remedies"].as_array().expect("a list");
    assert!(remedies.iter().all(|it| it["remedy"] != "remember"), "{advice}");
    let has =
        |trace: &str| json(&[trace, "--device", "net", "--memory", "8G"])["notes"].to_string();
    assert!(has(&trace).contains("sudo bowwave run --remember NAME -- COMMAND"), "{advice}");
    let other = write(folder.path(), &walk("grep"));
    assert!(!has(&other).contains("--remember"), "bowwave helps there");
}

#[test]
fn names_in_a_trace_move_no_cursor_and_get_into_no_command() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = write(folder.path(), &walk("$(reboot)\u{1b}[31m"));
    for options in [&["--json"][..], &[]] {
        let words = [&["advise", &trace, "--device", "net", "--memory", "1G"], options].concat();
        let output = bowwave(&words);
        let told = text(&output.stdout);
        assert!(output.status.success() && !told.contains('\u{1b}'), "{told}");
        assert!(
            !told.lines().any(|line| line.contains("sudo") && line.contains("reboot")),
            "{told}"
        );
    }
}

#[test]
fn what_is_wrong_is_one_sentence_and_a_failure() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = write(folder.path(), &stream());
    let wrong = |words: &[&str], expected: &str| {
        let output = bowwave(&[&["advise"], words].concat());
        let error = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{error}");
        assert!(error.lines().count() == 1 && error.contains(expected), "{error}");
    };
    wrong(&[&trace], "the files of the trace are not on this machine");
    wrong(&[&trace], "--device hdd");
    wrong(&[&trace, "--device", "floppy"], "hdd, hdd-fifo, net");
    wrong(&["/nonexistent", "--device", "net"], "cannot read the trace");
    std::fs::write(&trace, "0,p,a,read,0,1\n").expect("it is ours");
    wrong(&[&trace, "--device", "net"], "load.csv: line 1: the line `time_us");
    for option in [["--memory", "lots"], ["--readahead", "3"]] {
        let output = bowwave(&[&["advise", &trace][..], &option].concat());
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    }
}

#[test]
fn a_device_that_nobody_has_measured_is_named_with_what_to_do() {
    // A file on a disk, if this machine has one that is not remembered.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let data = folder.path().join("data");
    std::fs::write(&data, [0; 4096]).expect("a writable folder");
    let trace = write(folder.path(), &format!("{HEAD}\n0,p,{},read,0,4096\n", data.display()));
    let output = bowwave(&["advise", &trace]);
    let error = text(&output.stderr);
    if output.status.success() {
        assert!(!text(&output.stdout).contains("is a description"), "it was measured");
    } else {
        assert!(error.contains("sudo bowwave tune ") && error.contains("--persist"), "{error}");
    }
    let advice = json(&[&trace, "--device", "ssd"]);
    assert_eq!(advice["remedies"][0]["remedy"], "leave", "{advice}");
}

/// A recorded trace in this folder: a program reads 32 MiB forward, and each read waits for so many nanoseconds.
fn recorded(folder: &Path, took: u64) -> String {
    let [bowwave, kernel, date] = Default::default();
    let mut bytes = Vec::new();
    let mut recorder =
        Recorder::begin(&mut bytes, &Header { bowwave, kernel, date }).expect("room");
    recorder.process("cat").expect("room");
    recorder.file("/nowhere/file", 32 << 20).expect("room");
    for n in 0..512 {
        let (op, offset, bytes) = (TraceOp::Read, n << 16, 1 << 16);
        let record =
            Record { at: n * (took + 50_000), took, process: 0, file: 0, op, offset, bytes };
        recorder.run(&Run { record, calls: 1, lasted: took }).expect("room");
    }
    recorder.lose(7).expect("room");
    recorder.finish().expect("room");
    let path = folder.join("recorded.trace");
    std::fs::write(&path, bytes).expect("a writable folder");
    path.to_string_lossy().into_owned()
}

#[test]
fn a_recorded_load_that_waits_for_nothing_is_left_as_it_is() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let advise =
        |took| json(&[&recorded(folder.path(), took), "--device", "net", "--memory", "8G"]);
    let warm = advise(0);
    assert_eq!(warm["remedies"][0]["remedy"], "leave", "{warm}");
    assert_eq!((&warm["cached_bytes"], &warm["traced_s"]), (&warm["needed_bytes"], &0.0.into()));
    let cold = advise(5_000_000);
    assert_eq!((&cold["cached_bytes"], cold["traced_s"].as_f64()), (&0.into(), Some(2.56)));
    assert_ne!(cold["remedies"][0]["remedy"], "leave", "{cold}");
    let lost = "Of the trace: 7 operations were lost when the trace was recorded.";
    assert!(cold["notes"].as_array().is_some_and(|notes| notes.contains(&lost.into())), "{cold}");
}

#[test]
fn what_is_odd_about_a_trace_is_told_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let recorded = recorded(folder.path(), 0);
    let output = bowwave(&["advise", &recorded, "--device", "net", "--memory", "8G"]);
    let said = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(said.matches("operations were lost").count(), 1, "{said}");
    let beyond = folder.path().join("beyond.csv");
    let records = "file_bytes,file\n9,/a\ntime_us,process,file,op,offset,bytes\n0,p,/a,read,0,9\n1,p,/a,read,99999,9\n";
    std::fs::write(&beyond, records).expect("a writable folder");
    let notes = json(&[&beyond.to_string_lossy(), "--device", "net", "--memory", "8G"])["notes"]
        .to_string();
    assert!(notes.contains("1 of 2 operations lies beyond the end"), "{notes}");
}

#[test]
fn the_example_of_the_docs_is_what_is_printed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let example = bowwave(&["replay", "--example"]).stdout;
    std::fs::write(folder.path().join("my.csv"), example).expect("a writable folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_bowwave"));
    let words = "advise my.csv --device hdd --memory 4G";
    command.args(words.split(' ')).current_dir(folder.path());
    let told = text(&command.output().expect("it runs").stdout);
    let docs = include_str!("../../../docs/advise.md");
    let (_, rest) = docs.split_once(&format!("$ bowwave {words}\n")).expect("the example");
    let (shown, _) = rest.split_once("```").expect("its end");
    // The docs have shorter lines.
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(shown), words(&told), "{told}");
}

#[test]
fn the_rule_for_the_service_in_the_docs_is_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let docs = include_str!("../../../docs/advise.md");
    let (_, rest) = docs.split_once("```toml\n").expect("a rule");
    let (rule, _) = rest.split_once("```").expect("its end");
    let path = folder.path().join("config.toml");
    std::fs::write(&path, rule).expect("a writable folder");
    let path = path.to_string_lossy();
    let output = bowwave(&["daemon", "--check-config", "--config", &path]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    std::fs::write(path.as_ref(), rule.replace("mode", "mood")).expect("a writable folder");
    assert!(!bowwave(&["daemon", "--check-config", "--config", &path]).status.success());
}
