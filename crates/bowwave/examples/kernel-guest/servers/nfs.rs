//! A folder of NFS version 4.2, which this machine serves to itself.
//!
//! The reader's own bytes are those that the NFS client counts for its process, as on a disk. Requests are READ and
//! READ_PLUS operations of the client, and bytes those that the server sent it.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::fd::AsRawFd;

use rustix::mount::{MountFlags, mount};

use super::{COLUMN, run};
use crate::Result;
use crate::machine::{FOLDER, Place};
use crate::measuring::{compare, measure};

const SERVED: Place = Place { folder: "/nfs", served: client_counters };
const PATTERNS: [(&str, &str); 2] =
    [("NFS, backward", "backward-64k"), ("NFS, strided", "stride-64k-256k")];

const PORT: u16 = 2049;
/// For the kernel's tables: until they are asked again.
const FOR_EVER: u64 = 2_147_483_647;
/// Read-only, from any port, without checks of subtrees, with a number of its own (include/uapi/linux/nfsd/export.h).
const EXPORT_FLAGS: u32 = 0x1 | 0x2 | 0x400 | 0x2000;

pub(super) fn report() -> Result<()> {
    run("ip", &["link", "set", "lo", "up"])?;
    serve()?;
    fs::create_dir(SERVED.folder)?;
    let options = c"vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1";
    mount("127.0.0.1:/", SERVED.folder, "nfs4", MountFlags::RDONLY, Some(options))
        .map_err(|error| format!("cannot mount NFS: {error}"))?;
    // The first reads also ask for names and rights.
    measure(None, "backward-64k", SERVED)?;
    for (feature, pattern) in PATTERNS {
        let (works, figures) = compare("", pattern, SERVED)?;
        crate::report(COLUMN, feature, works, &figures);
    }
    Ok(())
}

/// Exports the folder, as rpc.mountd, exportfs and rpc.nfsd do: the kernel gets their answers before it asks.
fn serve() -> Result<()> {
    mount("nfsd", "/proc/fs/nfsd", "nfsd", MountFlags::empty(), None)?;
    let answers = [
        ("auth.unix.ip", format!("nfsd 127.0.0.1 {FOR_EVER} guest\n")),
        ("nfsd.export", format!("guest {FOLDER} {FOR_EVER} {EXPORT_FLAGS} 65534 65534 0\n")),
        ("nfsd.fh", format!("guest 1 \\x00000000 {FOR_EVER} {FOLDER}\n")),
    ];
    for (table, answer) in answers {
        put(&format!("/proc/net/rpc/{table}/channel"), &answer)?;
    }
    put("/proc/fs/nfsd/versions", "-3 +4 +4.1 +4.2\n")?;
    // Clients of an earlier boot may reclaim what they had, and others wait: for the shortest time.
    fs::create_dir_all("/var/lib/nfs/v4recovery")?;
    put("/proc/fs/nfsd/nfsv4gracetime", "10\n")?;
    let socket = TcpListener::bind(("127.0.0.1", PORT))?;
    put("/proc/fs/nfsd/portlist", &format!("{}\n", socket.as_raw_fd()))?;
    put("/proc/fs/nfsd/threads", "8\n")?;
    // There are none. A kernel that does not keep a list of them is busy until that time has passed.
    match put("/proc/fs/nfsd/v4_end_grace", "Y\n") {
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Ok(()),
        other => Ok(other?),
    }
}

fn put(path: &str, text: &str) -> io::Result<()> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{path}: {error}"));
    fs::write(path, text).map_err(named)
}

/// Operations that read, and bytes from the server (`/proc/self/mountstats`).
fn client_counters() -> Result<(u64, u64)> {
    let stats = fs::read_to_string("/proc/self/mountstats")?;
    let (_, own) = stats.split_once(&format!("mounted on {} ", SERVED.folder)).ok_or("no NFS")?;
    let field = |name: &str, number: usize| -> Result<u64> {
        let line = own.lines().find_map(|line| line.trim().strip_prefix(name));
        let mut fields = line.ok_or_else(|| format!("NFS tells no {name}"))?.split_whitespace();
        Ok(fields.nth(number).ok_or_else(|| format!("NFS tells too little of {name}"))?.parse()?)
    };
    Ok((field("READ:", 0)? + field("READ_PLUS:", 0)?, field("bytes:", 4)?))
}
