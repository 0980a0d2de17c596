//! The mounted file systems that have a page cache, and the disks under them.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use readahead::DeviceNumber;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Read this much of another process's table, in half a millisecond.
const MOST_BYTES_OF_OTHERS: u64 = 256 << 10;

/// File systems without data to read ahead: their pages are the data itself, or they have none.
const WITHOUT_BACKING: [&str; 24] = [
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nsfs",
    "overlay",
    "proc",
    "pstore",
    "ramfs",
    "rpc_pipefs",
    "securityfs",
    "sysfs",
    "tmpfs",
    "tracefs",
    "swap",
];

/// File systems with a device number of their own on a disk that their source names. Only root can mount them.
const SOURCE_IS_DISK: [&str; 2] = ["bcachefs", "btrfs"];

/// The type under which a lab's server is mounted. Its files are not cached; the disk on top of
/// them is.
const LAB_SERVER: &str = "bowwave-lab";

/// One mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Its device number, as kernel events report it.
    pub dev: DeviceNumber,
    /// The directory (or file) within the file system that is mounted: `/`, or another for bind mounts and subvolumes.
    pub root: PathBuf,
    /// One place where it is mounted.
    pub mount_point: PathBuf,
    /// Its type, for example `ext4`.
    pub fs_type: String,
    /// Its source, for example `/dev/sda1`.
    pub source: String,
}

impl Mount {
    fn has_page_cache(&self) -> bool {
        !WITHOUT_BACKING.contains(&self.fs_type.as_str()) && self.source != LAB_SERVER
    }
}

/// Every mounted file system with a page cache, one mount each, sorted by mount point.
///
/// # Errors
/// If `/proc/self/mountinfo` cannot be read.
pub fn list() -> io::Result<Vec<Mount>> {
    Ok(with_page_cache(table()?))
}

/// Every mount of file systems with a page cache, in the order of mounting.
///
/// # Errors
/// If `/proc/self/mountinfo` cannot be read.
pub fn all() -> io::Result<Vec<Mount>> {
    let mut mounts = table()?;
    mounts.retain(Mount::has_page_cache);
    Ok(mounts)
}

/// The file system with this number, of any type; `None` if it is not mounted.
///
/// # Errors
/// If `/proc/self/mountinfo` cannot be read.
pub fn of_number(dev: DeviceNumber) -> io::Result<Option<Mount>> {
    Ok(table()?.into_iter().find(|mount| mount.dev == dev))
}

/// The file system that holds `path`.
///
/// # Errors
/// If `path` does not exist, or its file system has no page cache to read into.
pub fn of_path(path: &Path) -> io::Result<Mount> {
    use std::os::unix::fs::MetadataExt;
    let path = path.canonicalize()?;
    let dev = DeviceNumber::from_stat(path.metadata()?.dev());
    find_in(table()?, &path, dev)
}

/// The writable layer of an overlay, or else its first lower layer; `None` if `path` is not on an
/// overlay.
///
/// # Errors
/// If `path` does not exist or the mount table cannot be read.
pub fn upper_layer(path: &Path) -> io::Result<Option<PathBuf>> {
    let path = path.canonicalize()?;
    let text = crate::table::read(MOUNTINFO)?;
    let holding = text.lines().filter_map(|line| Some((parse_line(line)?, line)));
    let holding = holding.filter(|(mount, _)| path.starts_with(&mount.mount_point));
    let found = holding.max_by_key(|(mount, _)| mount.mount_point.components().count());
    Ok(found.filter(|(mount, _)| mount.fs_type == "overlay").and_then(|(_, line)| layer_in(line)))
}

/// The folder that an overlay's options name.
fn layer_in(line: &str) -> Option<PathBuf> {
    let options = line.split(' ').next_back()?;
    let value = |key: &str| options.split(',').find_map(|option| option.strip_prefix(key));
    let lower = || value("lowerdir=").and_then(|layers| layers.split(':').next());
    value("upperdir=").or_else(lower).map(|folder| PathBuf::from(unescape(folder)))
}

/// Tells when the table of mounts changes.
#[derive(Debug)]
pub struct Changes(File);

impl Changes {
    /// Of changes from now on.
    ///
    /// # Errors
    /// If `/proc/self/mountinfo` cannot be opened.
    pub fn watch() -> io::Result<Self> {
        File::open(MOUNTINFO).map(Changes)
    }

    /// Waits for a change since the last one that was reported, this long at most. Returns whether there was one.
    ///
    /// # Errors
    /// If a signal comes, or if the kernel does not report changes.
    pub fn wait(&self, at_most: Duration) -> io::Result<bool> {
        // poll reports a changed table as PRI.
        let mut table = [PollFd::new(&self.0, PollFlags::PRI)];
        let at_most = Timespec::try_from(at_most).map_err(io::Error::other)?;
        Ok(poll(&mut table, Some(&at_most))? > 0)
    }
}

fn table() -> io::Result<Vec<Mount>> {
    Ok(parse(&crate::table::read(MOUNTINFO)?))
}

const MOUNTINFO: &str = "/proc/self/mountinfo";

fn parse(mountinfo: &str) -> Vec<Mount> {
    mountinfo.lines().filter_map(parse_line).collect()
}

fn with_page_cache(table: Vec<Mount>) -> Vec<Mount> {
    let mut mounts: Vec<Mount> = Vec::new();
    for mount in table {
        if mount.has_page_cache() && !mounts.iter().any(|known| known.dev == mount.dev) {
            mounts.push(mount);
        }
    }
    mounts.sort_by(|one, other| one.mount_point.cmp(&other.mount_point));
    mounts
}

/// Finds a mount by its number. btrfs gives its files other numbers, so the mount point decides
/// then.
fn find_in(table: Vec<Mount>, path: &Path, dev: DeviceNumber) -> io::Result<Mount> {
    let by_number = table.iter().find(|mount| mount.dev == dev);
    let by_place = || {
        let holding = table.iter().filter(|mount| path.starts_with(&mount.mount_point));
        holding.max_by_key(|mount| mount.mount_point.components().count())
    };
    let found = by_number.or_else(by_place).ok_or(io::ErrorKind::NotFound)?.clone();
    if !found.has_page_cache() {
        let reason = format!(
            "it is on {}, which has no page cache on a device, so nothing can be read ahead",
            found.fs_type
        );
        return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
    }
    // The listed mount of that file system, even if `path` is below another one.
    let listed = with_page_cache(table).into_iter().find(|mount| mount.dev == found.dev);
    Ok(listed.unwrap_or(found))
}

fn id_in(line: &str) -> Option<u64> {
    line.split(' ').next().and_then(|field| field.parse().ok())
}

/// The mounts that a process sees, with their ids: the first of its table, some 2,000. A user may have 100,000.
///
/// # Errors
/// If the table cannot be read.
pub(crate) fn of_process(process: u32) -> io::Result<impl Iterator<Item = (u64, Mount)>> {
    let table = File::open(format!("/proc/{process}/mountinfo"))?.take(MOST_BYTES_OF_OTHERS);
    let lines = BufReader::new(table).split(b'\n').map_while(Result::ok);
    Ok(lines.filter_map(|line| {
        let line = String::from_utf8_lossy(&line);
        Some((id_in(&line)?, parse_line(&line)?))
    }))
}

/// `36 35 98:0 /root /mount/point options - type source options`, see proc(5).
pub(crate) fn parse_line(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ');
    let dev = left.nth(2)?.parse().ok()?;
    let (root, mount_point) = (left.next()?, left.next()?);
    let mut right = right.split(' ');
    Some(Mount {
        dev,
        root: PathBuf::from(unescape(root)),
        mount_point: PathBuf::from(unescape(mount_point)),
        fs_type: right.next()?.to_owned(),
        source: unescape(right.next()?),
    })
}

/// Decodes the octal escapes of blanks and backslashes.
fn unescape(field: &str) -> String {
    let mut out = String::with_capacity(field.len());
    let mut rest = field;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let digits = after.get(..3).filter(|digits| digits.chars().all(|c| c.is_digit(8)));
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                out.push(char::from(byte));
                rest = &after[3..];
            }
            None => {
                out.push('\\');
                rest = after;
            }
        }
    }
    out + rest
}

#[cfg(any(test, fuzzing))]
pub(crate) fn read_any(mountinfo: &str) {
    let table = parse(mountinfo);
    for (mount, line) in table.iter().zip(mountinfo.lines()) {
        // Either an error or one of the listed mounts.
        let _ = find_in(table.clone(), &mount.mount_point, mount.dev);
        layer_in(line);
    }
    assert!(with_page_cache(table).is_sorted_by(|a, b| a.mount_point <= b.mount_point));
}

/// The whole disk below a file system: its number, sysfs folder and device node. It may be a volume of LVM, LUKS or md;
/// [`Disk::members`] are the disks that it is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// The number of the disk, not of a partition.
    pub dev: DeviceNumber,
    /// `/sys/block/NAME`.
    pub sysfs: PathBuf,
    /// Its name, for example `sda`.
    pub name: String,
    /// A number that no other disk gets until the next boot, even one in the same slot.
    pub sequence: String,
}

/// What a disk does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Bytes that it has read and written since boot.
    pub bytes: u64,
    /// Reads that it has served since boot.
    pub reads: u64,
    /// Bytes of these.
    pub read_bytes: u64,
    /// Time in which it had requests, in milliseconds.
    pub busy_ms: u64,
    /// Requests that it has not served yet.
    pub in_flight: u64,
}

impl Disk {
    /// The disk below `mount`; `None` for file systems without a disk, such as network file
    /// systems.
    pub fn under(mount: &Mount) -> Option<Disk> {
        Disk::of(block_device(mount)?)
    }

    /// The disk with this number, or the disk of the partition with this number.
    pub fn of(dev: DeviceNumber) -> Option<Disk> {
        Disk::in_folder(fs::canonicalize(format!("/sys/dev/block/{dev}")).ok()?)
    }

    /// The disk with this folder in sysfs, or the disk of the partition with this folder.
    pub(crate) fn in_folder(folder: PathBuf) -> Option<Disk> {
        let folder =
            if folder.join("partition").exists() { folder.parent()?.to_path_buf() } else { folder };
        Some(Disk {
            dev: fs::read_to_string(folder.join("dev")).ok()?.trim().parse().ok()?,
            sequence: fs::read_to_string(folder.join("diskseq")).unwrap_or_default(),
            name: folder.file_name()?.to_string_lossy().into_owned(),
            sysfs: folder,
        })
    }

    /// A number from the disk's `queue` folder.
    pub fn queue(&self, attribute: &str) -> Option<u64> {
        fs::read_to_string(self.sysfs.join("queue").join(attribute)).ok()?.trim().parse().ok()
    }

    /// Whether the kernel considers it a rotating disk.
    pub fn is_rotational(&self) -> bool {
        self.queue("rotational") == Some(1)
    }

    /// What it does for all programs; `None` if the kernel does not count that. The kernel's
    /// `Documentation/block/stat.rst` has the fields.
    pub fn load(&self) -> Option<Load> {
        self.queue("iostats").filter(|counts| *counts == 1)?;
        let counters = fs::read_to_string(self.sysfs.join("stat")).ok()?;
        let field = |n: usize| counters.split_ascii_whitespace().nth(n)?.parse::<u64>().ok();
        let (read_bytes, written_bytes) = (field(2)? * 512, field(6)? * 512);
        Some(Load {
            bytes: read_bytes + written_bytes,
            reads: field(0)?,
            read_bytes,
            busy_ms: field(9)?,
            in_flight: field(8)?,
        })
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> Option<u64> {
        let sectors = fs::read_to_string(self.sysfs.join("size")).ok()?;
        Some(sectors.trim().parse::<u64>().ok()? * 512)
    }

    /// Its device node. In sysfs, `!` stands for a `/` of its name (`cciss!c0d0`).
    pub fn node(&self) -> PathBuf {
        Path::new("/dev").join(self.name.replace('!', "/"))
    }
}

/// The number of the partition under `mount`; `None` for a whole disk, or no disk.
pub fn partition_under(mount: &Mount) -> Option<u32> {
    let dev = block_device(mount)?;
    fs::read_to_string(format!("/sys/dev/block/{dev}/partition")).ok()?.trim().parse().ok()
}

fn block_device(mount: &Mount) -> Option<DeviceNumber> {
    use std::os::unix::fs::MetadataExt;
    if mount.dev.major != 0 {
        return Some(mount.dev);
    }
    // A user who mounts with FUSE chooses the source, too.
    let source = Path::new(&mount.source);
    if !SOURCE_IS_DISK.contains(&mount.fs_type.as_str()) || !source.starts_with("/dev") {
        return None;
    }
    let node = fs::metadata(source).ok()?;
    let dev = node.rdev();
    (dev != 0).then(|| DeviceNumber::from_stat(dev))
}

/// The file with the kernel's window for this file system, in KiB. A partition has none and uses
/// its disk's. btrfs, CIFS and others have one with a name such as `btrfs-1`.
pub fn read_ahead_knob(mount: &Mount) -> PathBuf {
    let knob = |dev: DeviceNumber| PathBuf::from(format!("/sys/class/bdi/{dev}/read_ahead_kb"));
    // A disk that a FUSE server mounts has a window of its own, and the mount another one.
    let of_fuse = PathBuf::from(format!("/sys/class/bdi/{}-fuseblk/read_ahead_kb", mount.dev));
    if mount.fs_type == "fuseblk" && of_fuse.exists() {
        return of_fuse;
    }
    let own = knob(mount.dev);
    if own.exists() {
        return own;
    }
    if let Some(named) = named_knob(mount) {
        return named;
    }
    Disk::under(mount).map_or(own, |disk| knob(disk.dev))
}

/// btrfs tells which file belongs to which volume. For other types, only a single file is certain.
fn named_knob(mount: &Mount) -> Option<PathBuf> {
    let entries = |folder: &str| fs::read_dir(folder).ok().map(|list| list.flatten());
    if mount.fs_type == "btrfs" {
        let name = Path::new(&mount.source).file_name()?;
        let volume = entries("/sys/fs/btrfs")?
            .find(|volume| volume.path().join("devices").join(name).exists())?;
        return Some(fs::canonicalize(volume.path().join("bdi")).ok()?.join("read_ahead_kb"));
    }
    let prefix = format!("{}-", mount.fs_type);
    let is_named = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(&prefix);
    let mut named = entries("/sys/class/bdi")?.filter(is_named);
    match (named.next(), named.next()) {
        (Some(only), None) => Some(only.path().join("read_ahead_kb")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
23 22 0:5 / /proc rw - proc proc rw
24 22 7:3 / /mnt/with\\040blank rw - xfs /dev/loop3 rw
25 22 254:0 /srv /srv rw - ext4 /dev/vda rw
26 22 0:44 / /net rw - nfs4 server:/export rw
27 22 0:50 / /run/bowwave/lab/hdd/fuse rw - fuse bowwave-lab rw
nonsense
";

    #[test]
    fn a_slash_in_a_disks_name_is_one_in_its_node() {
        let dev = DeviceNumber { major: 104, minor: 0 };
        let (sysfs, sequence) = (PathBuf::new(), String::new());
        let disk = |name: &str| Disk {
            dev,
            sysfs: sysfs.clone(),
            name: name.into(),
            sequence: sequence.clone(),
        };
        assert_eq!(disk("sda").node(), Path::new("/dev/sda"));
        assert_eq!(disk("cciss!c0d0").node(), Path::new("/dev/cciss/c0d0"));
    }

    #[test]
    fn file_systems_with_a_page_cache_are_listed_once() {
        let mounts = with_page_cache(parse(SAMPLE));
        let points: Vec<_> = mounts.iter().map(|m| m.mount_point.to_str().unwrap_or("")).collect();
        assert_eq!(points, ["/", "/mnt/with blank", "/net"]);
        assert_eq!(mounts[1].dev, DeviceNumber { major: 7, minor: 3 });
        assert_eq!(mounts[2].fs_type, "nfs4");
        let roots: Vec<_> = parse(SAMPLE).into_iter().map(|mount| mount.root).collect();
        assert_eq!(roots[3], PathBuf::from("/srv"), "a bind mount");
    }

    #[test]
    fn mounts_are_sorted_by_mount_point() {
        let mut lines: Vec<_> = SAMPLE.lines().collect();
        lines.reverse();
        let mounts = with_page_cache(parse(&lines.join("\n")));
        assert!(mounts.is_sorted_by_key(|mount| &mount.mount_point), "{mounts:?}");
    }

    #[test]
    fn a_path_belongs_to_its_own_file_system_not_to_the_one_above() {
        let found = |path: &str, major, minor| {
            find_in(parse(SAMPLE), Path::new(path), DeviceNumber { major, minor })
        };
        assert_eq!(
            found("/mnt/with blank/x", 7, 3).map(|m| m.fs_type).ok().as_deref(),
            Some("xfs")
        );
        assert_eq!(found("/srv/x", 254, 0).map(|m| m.mount_point).ok(), Some("/".into()));
        // btrfs: no mount has this number.
        assert_eq!(found("/net/x", 0, 99).map(|m| m.fs_type).ok().as_deref(), Some("nfs4"));
        for (path, minor) in [("/proc", 5), ("/run/bowwave/lab/hdd/fuse", 50), ("/proc/1", 99)] {
            let refused = found(path, 0, minor).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::Unsupported, "{path}");
        }
    }

    #[test]
    fn a_users_file_system_has_no_disk_whatever_its_source() {
        // `null` has a device number, and is everywhere.
        let of = |fs_type: &str, source: &str| {
            let line = format!("27 22 0:50 / /mnt rw - {fs_type} {source} rw");
            block_device(&parse_line(&line).expect("a mount"))
        };
        let null = DeviceNumber { major: 1, minor: 3 };
        assert_eq!(of("btrfs", "/dev/null"), Some(null));
        for (fs_type, source) in [
            ("fuse.sshfs", "/dev/null"),
            ("fuse", "/dev/null"),
            ("btrfs", "/proc/self/exe"),
            ("nfs4", "/dev/null"),
        ] {
            assert_eq!(of(fs_type, source), None, "{fs_type} {source}");
        }
    }

    #[test]
    fn an_overlay_names_its_layers() {
        let line =
            "30 22 0:60 / /merged rw - overlay overlay rw,lowerdir=/a:/b,upperdir=/u,workdir=/w";
        assert_eq!(layer_in(line), Some("/u".into()));
        assert_eq!(layer_in("- overlay overlay ro,lowerdir=/a:/b"), Some("/a".into()));
    }

    #[test]
    fn a_backslash_that_escapes_nothing_stays() {
        assert_eq!(unescape("a\\040b\\x"), "a b\\x");
        assert_eq!(unescape("\\+12\\777\\"), "\\+12\\777\\");
    }
}
