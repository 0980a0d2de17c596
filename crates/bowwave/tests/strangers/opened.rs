//! What a process opens, as strace(1) tells, which knows nothing of bowwave.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{ChildStderr, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::NamedTempFile;

use crate::own::Own;
use crate::stage::skipped;

pub(crate) struct Opened {
    strace: Own,
    log: NamedTempFile,
    /// It says more with each thread, and ends if nobody could hear that.
    _notes: BufReader<ChildStderr>,
}

impl Opened {
    /// What that process opens from now on; `None` where there is no strace.
    pub(crate) fn by(process: u32) -> Option<Self> {
        if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
            return skipped("no strace");
        }
        let log = NamedTempFile::new().expect("a file");
        let mut strace = Command::new("strace");
        strace.args(["-f", "-y", "-e", "trace=openat,open_by_handle_at", "-p"]);
        strace.arg(process.to_string()).arg("-o").arg(log.path()).stderr(Stdio::piped());
        let mut strace = Own::start(&mut strace);
        let mut said = String::new();
        let mut notes = BufReader::new(strace.stderr.take().expect("piped"));
        notes.read_line(&mut said).expect("it says that it is there");
        assert!(said.contains("attached"), "{said}");
        Some(Opened { strace, log, _notes: notes })
    }

    /// The calls that have opened something, as strace prints them. What was only reached (`O_PATH`) was not opened.
    pub(crate) fn end(mut self) -> Vec<String> {
        kill_process(Pid::from_child(&self.strace), Signal::TERM).expect("it runs");
        self.strace.wait().expect("it ends");
        let text = fs::read(self.log.path()).expect("its log");
        let text = String::from_utf8_lossy(&text);
        // A call that another thread's has come between is told in two halves.
        let mut begun: HashMap<&str, &str> = HashMap::new();
        let mut calls = Vec::new();
        for line in text.lines() {
            let (thread, rest) = line.split_once(' ').unwrap_or_default();
            if let Some(first) = rest.strip_suffix("<unfinished ...>") {
                begun.insert(thread, first);
                continue;
            }
            let first = if rest.contains("resumed>") { begun.remove(thread) } else { None };
            calls.push(first.unwrap_or_default().to_owned() + rest);
        }
        calls.retain(|call| {
            let (call, result) = call.rsplit_once(" = ").unwrap_or_default();
            result.contains('<') && !call.contains("O_PATH")
        });
        calls
    }
}

/// What a call has opened: the path between the brackets of `= 7</path>`, or `= 7</dev/null<char 1:3>>`.
pub(crate) fn result(call: &str) -> &str {
    let (_, result) = call.rsplit_once(" = ").unwrap_or_default();
    result.split_once('<').map_or("", |(_, path)| path.trim_end_matches('>'))
}
