//! The sockets in a state folder, by name.

use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::Role;

/// Enough to find out whether anybody listens, which the kernel answers at once.
const PROBE_TIMEOUT: Duration = Duration::from_millis(1);

const DAEMON_SOCKET: &str = "daemon.sock";

/// The file name of this process's socket.
pub(crate) fn name_of(role: &Role) -> String {
    match role {
        Role::Daemon => DAEMON_SOCKET.to_owned(),
        Role::Run { .. } => format!("run-{}.sock", std::process::id()),
    }
}

/// Whether the process that made it was killed: nobody listens.
pub(crate) fn is_abandoned(path: &Path) -> bool {
    matches!(connect_to(path, PROBE_TIMEOUT), Err(Errno::CONNREFUSED))
}

/// The sockets in a state folder: first the daemon's, then those of `run` by process id.
pub(crate) fn sockets(folder: &Path) -> io::Result<Vec<PathBuf>> {
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

pub(crate) fn connect_to(path: &Path, timeout: Duration) -> rustix::io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&stream, Timeout::Send, Some(timeout))?;
    set_socket_timeout(&stream, Timeout::Recv, Some(timeout))?;
    connect(&stream, &address)?;
    Ok(stream.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sockets_name_shows_its_owner() {
        assert_eq!(owner_of("daemon.sock"), Some(0));
        assert_eq!(owner_of("run-17.sock"), Some(17));
        for other in ["daemon.lock", "run-.sock", "run-x.sock", "17.sock", "disks"] {
            assert_eq!(owner_of(other), None, "{other}");
        }
    }
}
