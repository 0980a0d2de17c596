//! The paths of files in a trace: as they are, or as numbers.

use std::collections::{HashMap, HashSet};

use linux::mounts;
use readahead::DeviceNumber;

use super::TracedFile;

/// Names files by path.
#[derive(Debug, Default)]
pub struct Paths {
    /// Where file systems are mounted.
    places: HashMap<DeviceNumber, String>,
    /// File systems that are mounted elsewhere only, as in a container.
    unmounted: HashSet<DeviceNumber>,
    /// If paths are to be replaced: the numbers given so far, in each directory.
    numbers: Option<HashMap<String, HashMap<String, usize>>>,
}

impl Paths {
    /// With `is_anonymous`, each component of a path is replaced by a number. Equal directories have equal numbers.
    pub fn new(is_anonymous: bool) -> Self {
        Paths { numbers: is_anonymous.then(HashMap::new), ..Paths::default() }
    }

    /// The file's name in the trace.
    pub fn name(&mut self, file: &TracedFile) -> String {
        let place = self.place(file.dev).trim_end_matches('/').to_owned();
        let end = file.components.join("/");
        let path = match file.is_whole && !end.is_empty() {
            true => format!("{place}/{end}"),
            // The inode tells files apart whose ends are the same.
            false => format!("{place}/.../{end}#{}", file.ino),
        };
        match &mut self.numbers {
            Some(numbers) => numbered(&path, numbers),
            None => path.replace(char::is_control, "\u{fffd}"),
        }
    }

    fn place(&mut self, dev: DeviceNumber) -> String {
        if !self.places.contains_key(&dev) && self.unmounted.insert(dev) {
            for mount in mounts::list().unwrap_or_default() {
                let place = mount.mount_point.display().to_string();
                self.places.entry(mount.dev).or_insert(place);
            }
        }
        self.places.get(&dev).map_or_else(|| format!("volume {dev}"), Clone::clone)
    }
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
    use super::*;

    const DISK: DeviceNumber = DeviceNumber { major: 8, minor: 1 };

    fn file(components: &[&str], is_whole: bool) -> TracedFile {
        let components = components.iter().map(|text| (*text).to_owned()).collect();
        TracedFile { file: 0, bytes: 1, ino: 17, dev: DISK, components, is_whole }
    }

    fn mounted(is_anonymous: bool) -> Paths {
        Paths { places: HashMap::from([(DISK, "/srv".into())]), ..Paths::new(is_anonymous) }
    }

    #[test]
    fn a_path_begins_where_its_file_system_is_mounted() {
        let mut paths = mounted(false);
        assert_eq!(paths.name(&file(&["a", "b"], true)), "/srv/a/b");
        assert_eq!(paths.name(&file(&["a", "b"], false)), "/srv/.../a/b#17");
        assert_eq!(paths.name(&file(&["a\x1b[2J\n"], true)), "/srv/a\u{fffd}[2J\u{fffd}");
        paths.places.insert(DISK, "/".into());
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
