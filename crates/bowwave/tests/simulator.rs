//! `bowwave replay` and `bowwave reproduce` as users call them: no root, no device.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Output};

fn bowwave(arguments: &[&str]) -> Output {
    let binary = env!("CARGO_BIN_EXE_bowwave");
    Command::new(binary).args(arguments).output().expect("it was built")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn text_of(words: &[&str]) -> String {
    text(&bowwave(words).stdout)
}

/// The example as a file in a folder.
fn example(folder: &Path) -> String {
    let path = folder.join("example.csv");
    std::fs::write(&path, bowwave(&["replay", "--example"]).stdout).expect("a writable folder");
    path.to_string_lossy().into_owned()
}

#[test]
fn the_example_is_replayed_as_text_json_and_page() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (trace, page) = (example(folder.path()), folder.path().join("page.html"));
    let shown = bowwave(&["replay", &trace, "-v", "--log", "--html", &page.to_string_lossy()]);
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    let shown = text(&shown.stdout);
    assert!(shown.contains("adaptive") && shown.contains("readahead(/srv/log, 4080+16) = 16"));
    let page = std::fs::read_to_string(page).expect("it was written");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("<svg"));
    let rows =
        bowwave(&["replay", &trace, "--json", "--policy", "adaptive-v16:ratio=50,hit-rate=2"]);
    let rows: serde_json::Value = serde_json::from_slice(&rows.stdout).expect("JSON");
    assert_eq!(rows[0]["policy"], "adaptive-v16:ratio=50,hit-rate=2");
    assert_eq!(rows[0]["pages_needed"], 4864);
    assert!(rows[0]["log"].is_null(), "nobody asked for it");
    let rows = bowwave(&["replay", &trace, "--json", "--log", "--policy", "linux-6"]);
    let rows: serde_json::Value = serde_json::from_slice(&rows.stdout).expect("JSON");
    let first = serde_json::json!(
        { "file": "/srv/log", "start": 4080, "asked": 16, "read": 16, "cause": "random" }
    );
    assert_eq!(rows[0]["log"][0], first);
}

#[test]
fn the_example_shows_what_bowwave_is_for() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = example(folder.path());
    for device in ["hdd", "net"] {
        let rows = bowwave(&["replay", &trace, "--device", device, "--json"]).stdout;
        let rows: serde_json::Value = serde_json::from_slice(&rows).expect("JSON");
        let figure = |row: usize, name: &str| rows[row][name].as_f64().expect("a number");
        assert!(figure(1, "seconds") < 0.5 * figure(0, "seconds"), "{device}: {rows}");
        let read = figure(1, "pages_read") / figure(1, "pages_needed");
        assert!(read < 1.4, "{device}: {read} pages read for each one needed");
    }
}

#[test]
fn the_docs_show_what_the_example_prints() {
    if !cfg!(target_arch = "x86_64") {
        return eprintln!("skipped: logarithms may be rounded differently here");
    }
    let docs = include_str!("../../../docs/replay.md");
    let (_, rest) = docs.split_once("```\n$ bowwave replay --example").expect("the example");
    let (rest, _) = rest.split_once("```").expect("its end");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let own = Path::new(env!("CARGO_BIN_EXE_bowwave")).parent().expect("a folder");
    let path = format!("{}:{}", own.display(), std::env::var("PATH").unwrap_or_default());
    for part in format!("bowwave replay --example{rest}").split("\n$ ") {
        let (command, shown) = part.split_once('\n').unwrap_or((part, ""));
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(folder.path()).env("PATH", &path);
        let output = shell.output().expect("it runs");
        assert!(output.status.success(), "{command}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout).trim_end(), shown.trim_end(), "{command}");
    }
}

#[test]
fn what_lies_beyond_the_end_of_its_file_is_told() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = folder.path().join("beyond.csv");
    let sizes = "file_bytes,file\n4096,/a\n\n";
    let beyond = "time_us,process,file,op,offset,bytes\n0,p,/a,read,8192,4096\n";
    std::fs::write(&trace, format!("{sizes}{beyond}")).expect("a writable folder");
    let trace = trace.to_string_lossy();
    let output = bowwave(&["replay", &trace]);
    let error = text(&output.stderr);
    assert!(!output.status.success() && error.contains("beyond.csv: line 5: this lies"), "{error}");
    std::fs::write(&*trace, format!("{sizes}{beyond}1,p,/a,read,0,4096\n")).expect("as before");
    let output = bowwave(&["replay", &trace]);
    let told = text(&output.stderr);
    let first =
        "1 of 2 operations lies beyond the end of its file, the first at byte 8192 of \"/a\"";
    assert!(output.status.success() && told.contains(first), "{told}");
}

#[test]
fn a_trace_whose_own_pauses_take_most_of_the_time_is_told_of_the_option_without() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("pauses.csv");
    let told = |pause_us: u64, options: &[&str]| {
        let reads = format!("0,p,/a,read,0,65536\n{pause_us},p,/a,read,9000000,65536\n");
        let text_of_trace = format!("time_us,process,file,op,offset,bytes\n{reads}");
        std::fs::write(&path, text_of_trace).expect("a writable folder");
        let output = bowwave(&[&["replay", &path.to_string_lossy()][..], options].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    let said = told(10_000_000, &[]);
    assert!(said.contains("10.0") && said.contains("--pace none"), "{said}");
    assert_eq!(told(10_000_000, &["--pace", "none"]), "");
    assert_eq!(told(10_000_000, &["--json"]), "");
    assert_eq!(told(1, &[]), "");
}

#[test]
fn tables_are_listed_with_their_titles() {
    let listed = text_of(&["reproduce", "--list"]);
    let ramp = listed.lines().find(|line| line.starts_with("ramp-2005 ")).expect("it is one");
    assert!(ramp.contains("cp of a 3568-page file"), "{ramp}");
    let rows: serde_json::Value =
        serde_json::from_str(&text_of(&["reproduce", "--list", "--json"])).expect("JSON");
    let titles = rows.as_array().expect("a list").iter().map(|row| row["title"].as_str());
    let lines = listed.lines().map(|line| line.split_once("  ").map(|(_, title)| title.trim()));
    assert!(titles.eq(lines), "{rows}");
}

#[test]
fn what_is_wrong_is_one_sentence_and_a_failure() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = example(folder.path());
    let wrong = |option: &str, expected: &str| {
        let output = bowwave(&["replay", &trace, option, "wrong"]);
        let error = text(&output.stderr);
        assert!(!output.status.success() && error.lines().count() == 1, "{error}");
        assert!(error.contains(expected), "{error}");
    };
    wrong("--policy", "linux-6, adaptive");
    let wrong_policy = |policy: &str, expected: &str| {
        let error = text(&bowwave(&["replay", &trace, "--policy", policy]).stderr);
        assert!(error.lines().count() == 1 && error.contains(expected), "{error}");
    };
    wrong_policy("adaptive-v16:foo=1", "adaptive-v16 takes hit-rate=N");
    wrong_policy("adaptive-2005:abc", "adaptive-2005 takes ratio=PERCENT");
    wrong_policy("linux-6:window=3", "linux-6 takes none");
    wrong_policy("adaptive@linux-7", "there is no policy \"linux-7\"");
    wrong_policy("linux-6@linux-6", "adaptive@KERNEL");
    wrong("--device", "hdd, hdd-fifo, net");
    wrong("--elevator", "noop, linus");
    let refused = |words: &[&str], expected: &str| {
        let output = bowwave(words);
        let error = text(&output.stderr);
        assert!(output.status.code() == Some(2) && output.stdout.is_empty(), "{words:?}");
        assert!(error.contains(expected), "{error}");
    };
    refused(&["replay", &trace, "--readahead", "128k"], "write KiB without a unit");
    for kib in ["3", "130", "1048580"] {
        refused(&["replay", &trace, "--readahead", kib], "write a multiple of 4");
    }
    refused(&["replay", &trace, "--example"], "cannot be used");
    refused(&["reproduce", "--list", "nosuch"], "cannot be used");
    refused(&["reproduce", "--list", "--html", "page.html"], "cannot be used");
    for (trace, expected) in [("/nonexistent", "cannot read the trace"), ("/", "cannot read")] {
        let output = bowwave(&["replay", trace]);
        assert!(!output.status.success());
        assert!(text(&output.stderr).contains(expected), "{}", text(&output.stderr));
    }
    std::fs::write(&trace, "0,p,a,read,0,1\n").expect("it is ours");
    let error = text(&bowwave(&["replay", &trace]).stderr);
    assert!(error.contains("example.csv: line 1: the line `time_us"), "{error}");
}

#[test]
fn a_page_that_cannot_be_written_is_told_at_once_or_costs_only_itself() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = example(folder.path());
    let commands: [&[&str]; 3] = [
        &["replay", &trace],
        &["replay", &trace, "--json"],
        &["reproduce", "blkid-2011", "--json"],
    ];
    for command in commands {
        let with_page = |page| bowwave(&[command, &["--html", page]].concat());
        let late = with_page("/dev/full");
        assert!(!late.status.success());
        assert_eq!(text(&late.stdout), text_of(command));
        assert!(text(&late.stderr).contains("cannot write the page /dev/full: No space"));
        let early = with_page("/proc/self/page.html");
        assert!(!early.status.success() && early.stdout.is_empty());
        assert!(text(&early.stderr).contains("cannot write the page /proc/self/page.html: "));
    }
}

#[test]
fn a_page_does_not_take_the_place_of_the_trace_that_comes_by_standard_input() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = example(folder.path());
    let mut replay = Command::new(env!("CARGO_BIN_EXE_bowwave"));
    let input = std::fs::File::open(&trace).expect("it was written");
    let output = replay.args(["replay", "-", "--html", &trace]).stdin(input).output().expect("ran");
    assert!(!output.status.success() && text(&output.stderr).contains("is the trace itself"));
    assert_eq!(std::fs::read_to_string(&trace).expect("there"), trace::EXAMPLE);
}

#[test]
fn json_says_on_what_machine_and_the_log_moves_no_cursor() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = folder.path().join("trace.csv");
    let name = "/a\u{7}\u{1b}[31mb\u{e4}";
    let text = format!("{}\n0,p,{name},read,0,4096\n", trace::HEADER);
    std::fs::write(&trace, text).expect("a writable folder");
    let trace = trace.to_string_lossy();
    let log = text_of(&["replay", &trace, "--log"]);
    assert!(log.contains("readahead(/a\u{fffd}\u{fffd}[31mb\u{e4}, 0+"), "{log}");
    let options = ["--device", "net", "--elevator", "noop", "--memory", "64M", "--pace", "none"];
    let rows = text_of(&[&["replay", &trace, "--json"][..], &options].concat());
    let rows: serde_json::Value = serde_json::from_str(&rows).expect("JSON");
    for row in rows.as_array().expect("a list") {
        assert_eq!((&row["device"], &row["elevator"]), (&"net".into(), &"noop".into()));
        assert_eq!((&row["memory_bytes"], &row["pace"]), (&(64 << 20).into(), &"none".into()));
    }
}

#[test]
fn a_debug_log_is_printed_line_by_line() {
    let shown = text(&bowwave(&["reproduce", "ramp-2005"]).stdout);
    assert!(shown.contains("line 3            5+16=16        5+16=16"), "{shown}");
}

#[test]
fn what_is_made_from_a_private_trace_is_private_too() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let lines = format!("file_bytes,file\n9,/a\n{}\n0,p,/a,read,0,9\n", trace::HEADER);
    std::fs::write(path("trace"), lines).expect("a writable folder");
    let mode_of = |file: &Path| file.metadata().expect("it is there").mode() & 0o777;
    // What an umask leaves of the permissions of any new file.
    let plain = mode_of(path("trace").as_ref());
    let modes_of_what_is_made = |mode: u32, number: &str| {
        std::fs::set_permissions(path("trace"), Permissions::from_mode(mode)).expect("ours");
        let [page, report, job] = ["page", "report", "job"].map(|name| path(name) + number);
        for arguments in [
            &["replay", &path("trace"), "--html", &page],
            &["report", &path("trace"), "--output", &report],
            &["replay", &path("trace"), "--fio", &job],
        ] {
            let output = bowwave(arguments);
            assert!(output.status.success(), "{}", text(&output.stderr));
        }
        let of_job = std::fs::read_dir(job).expect("a folder").flatten().map(|entry| entry.path());
        let made = of_job.chain([page.into(), report.into()]);
        made.map(|file| mode_of(&file)).collect::<Vec<_>>()
    };
    assert_eq!(modes_of_what_is_made(0o600, "1"), [plain & 0o600; 4]);
    assert_eq!(modes_of_what_is_made(0o666, "2"), [plain; 4]);
}

#[test]
fn a_job_of_fio_tells_which_files_it_cannot_read_here() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    std::fs::write(path("whole"), [0; 9]).expect("a writable folder");
    std::fs::write(path("short"), [0; 8]).expect("a writable folder");
    let files = ["whole", "short", "missing"].map(path);
    let sizes = files.each_ref().map(|file| format!("9,{file}\n")).concat();
    let reads = files.each_ref().map(|file| format!("0,p,{file},read,0,9\n")).concat();
    let job = |name: &str, reads: &str| {
        let trace =
            format!("file_bytes,file\n{sizes}time_us,process,file,op,offset,bytes\n{reads}");
        std::fs::write(path(name), trace).expect("a writable folder");
        let output = bowwave(&["replay", &path(name), "--fio", &path(&format!("{name}.job"))]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    let told = job("trace", &reads);
    assert!(told.contains("reads what 1 process has read;"), "{told}");
    assert!(told.contains("2 files are not here, or shorter than in the trace"), "{told}");
    let told = job("other", reads.lines().next().expect("a line"));
    assert!(!told.contains("not here"), "{told}");
}
