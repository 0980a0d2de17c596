//! The socket on which a daemon or `run` answers `bowwave status`, and its client.
//!
//! ```text
//!   bowwave status --connect--> STATE/daemon.sock     --> engine: accept, write one JSON object, close
//!                  \----------> STATE/run-PID.sock
//! ```
//!
//! A client sends nothing. The engine writes the answer into the socket's buffer, so it waits for nobody. Only root and
//! its group get an answer: the socket's mode and the client's credentials (`SO_PEERCRED`) both enforce that.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use controller::Status;
use controller::ids::BackingId;
use linux::mounts::Mount;
use readahead::figures;
use rustix::fs::{CWD, FileType, Mode, OFlags, chmod, fchmod, fstat, openat, rename};
use rustix::io::Errno;
use rustix::net::sockopt::{
    Timeout, set_socket_send_buffer_size_force, set_socket_timeout, socket_peercred,
};
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect,
    listen, send, socket_with,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::mounted::{Device, Volume};

/// The version of the answer. It grows when a field is removed or changes its meaning.
pub const SCHEMA: u32 = 1;

/// How many clients may wait, and how many the engine answers at a time.
const MOST_CLIENTS: i32 = 4;

/// An engine answers within milliseconds, unless it is stopped.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Enough to find out whether anybody listens, which the kernel answers at once.
const PROBE_TIMEOUT: Duration = Duration::from_millis(1);

/// Read no more of an answer. Each mount takes some hundred bytes, and one user may have a thousand.
const MOST_BYTES: u64 = 16 << 20;

/// A client's buffer holds at least so much, as it does on most systems without asking.
const DEFAULT_BUFFER_BYTES: usize = 200 << 10;

/// 0660.
const ROOT_AND_GROUP: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::RGRP).union(Mode::WGRP);

const DAEMON_SOCKET: &str = "daemon.sock";

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

/// Why a process cannot answer.
#[derive(Debug, thiserror::Error)]
#[error("bowwave status will not show this process: cannot listen on {path}: {error}")]
pub(crate) struct BindError {
    path: PathBuf,
    error: io::Error,
}

/// The listening socket of one process. Its file is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Socket {
    listener: OwnedFd,
    path: PathBuf,
    role: Role,
    since: Instant,
}

impl Socket {
    /// Listens in the state folder, and removes the sockets of killed processes there. Reads have been managed since
    /// `since`.
    ///
    /// # Errors
    /// If the folder cannot be written, or its path is too long for a socket (about 85 bytes).
    pub(crate) fn bind(folder: &Path, role: Role, since: Instant) -> Result<Socket, BindError> {
        remove_stale(folder);
        let path = folder.join(match role {
            Role::Daemon => DAEMON_SOCKET.to_owned(),
            Role::Run { .. } => format!("run-{}.sock", std::process::id()),
        });
        match listen_on(&path) {
            Ok(listener) => Ok(Socket { listener, path, role, since }),
            Err(error) => Err(BindError { path, error: error.into() }),
        }
    }

    /// Readable while a client waits.
    pub(crate) fn readiness(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Answers up to [`MOST_CLIENTS`] waiting clients.
    ///
    /// # Errors
    /// If no client can be accepted any more, for example without free descriptors. The socket would then stay readable
    /// for ever.
    pub(crate) fn answer(&self, status: impl Fn() -> Status) -> io::Result<()> {
        for _ in 0..MOST_CLIENTS {
            match accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(client) if may_ask(&client) => self.send_report(&client, status()),
                Ok(_) | Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn send_report(&self, client: &OwnedFd, status: Status) {
        let report = Report {
            schema: SCHEMA,
            role: self.role.clone(),
            pid: std::process::id(),
            uptime_s: self.since.elapsed().as_secs_f64(),
            status,
        };
        if let Ok(text) = serde_json::to_vec(&report) {
            // The kernel counts its own use of the buffer, too: it doubles this number for that. Without root it grants
            // less, and the client may see that a long answer is cut.
            let _ = set_socket_send_buffer_size_force(client, text.len().max(DEFAULT_BUFFER_BYTES));
            // This fails if the client has gone.
            let _ = send(client, &text, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // If this fails, the next start removes it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Makes the socket under another name and renames it when it listens, so that whoever finds it gets an answer.
fn listen_on(path: &Path) -> rustix::io::Result<OwnedFd> {
    let draft = path.with_extension("sock.new");
    // A killed process may have left one.
    let _ = fs::remove_file(&draft);
    let listener = listen_under(&draft).and_then(|listener| {
        rename(&draft, path)?;
        Ok(listener)
    });
    listener.inspect_err(|_| drop(fs::remove_file(&draft)))
}

fn listen_under(path: &Path) -> rustix::io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let listener = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // Set the mode before the socket has a name, so that nobody else can ever connect.
    fchmod(&listener, ROOT_AND_GROUP)?;
    bind(&listener, &address)?;
    admit_group(path)?;
    listen(&listener, MOST_CLIENTS)?;
    Ok(listener)
}

/// Adds the mode bits that the umask removed at binding. The umask itself stays, as children inherit it. Checks that
/// the file is a socket: in a folder of another user, it may have been replaced.
fn admit_group(path: &Path) -> rustix::io::Result<()> {
    let found =
        openat(CWD, path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&found)?.st_mode) != FileType::Socket {
        return Err(Errno::EXIST);
    }
    chmod(format!("/proc/self/fd/{}", found.as_raw_fd()), ROOT_AND_GROUP)
}

fn may_ask(client: &OwnedFd) -> bool {
    socket_peercred(client).is_ok_and(|of| of.uid.is_root() || of.gid.is_root())
}

fn remove_stale(folder: &Path) {
    for path in sockets(folder).unwrap_or_default() {
        if matches!(connect_to(&path, PROBE_TIMEOUT), Err(Errno::CONNREFUSED)) {
            let _ = fs::remove_file(&path);
        }
    }
}

/// The sockets in a state folder: first the daemon's, then those of `run` by process id.
fn sockets(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut found: Vec<_> = names.filter_map(|name| Some((owner_of(&name)?, name))).collect();
    found.sort();
    Ok(found.into_iter().map(|(_, name)| folder.join(name)).collect())
}

/// Whose socket has this file name: 0 for the daemon, the process id for a `run`.
fn owner_of(name: &str) -> Option<u32> {
    if name == DAEMON_SOCKET {
        return Some(0);
    }
    name.strip_prefix("run-")?.strip_suffix(".sock")?.parse().ok()
}

fn connect_to(path: &Path, timeout: Duration) -> rustix::io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&stream, Timeout::Send, Some(timeout))?;
    set_socket_timeout(&stream, Timeout::Recv, Some(timeout))?;
    connect(&stream, &address)?;
    Ok(stream.into())
}

/// Why there is no answer of a process.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The client is neither root nor in its group.
    #[error("may not ask {0}: only root and its group may; use sudo")]
    NotPermitted(PathBuf),
    /// There was no answer in time.
    #[error("{0} does not answer; is its process stopped?")]
    Silent(PathBuf),
    /// The answer is cut or not JSON.
    #[error("{path} gives no complete answer ({reason}); ask again")]
    Garbled {
        /// Its socket.
        path: PathBuf,
        /// Why it cannot be parsed.
        reason: String,
    },
    /// The process is of another version of bowwave.
    #[error(
        "process {pid} reports in schema {schema}, this bowwave reads {SCHEMA}: use the bowwave that it \
         runs, or --json"
    )]
    OtherSchema {
        /// Its process id.
        pid: u64,
        /// Its schema.
        schema: u64,
    },
    /// The answer is JSON with this schema, and yet none of its reports.
    #[error("process {pid} gives an answer that this bowwave cannot read ({reason}); try --json")]
    Malformed {
        /// Its process id.
        pid: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The folder or socket cannot be used.
    #[error("cannot ask {path}: {error}")]
    Unusable {
        /// The folder or socket.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Asks every process of bowwave with this state folder, the daemon first, and returns their answers.
///
/// # Errors
/// If the folder cannot be read. A missing folder means that none runs.
pub fn ask(folder: &Path) -> Result<Vec<Result<Value, AskError>>, AskError> {
    match sockets(folder) {
        Ok(found) => Ok(found.iter().filter_map(|path| ask_one(path).transpose()).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(AskError::of(folder, error)),
    }
}

/// Asks one process; `None` if it has ended.
fn ask_one(path: &Path) -> Result<Option<Value>, AskError> {
    let stream = match connect_to(path, ANSWER_TIMEOUT) {
        Ok(stream) => stream,
        Err(Errno::CONNREFUSED | Errno::NOENT) => return Ok(None),
        Err(error) => return Err(AskError::of(path, error.into())),
    };
    let mut text = Vec::new();
    match stream.take(MOST_BYTES).read_to_end(&mut text) {
        Ok(0) if !rustix::process::geteuid().is_root() => {
            Err(AskError::NotPermitted(path.to_owned()))
        }
        Ok(_) => serde_json::from_slice(&text).map(Some).map_err(|error| AskError::Garbled {
            path: path.to_owned(),
            reason: error.to_string(),
        }),
        // It ended before it accepted the connection.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
        Err(error) => Err(AskError::of(path, error)),
    }
}

impl AskError {
    fn of(path: &Path, error: io::Error) -> AskError {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::PermissionDenied => AskError::NotPermitted(path),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => AskError::Silent(path),
            _ => AskError::Unusable { path, error },
        }
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

/// Adds names of devices and mount points, which the controller does not know.
pub(crate) fn add_names<'a>(
    status: &mut Status,
    volumes: impl Iterator<Item = &'a Volume>,
    device_of: impl Fn(BackingId) -> Option<&'a Device>,
) {
    let mounts: HashMap<String, &Mount> =
        volumes.map(|volume| (volume.mount.dev.to_string(), &volume.mount)).collect();
    let place = |volume: &String| {
        mounts.get(volume).map(|mount| mount.mount_point.display().to_string()).unwrap_or_default()
    };
    for device in &mut status.devices {
        device.mount_points = device.volumes.iter().map(place).collect();
        let known = device_of(BackingId(device.backing));
        let names = known.iter().flat_map(|known| &known.members).map(|disk| disk.name.clone());
        device.disks = names.collect();
        let disk = known.and_then(|known| known.disk.as_ref()).map(|disk| &disk.name);
        let source = || mounts.get(device.volumes.first()?).map(|mount| &mount.source);
        device.is_disk = disk.is_some();
        device.name = disk.or_else(source).cloned().unwrap_or_default();
    }
    for file in &mut status.busiest_files {
        file.mount_point = place(&file.volume);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use controller::{Controller, Options};
    use readahead::adaptive::Limits;

    use super::*;

    fn status() -> Status {
        let policy = recording::policy(Limits::default()).expect("limits");
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
    fn the_socket_is_for_root_and_its_group_and_is_removed_at_the_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = Socket::bind(folder.path(), Role::Daemon, Instant::now()).expect("bound");
        let path = folder.path().join(DAEMON_SOCKET);
        let mode = fs::metadata(&path).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o660, "{mode:o}");
        drop(socket);
        assert!(!path.exists());
        assert_eq!(ask(folder.path()).expect("nobody").len(), 0);
    }

    #[test]
    fn sockets_of_killed_processes_give_no_answer_and_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        // A listener that is closed leaves its file, as a killed process does.
        drop(UnixListener::bind(folder.path().join(DAEMON_SOCKET)).expect("bound"));
        drop(UnixListener::bind(folder.path().join("run-1.sock")).expect("bound"));
        fs::write(folder.path().join("run-notes.sock"), "not ours").expect("written");
        assert_eq!(ask(folder.path()).expect("nobody").len(), 0);
        let _socket = Socket::bind(folder.path(), Role::Daemon, Instant::now()).expect("bound");
        assert!(!folder.path().join("run-1.sock").exists());
        assert!(folder.path().join("run-notes.sock").exists());
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
        let path = folder.path().join(DAEMON_SOCKET);
        let idle: Vec<_> =
            (0..3).map(|_| connect_to(&path, PROBE_TIMEOUT).expect("there is room")).collect();
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
    fn a_socket_that_cannot_be_made_is_one_sentence() {
        let folder = tempfile::tempdir().expect("a folder");
        let long = folder.path().join("x".repeat(100));
        fs::create_dir(&long).expect("made");
        let error =
            Socket::bind(&long, Role::Daemon, Instant::now()).expect_err("too long").to_string();
        assert!(error.starts_with("bowwave status will not show this process"), "{error}");
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

    #[test]
    fn a_sockets_name_shows_its_owner() {
        assert_eq!(owner_of("daemon.sock"), Some(0));
        assert_eq!(owner_of("run-17.sock"), Some(17));
        for other in ["daemon.lock", "run-.sock", "run-x.sock", "17.sock", "disks"] {
            assert_eq!(owner_of(other), None, "{other}");
        }
    }
}
