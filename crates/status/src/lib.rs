//! What a process of bowwave tells of itself, on a socket in its state folder.
//!
//! ```text
//!   bowwave status --connect--> STATE/daemon.sock     --> engine: accept, write one JSON object, close
//!        (ask)     \----------> STATE/run-PID.sock         (answer)
//! ```
//!
//! A client sends nothing. The engine writes the answer into the socket's buffer, so it waits for nobody. Only root and
//! its group get an answer: the socket's mode and the client's credentials (`SO_PEERCRED`) both enforce that.

mod answer;
mod ask;
mod folder;

use controller::Status;
use readahead::figures;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use answer::{BindError, Socket};
pub use ask::{AskError, ask};

/// The version of the answer. It grows when a field is removed or changes its meaning.
pub const SCHEMA: u32 = 1;

/// Which command a process of bowwave runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Role {
    /// `bowwave daemon`.
    Daemon,
    /// `bowwave run`.
    Run {
        /// The program, as the user named it.
        command: String,
    },
}

figures! {
    /// The answer of one process.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Report {
        /// [`SCHEMA`].
        pub schema: u32,
        /// The command that it runs.
        #[serde(flatten)]
        pub role: Role,
        /// Its process id.
        pub pid: u32,
        /// Time since bowwave began to manage reads.
        pub uptime_s: f64 as Gauge,
        /// What it does now, and totals.
        #[serde(flatten)]
        pub status: Status,
    }
}

impl Report {
    /// Parses an answer.
    ///
    /// # Errors
    /// [`AskError::OtherSchema`], [`AskError::Malformed`].
    pub fn parse(answer: &Value) -> Result<Report, AskError> {
        let number = |field: &str| answer[field].as_u64().unwrap_or(0);
        let (pid, schema) = (number("pid"), number("schema"));
        if schema != u64::from(SCHEMA) {
            return Err(AskError::OtherSchema { pid, schema });
        }
        Report::deserialize(answer)
            .map_err(|error| AskError::Malformed { pid, reason: error.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    use controller::{Controller, Options};
    use readahead::Adaptive;
    use readahead::adaptive::Limits;

    use super::*;
    use crate::folder::{connect_to, name_of};

    fn status() -> Status {
        let policy = Box::new(Adaptive::new(Limits::default()));
        Controller::new(Options::default(), policy, &mut Vec::new()).status(0)
    }

    /// Asks while a thread answers on the socket.
    fn asked(
        folder: &Path,
        socket: &Socket,
        status: fn() -> Status,
    ) -> Vec<Result<Value, AskError>> {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    socket.answer(status).expect("it accepts");
                    thread::yield_now();
                }
            });
            let answers = ask(folder);
            is_over.store(true, Ordering::Relaxed);
            answers.expect("the folder is there")
        })
    }

    /// Without root, as in some user namespaces, the socket refuses the test's question.
    fn is_root() -> bool {
        rustix::process::geteuid().is_root()
    }

    #[test]
    fn root_gets_the_report_of_a_process() {
        let folder = tempfile::tempdir().expect("a folder");
        let role = Role::Run { command: "tar".into() };
        let socket = Socket::bind(folder.path(), role.clone(), Instant::now()).expect("bound");
        let answers = asked(folder.path(), &socket, status);
        let [answer] = &answers[..] else { panic!("{answers:?}") };
        match answer {
            Ok(answer) => {
                assert_eq!(answer["schema"], SCHEMA);
                assert_eq!((&answer["role"], &answer["command"]), (&"run".into(), &"tar".into()));
                let report = Report::parse(answer).expect("a report");
                assert_eq!((report.pid, report.role), (std::process::id(), role));
                assert_eq!(report.status, status());
            }
            Err(error) => assert!(!is_root(), "{error}"),
        }
    }

    #[test]
    fn an_answer_may_be_as_long_as_users_can_make_it_by_their_mounts() {
        let many = || {
            let mut status = status();
            let file = controller::BusyFile {
                volume: "7:0".into(),
                inode: 1,
                read_ahead_bytes: 0,
                mount_point: "x".repeat(1000),
            };
            status.busiest_files = vec![file; 5000];
            status
        };
        let folder = tempfile::tempdir().expect("a folder");
        let socket = Socket::bind(folder.path(), Role::Daemon, Instant::now()).expect("bound");
        let answers = asked(folder.path(), &socket, many);
        let [answer] = &answers[..] else { panic!("one answer") };
        let found = answer.as_ref().map(|answer| answer["busiest_files"].as_array().map(Vec::len));
        assert!(!is_root() || matches!(found, Ok(Some(5000))), "{found:?}");
    }

    #[test]
    fn clients_that_do_not_read_do_not_delay_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = Socket::bind(folder.path(), Role::Daemon, Instant::now()).expect("bound");
        let path = folder.path().join(name_of(&Role::Daemon));
        let idle: Vec<_> = (0..3)
            .map(|_| connect_to(&path, Duration::from_millis(1)).expect("there is room"))
            .collect();
        socket.answer(status).expect("they are answered");
        drop(idle);
        assert_eq!(asked(folder.path(), &socket, status).len(), 1);
    }

    #[test]
    fn a_process_that_does_not_answer_is_named_within_seconds() {
        let folder = tempfile::tempdir().expect("a folder");
        let _socket = Socket::bind(folder.path(), Role::Daemon, Instant::now()).expect("bound");
        let answers = ask(folder.path()).expect("it is there");
        assert!(matches!(&answers[..], [Err(AskError::Silent(_))]), "{answers:?}");
    }

    #[test]
    fn an_answer_with_another_schema_is_refused() {
        let answer = serde_json::json!({ "schema": 2, "pid": 7 });
        let error = Report::parse(&answer).expect_err("another one");
        assert!(matches!(error, AskError::OtherSchema { pid: 7, schema: 2 }), "{error}");
    }

    #[test]
    fn an_older_bowwave_may_lack_a_figure_but_none_may_be_of_another_kind() {
        let devices = vec![controller::Device { name: "sda".into(), ..Default::default() }];
        let status = Status { devices, ..status() };
        let report = Report { schema: SCHEMA, role: Role::Daemon, pid: 7, uptime_s: 1.0, status };
        let mut answer = serde_json::to_value(&report).expect("JSON");
        answer["metrics"].as_object_mut().expect("an object").remove("longest_turn_s");
        answer["devices"][0].as_object_mut().expect("an object").remove("disks");
        answer.as_object_mut().expect("an object").remove("behind_streams");
        assert_eq!(Report::parse(&answer).expect("a report"), report);
        answer["metrics"]["reads"] = "many".into();
        let error = Report::parse(&answer).expect_err("no number");
        assert!(matches!(error, AskError::Malformed { pid: 7, .. }), "{error}");
    }
}
