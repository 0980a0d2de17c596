//! The side of the process that answers.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Instant;

use controller::Status;
use rustix::fs::{CWD, FileType, Mode, OFlags, chmod, fchmod, fstat, openat, rename};
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_send_buffer_size_force, socket_peercred};
use rustix::net::{
    AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen,
    send, socket_with,
};

use crate::folder::{is_abandoned, name_of, sockets};
use crate::{Report, Role, SCHEMA};

/// How many clients may wait, and how many the engine answers at a time.
const MOST_CLIENTS: i32 = 4;

/// A client's buffer holds at least so much, as it does on most systems without asking.
const DEFAULT_BUFFER_BYTES: usize = 200 << 10;

/// 0660.
const ROOT_AND_GROUP: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::RGRP).union(Mode::WGRP);

/// Why a process cannot answer.
#[derive(Debug, thiserror::Error)]
#[error("bowwave status will not show this process: cannot listen on {path}: {error}")]
pub struct BindError {
    path: PathBuf,
    error: io::Error,
}

/// The listening socket of one process. Its file is removed when this is dropped.
#[derive(Debug)]
pub struct Socket {
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
    pub fn bind(folder: &Path, role: Role, since: Instant) -> Result<Socket, BindError> {
        remove_stale(folder);
        let path = folder.join(name_of(&role));
        match listen_on(&path) {
            Ok(listener) => Ok(Socket { listener, path, role, since }),
            Err(error) => Err(BindError { path, error: error.into() }),
        }
    }

    /// Readable while a client waits.
    pub fn readiness(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Answers the clients that wait, a few at a time.
    ///
    /// # Errors
    /// If no client can be accepted any more, for example without free descriptors. The socket would then stay readable
    /// for ever.
    pub fn answer(&self, status: impl Fn() -> Status) -> io::Result<()> {
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
        if is_abandoned(&path) {
            let _ = fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::ask;

    #[test]
    fn the_socket_is_for_root_and_its_group_and_is_removed_at_the_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = Socket::bind(folder.path(), Role::Daemon, Instant::now()).expect("bound");
        let path = folder.path().join("daemon.sock");
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
        drop(UnixListener::bind(folder.path().join("daemon.sock")).expect("bound"));
        drop(UnixListener::bind(folder.path().join("run-1.sock")).expect("bound"));
        fs::write(folder.path().join("run-notes.sock"), "not ours").expect("written");
        assert_eq!(ask(folder.path()).expect("nobody").len(), 0);
        let _socket = Socket::bind(folder.path(), Role::Daemon, Instant::now()).expect("bound");
        assert!(!folder.path().join("run-1.sock").exists());
        assert!(folder.path().join("run-notes.sock").exists());
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
}
