//! The commands that apply a remedy and undo it. Nothing from the trace is in them.

use std::path::Path;

use advice::Remedy;

use super::ground::Ground;

/// Commands, each with what it is for.
pub(super) struct Steps {
    pub(super) apply: Vec<(String, &'static str)>,
    pub(super) undo: Vec<(String, &'static str)>,
}

impl Steps {
    pub(super) fn of(remedy: &Remedy, ground: &Ground) -> Steps {
        let set = |kib: u64| format!("echo {kib} | sudo tee {}", knob(ground));
        let daemon =
            ("sudo systemctl start bowwave".to_owned(), "for every program, until the next boot");
        let stop = ("sudo systemctl stop bowwave".to_owned(), "of the service");
        let ends = ("".to_owned(), "nothing stays behind when COMMAND has ended");
        match remedy {
            Remedy::Leave => Steps { apply: Vec::new(), undo: Vec::new() },
            Remedy::Window { kib } => Steps {
                apply: vec![(set(*kib), "for files opened from now on, until the next boot")],
                undo: vec![(set(ground.readahead_kb), "")],
            },
            Remedy::Bowwave => Steps {
                apply: vec![("sudo bowwave run -- COMMAND".to_owned(), "for one command"), daemon],
                undo: vec![ends, stop],
            },
            Remedy::DropBehind { .. } => Steps {
                apply: vec![
                    (
                        "sudo bowwave run --drop-behind -- COMMAND".to_owned(),
                        "for one of these commands",
                    ),
                    daemon,
                ],
                undo: vec![ends, stop],
            },
        }
    }
}

/// The file with the window.
fn knob(ground: &Ground) -> String {
    let known = ground.knob.as_ref().map(|knob| knob.path());
    known.unwrap_or(Path::new("/sys/block/DISK/queue/read_ahead_kb")).display().to_string()
}
