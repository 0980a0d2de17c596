//! Suggests what to try next on this machine: its slowest storage, and the commands for it.

use std::fs;
use std::path::{Path, PathBuf};

use linux::mounts::{self, Disk, Mount};
use linux::shell::quoted;

/// Network file systems.
const NETWORK: &[&str] = &[
    "9p",
    "afs",
    "ceph",
    "cifs",
    "fuse.glusterfs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.sshfs",
    "lustre",
    "nfs",
    "nfs4",
    "smb3",
];

/// Fewer reads since boot than this say little about a disk.
const LEAST_READS: u64 = 100;

/// Mounted storage.
#[derive(Clone, Debug, PartialEq)]
struct Storage {
    mount_point: PathBuf,
    kind: Kind,
    /// Mean time of a read since boot, in milliseconds; unknown without a disk.
    read_ms: Option<f64>,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    /// A disk with a head, by its device node.
    Rotating(PathBuf),
    /// A network file system, by its type.
    Network(String),
    /// Any other disk, by its device node.
    Other(PathBuf),
}

impl Storage {
    fn of(mount: &Mount) -> Option<Self> {
        let kind_and_ms = match Disk::under(mount) {
            Some(disk) => {
                let counters = fs::read_to_string(disk.sysfs.join("stat")).unwrap_or_default();
                let is_rotating = disk.is_rotational();
                let kind = if is_rotating { Kind::Rotating } else { Kind::Other };
                Some((kind(disk.node()), read_ms(&counters)))
            }
            None if NETWORK.contains(&mount.fs_type.as_str()) => {
                Some((Kind::Network(mount.fs_type.clone()), None))
            }
            None => None,
        };
        let (kind, read_ms) = kind_and_ms?;
        Some(Storage { mount_point: mount.mount_point.clone(), kind, read_ms })
    }

    /// A larger value means slower storage: disks with heads, then network file systems, then others by the time of a
    /// read.
    fn slowness(&self) -> (u8, f64) {
        let class = match self.kind {
            Kind::Rotating(_) => 2,
            Kind::Network(_) => 1,
            Kind::Other(_) => 0,
        };
        (class, self.read_ms.unwrap_or(0.0))
    }

    fn sentence(&self) -> String {
        let reads =
            self.read_ms.map_or(String::new(), |ms| format!(", {ms:.1} ms a read since boot"));
        let place = quoted(&self.mount_point);
        match &self.kind {
            Kind::Rotating(node) => {
                let node = quoted(node);
                format!("{place} on {node}, which the kernel takes for a rotating disk{reads}")
            }
            Kind::Network(fs_type) => format!("{place}, a network file system ({fs_type})"),
            Kind::Other(node) => format!("{place} on {}{reads}", quoted(node)),
        }
    }

    /// `bowwave` is how to start bowwave as root.
    fn commands(&self, bowwave: &str) -> String {
        // The root folder contains more than users' files.
        let root = Path::new("/");
        let folder = if self.mount_point == root { Path::new("/usr") } else { &self.mount_point };
        let mut lines = vec![
            (
                format!("{bowwave} run -v -- grep -rqs no-such-word {}", quoted(folder)),
                "one program, or your own",
            ),
            (
                format!("{bowwave} demo --device local:{}", quoted(&self.mount_point)),
                "this table, there",
            ),
        ];
        let target = match &self.kind {
            Kind::Rotating(node) | Kind::Other(node) => node,
            Kind::Network(_) => &self.mount_point,
        };
        lines.push((format!("{bowwave} tune {}", quoted(target)), "its best static window"));
        lines.push((format!("{bowwave} daemon"), "every program, until Ctrl-C"));
        let width = lines.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
        let line = |(command, what): &(String, &str)| format!("  {command:<width$}   {what}");
        lines.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// What to do next, in several lines. `bowwave` is how to start bowwave as root.
pub fn next_steps(bowwave: &str) -> String {
    let mounts = mounts::list().unwrap_or_default();
    let of_machine = mounts.iter().filter(|mount| !lab::is_in_lab(&mount.mount_point));
    advice(of_machine.filter_map(Storage::of).collect(), bowwave)
}

fn advice(storage: Vec<Storage>, bowwave: &str) -> String {
    let slowest = storage.iter().max_by(|one, other| {
        let (one, other) = (one.slowness(), other.slowness());
        one.0.cmp(&other.0).then(one.1.total_cmp(&other.1))
    });
    match slowest {
        Some(slowest) => format!(
            "Next, on this machine. Its slowest storage is {}. Try the following; `run` helps only with data \
             that are not cached yet.\n{}",
            slowest.sentence(),
            slowest.commands(bowwave)
        ),
        None => "Next: this machine has no disk or network mount that bowwave could help; \
                 try it where there is one."
            .into(),
    }
}

/// From a disk's counters: milliseconds spent reading over reads completed.
fn read_ms(counters: &str) -> Option<f64> {
    let mut fields = counters.split_whitespace().map(str::parse::<u64>);
    let reads = fields.next()?.ok()?;
    let spent_ms = fields.nth(2)?.ok()?;
    (reads >= LEAST_READS).then(|| spent_ms as f64 / reads as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn storage(place: &str, kind: Kind, read_ms: f64) -> Storage {
        Storage { mount_point: place.into(), kind, read_ms: Some(read_ms) }
    }

    #[test]
    fn a_disk_with_a_head_comes_before_a_network_mount_and_that_before_flash() {
        let ssd = storage("/", Kind::Other("/dev/nvme0n1".into()), 50.0);
        let disk = storage("/srv", Kind::Rotating("/dev/sda".into()), 8.25);
        let nfs = Storage { read_ms: None, ..storage("/home", Kind::Network("nfs4".into()), 0.0) };
        let all = advice(vec![ssd.clone(), disk, nfs.clone()], "./bowwave");
        for words in [
            "/srv on /dev/sda, which",
            "rotating disk, 8.2 ms",
            "  ./bowwave tune /dev/sda",
            "local:/srv",
        ] {
            assert!(all.contains(words), "{words} in {all}");
        }
        let without = advice(vec![ssd.clone(), nfs], "bowwave");
        assert!(without.contains("/home, a network file system (nfs4)"), "{without}");
        assert!(without.contains("bowwave tune /home"), "{without}");
        assert!(advice(vec![ssd], "bowwave").contains("grep -rqs no-such-word /usr"));
        assert!(advice(Vec::new(), "bowwave").contains("no disk"));
    }

    #[test]
    fn a_mount_point_of_any_name_is_one_word_of_a_shell() {
        let nfs = storage("/home/x; reboot\n\u{1b}[2J", Kind::Network("fuse.sshfs".into()), 1.0);
        let all = advice(vec![nfs], "bowwave");
        let word = r"$'/home/x; reboot\012\033[2J'";
        assert_eq!(all.matches(word).count(), 4, "{all}");
        assert!(!all.replace(word, "").contains("reboot"), "{all}");
    }

    #[test]
    fn what_a_read_takes_is_time_over_reads() {
        assert_eq!(read_ms("  200   0   16000   1700  5 5 5 5"), Some(8.5));
        assert_eq!(read_ms("  99   0   16000   1700  5 5 5 5"), None, "too few");
        assert_eq!(read_ms(""), None);
    }
}
