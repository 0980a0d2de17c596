//! The paths of files in a trace: as they are, or as numbers.

use std::collections::{HashMap, HashSet};

use linux::mounts::{self, Mount};
use readahead::DeviceNumber;

use super::TracedFile;

/// Bytes of a component in an event, with a zero at its end (programs/path.h).
const COMPONENT_BYTES: usize = 64;

/// Names files by path.
#[derive(Debug, Default)]
pub struct Paths {
    /// Where file systems are mounted, the mount of the largest part first.
    places: HashMap<DeviceNumber, Vec<Place>>,
    /// File systems that are mounted elsewhere only, as in a container.
    unmounted: HashSet<DeviceNumber>,
    /// If paths are to be replaced: the numbers given so far, in each directory.
    numbers: Option<HashMap<String, HashMap<String, usize>>>,
}

/// A mount.
#[derive(Debug)]
struct Place {
    /// Components of the directory or file that is mounted, none if it is the whole file system.
    root: Vec<String>,
    mount_point: String,
}

impl Paths {
    /// With `is_anonymous`, each component of a path is replaced by a number. Equal directories have equal numbers.
    pub fn new(is_anonymous: bool) -> Self {
        Paths { numbers: is_anonymous.then(HashMap::new), ..Paths::default() }
    }

    /// The file's name in the trace.
    pub fn name(&mut self, file: &TracedFile) -> String {
        let place = self.place(file);
        let root = place.map_or(0, |place| place.root.len());
        let unmounted = format!("volume {}", file.dev);
        let place = place.map_or(&*unmounted, |place| place.mount_point.trim_end_matches('/'));
        let end = file.components.join("/");
        let path = match file.is_whole && !end.is_empty() {
            true if root == file.components.len() => place.to_owned(),
            true => format!("{place}/{}", file.components[root..].join("/")),
            // The inode tells files apart whose ends are the same.
            false => format!("{place}/.../{end}#{}", file.ino),
        };
        match &mut self.numbers {
            Some(numbers) => numbered(&path, numbers),
            None => path.replace(char::is_control, "\u{fffd}"),
        }
    }

    /// The mount below which the file is.
    fn place(&mut self, file: &TracedFile) -> Option<&Place> {
        if !self.places.contains_key(&file.dev) && self.unmounted.insert(file.dev) {
            self.places = places(&mounts::all().unwrap_or_default());
        }
        let holds = |place: &&Place| !file.is_whole || begins(&file.components, &place.root);
        self.places.get(&file.dev)?.iter().find(holds)
    }
}

fn places(mounts: &[Mount]) -> HashMap<DeviceNumber, Vec<Place>> {
    let mut places: HashMap<_, Vec<Place>> = HashMap::new();
    for mount in mounts {
        let root = mount.root.display().to_string();
        let root = root.split('/').filter(|component| !component.is_empty());
        places.entry(mount.dev).or_default().push(Place {
            root: root.map(str::to_owned).collect(),
            mount_point: mount.mount_point.display().to_string(),
        });
    }
    places.values_mut().for_each(|places| places.sort_by_key(|place| place.root.len()));
    places
}

/// Whether a path begins with these components. The eBPF programs cut long ones.
fn begins(path: &[String], root: &[String]) -> bool {
    let is_cut =
        |known: &str, whole: &str| known.len() >= COMPONENT_BYTES - 1 && whole.starts_with(known);
    root.len() <= path.len() && path.iter().zip(root).all(|(a, b)| a == b || is_cut(a, b))
}

fn numbered(path: &str, numbers: &mut HashMap<String, HashMap<String, usize>>) -> String {
    let mut anonymous = String::new();
    let mut directory = String::new();
    for component in path.split('/').filter(|component| !component.is_empty()) {
        let known = numbers.entry(directory.clone()).or_default();
        let next = known.len() + 1;
        let number = known.entry(component.to_owned()).or_insert(next);
        anonymous += &format!("/{number}");
        directory = format!("{directory}/{component}");
    }
    anonymous
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const DISK: DeviceNumber = DeviceNumber { major: 8, minor: 1 };

    fn file(components: &[&str], is_whole: bool) -> TracedFile {
        let components = components.iter().map(|text| (*text).to_owned()).collect();
        TracedFile { file: 0, bytes: 1, ino: 17, dev: DISK, components, is_whole }
    }

    fn mount(root: &str, mount_point: &str) -> Mount {
        let [root, mount_point] = [root, mount_point].map(PathBuf::from);
        Mount { dev: DISK, root, mount_point, fs_type: "ext4".into(), source: "/dev/sda1".into() }
    }

    fn mounted_at(mounts: &[Mount], is_anonymous: bool) -> Paths {
        Paths { places: places(mounts), ..Paths::new(is_anonymous) }
    }

    fn mounted(is_anonymous: bool) -> Paths {
        mounted_at(&[mount("/", "/srv")], is_anonymous)
    }

    #[test]
    fn a_bind_mount_or_subvolume_has_only_what_is_below_its_root() {
        let long = "x".repeat(100);
        let mut paths = mounted_at(
            &[
                mount("/home/ann", "/ann"),
                mount("/vol", "/"),
                mount("/etc/hosts", "/run/hosts"),
                mount(&format!("/{long}"), "/long"),
            ],
            false,
        );
        let mut name = |components: &[&str]| paths.name(&file(components, true));
        assert_eq!(name(&["vol", "f"]), "/f");
        assert_eq!(name(&["home", "ann", "d", "f"]), "/ann/d/f");
        assert_eq!(name(&["etc", "hosts"]), "/run/hosts");
        assert_eq!(name(&[&long[..63], "f"]), "/long/f");
        assert_eq!(name(&["home", "bob", "f"]), "volume 8:1/home/bob/f", "it is mounted nowhere");
        assert_eq!(name(&["home"]), "volume 8:1/home");
        let whole = [mount("/home", "/h"), mount("/", "/srv"), mount("/", "/again")];
        assert_eq!(mounted_at(&whole, false).name(&file(&["home", "f"], true)), "/srv/home/f");
    }

    #[test]
    fn a_path_begins_where_its_file_system_is_mounted() {
        let mut paths = mounted(false);
        assert_eq!(paths.name(&file(&["a", "b"], true)), "/srv/a/b");
        assert_eq!(paths.name(&file(&["a", "b"], false)), "/srv/.../a/b#17");
        assert_eq!(paths.name(&file(&["a\x1b[2J\n"], true)), "/srv/a\u{fffd}[2J\u{fffd}");
        let mut paths = mounted_at(&[mount("/", "/")], false);
        assert_eq!(paths.name(&file(&["a"], true)), "/a");
        let elsewhere =
            TracedFile { dev: DeviceNumber { major: 999, minor: 7 }, ..file(&["a"], true) };
        assert_eq!(paths.name(&elsewhere), "volume 999:7/a");
    }

    #[test]
    fn numbers_keep_who_shares_a_directory_with_whom() {
        let mut paths = mounted(true);
        let mut name = |components: &[&str]| paths.name(&file(components, true));
        assert_eq!(name(&["home", "ann", "tax"]), "/1/1/1/1");
        assert_eq!(name(&["home", "ann", "love"]), "/1/1/1/2");
        assert_eq!(name(&["home", "bob", "tax"]), "/1/1/2/1");
        assert_eq!(name(&["home", "ann", "tax"]), "/1/1/1/1");
    }
}
