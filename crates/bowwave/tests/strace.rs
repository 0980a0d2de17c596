//! scripts/strace-to-trace: what strace saw is what the trace says, process by process.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/strace-to-trace");
const STORED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/strace/two-processes.log");
const MANUAL: &str = include_str!("../../../docs/trace.md");

fn converted(log: &Path) -> Output {
    Command::new(SCRIPT).arg(log).output().expect("awk is there")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Offset and bytes of what was done to a file of `folder`, in the order of the log.
fn done(trace: &str, op: &str, folder: &Path, name: &str) -> Vec<(u64, u64)> {
    let wanted = format!("\"{}\"", folder.join(name).display());
    let fields = trace.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let of_file = fields.filter(|fields| fields.len() == 7 && fields[2] == wanted);
    let number = |field: &str| field.parse::<u64>().expect("a number");
    of_file.filter(|f| f[3] == op).map(|f| (number(f[4]), number(f[5]))).collect()
}

#[test]
fn halves_are_joined_and_positions_go_on() {
    let output = converted(Path::new(STORED));
    assert!(output.status.success());
    let name = r#""/tmp/a, \74b\76 = (c)""#;
    let expected = format!(
        "time_us,process,file,op,offset,bytes,took_us\n\
         100000060,31,{name},read,0,4096,100\n\
         100000080,32,\"/tmp/log\",read,8192,4000,100\n\
         100000200,31,{name},read,4096,100,10\n\
         100000230,33,\"/tmp/log\",read,12192,10,5\n\
         100000220,31,{name},read,64,50,20\n\
         100000250,31,{name},read,4196,5000,40\n\
         100000250,31,\"/tmp/copy\",write,4096,5000,0\n\
         100000300,31,{name},read,100,1000,40\n\
         100000350,31,{name},read,9196,300,40\n\
         100000600,31,{name},close\n\
         100000620,31,\"/tmp/gone\",advise random\n\
         100000630,31,\"/tmp/gone\",read,100,50,10\n"
    );
    assert_eq!(text(&output.stdout), expected);
    let told = text(&output.stderr);
    assert!(told.starts_with("strace-to-trace: 5 calls left out: "), "{told}");
    let kinds = [
        "1 mmap",
        "1 fadvise64",
        "1 of another format",
        "1 without a beginning",
        "1 without an end",
    ];
    for kind in kinds {
        assert!(told.contains(kind), "{told}");
    }
}

#[test]
fn a_log_of_which_nothing_is_understood_is_an_error() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("log");
    // Without -y, without -ttt, and nothing at all.
    let logs = [
        "31 100.000010 read(3, \"\"..., 4096) = 4096 <0.000010>\n",
        "31 read(3</a>, \"\", 1) = 1\n",
        "",
    ];
    for lines in logs {
        fs::write(&log, lines).expect("a writable folder");
        let output = converted(&log);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{lines}");
        assert!(text(&output.stderr).contains("docs/trace.md"), "{}", text(&output.stderr));
    }
}

/// The manual's command, of which LOG and PROGRAM are ours; none where strace cannot be used.
fn recorded(folder: &Path, program: &[&str]) -> Option<String> {
    let line = MANUAL.lines().find(|line| line.starts_with("strace "));
    let line = line.expect("the manual's command").replace(" PROGRAM", "");
    let line = line.replace("LOG", "log").replace('\'', "");
    let mut words = line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    words.extend(program.iter().map(|word| (*word).to_owned()));
    let ran = Command::new(&words[0]).args(&words[1..]).current_dir(folder).output();
    if !ran.is_ok_and(|output| output.status.success()) {
        println!("skipped: strace is not installed, or may not trace here");
        return None;
    }
    let output = converted(&folder.join("log"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    Some(text(&output.stdout))
}

#[test]
fn three_programs_at_once_read_every_byte_once() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = temporary.path().canonicalize().expect("it is there");
    let bytes = 3_000_000;
    for name in ["f1", "f2", "f3"] {
        fs::write(folder.join(name), "a line of text\n".repeat(bytes / 15)).expect("written");
    }
    // Into a pipe: into a file, cat would have the kernel copy.
    let script = "(cat f1 & tac f2 & wc -l f3 & wait) | wc -c";
    let Some(trace) = recorded(&folder, &["sh", "-c", script]) else { return };
    for name in ["f1", "f2", "f3"] {
        let mut reads = done(&trace, "read", &folder, name);
        assert!(reads.len() > 3, "{name}: {reads:?}");
        assert_eq!(reads.is_sorted(), name != "f2", "tac reads backward, the others forward");
        reads.sort_unstable();
        let end = reads.iter().try_fold(0, |end, (at, n)| (*at == end).then_some(end + n));
        assert_eq!(end, Some(bytes as u64), "{name}: {reads:?}");
    }
}

#[test]
fn a_copy_reads_its_source() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = temporary.path().canonicalize().expect("it is there");
    fs::write(folder.join("f1"), vec![7; 300_000]).expect("written");
    let Some(trace) = recorded(&folder, &["cp", "--reflink=never", "f1", "f2"]) else { return };
    for (op, name) in [("read", "f1"), ("write", "f2")] {
        let moved: u64 = done(&trace, op, &folder, name).iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(moved, 300_000, "{trace}");
    }
}
