//! The commands that apply a remedy and undo it. Names of programs are not in them, and a path is quoted.

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
        let ends = ("".to_owned(), "nothing to do: it ends with COMMAND");
        match remedy {
            Remedy::Leave => Steps { apply: Vec::new(), undo: Vec::new() },
            Remedy::Window { kib } => Steps {
                apply: vec![(set(*kib), "for files opened from now on, until the next boot")],
                undo: vec![(set(ground.set_kb.unwrap_or(ground.readahead_kb)), "")],
            },
            Remedy::Bowwave => Steps {
                apply: vec![("sudo bowwave run -- COMMAND".to_owned(), "for one command"), daemon],
                undo: vec![ends, stop],
            },
            Remedy::DropBehind { .. } => Steps {
                // The service drops so behind a program only if a rule names it.
                apply: vec![(
                    "sudo bowwave run --drop-behind -- COMMAND".to_owned(),
                    "for each of these programs",
                )],
                undo: vec![ends],
            },
            Remedy::Remember => Steps {
                apply: vec![(
                    "sudo bowwave run --remember NAME -- COMMAND".to_owned(),
                    "each time; the figures are those of the second start",
                )],
                undo: vec![(
                    "sudo bowwave remembered NAME --forget".to_owned(),
                    "and start COMMAND as before",
                )],
            },
        }
    }
}

/// The file with the window.
fn knob(ground: &Ground) -> String {
    let known = ground.knob.as_ref().map(|knob| knob.path());
    known.unwrap_or(Path::new("/sys/block/DISK/queue/read_ahead_kb")).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_undone_by_the_value_that_is_set() {
        let ground = |set_kb| Ground {
            device: super::super::ground::given("hdd").expect("it is known"),
            readahead_kb: 64,
            set_kb,
            knob: None,
            mount_point: None,
        };
        let undo =
            |set_kb| Steps::of(&Remedy::Window { kib: 512 }, &ground(set_kb)).undo[0].0.clone();
        assert!(undo(Some(256)).starts_with("echo 256 |") && undo(None).starts_with("echo 64 |"));
    }

    #[test]
    fn drop_behind_is_not_applied_by_a_service_without_a_rule() {
        let ground = Ground {
            device: super::super::ground::given("hdd").expect("it is known"),
            readahead_kb: 128,
            set_kb: None,
            knob: None,
            mount_point: None,
        };
        let steps = Steps::of(&Remedy::DropBehind { processes: vec!["tar".into()] }, &ground);
        assert_eq!(steps.apply[0].0, "sudo bowwave run --drop-behind -- COMMAND");
        assert_eq!((steps.apply.len(), steps.undo.len()), (1, 1));
    }
}
