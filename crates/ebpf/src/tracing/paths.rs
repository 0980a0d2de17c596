//! The paths of files in a trace: as they are, or as numbers.

use std::collections::HashMap;

use linux::mount_points::MountPoints;

use super::TracedFile;

/// Names files by path.
#[derive(Debug)]
pub struct Paths {
    mounts: MountPoints,
    /// If paths are to be replaced: the numbers given so far, in each directory.
    numbers: Option<HashMap<String, HashMap<String, usize>>>,
}

impl Paths {
    /// With `is_anonymous`, each component of a path is replaced by a number. Equal directories have equal numbers.
    pub fn new(mounts: MountPoints, is_anonymous: bool) -> Self {
        Paths { mounts, numbers: is_anonymous.then(HashMap::new) }
    }

    /// The file's name in the trace.
    pub fn name(&mut self, file: &TracedFile) -> String {
        let path = self.path(file);
        match &mut self.numbers {
            Some(numbers) => numbered(&path, numbers),
            None => path.replace(char::is_control, "\u{fffd}"),
        }
    }

    fn path(&mut self, file: &TracedFile) -> String {
        let unmounted = format!("volume {}", file.dev);
        let end = file.components.join("/");
        if !file.is_whole || end.is_empty() {
            let place = self.mounts.of_file_system(file.dev).map_or(&*unmounted, |of| &of.path);
            // The inode tells files apart whose ends are the same.
            return format!("{}/.../{end}#{}", place.trim_end_matches('/'), file.ino);
        }
        let place = self.mounts.above(file.dev, &file.components);
        place.map_or_else(|| format!("{unmounted}/{end}"), |place| place.path_of(&file.components))
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
    use linux::mounts::Mount;
    use readahead::DeviceNumber;

    use super::*;

    const DISK: DeviceNumber = DeviceNumber { major: 8, minor: 1 };

    fn file(components: &[&str], is_whole: bool) -> TracedFile {
        let components = components.iter().map(|text| (*text).to_owned()).collect();
        TracedFile { file: 0, bytes: 1, ino: 17, dev: DISK, components, is_whole }
    }

    fn mounted(mount_point: &str, is_anonymous: bool) -> Paths {
        let mounts = MountPoints::of(vec![Mount {
            dev: DISK,
            root: "/".into(),
            mount_point: mount_point.into(),
            fs_type: "ext4".into(),
            source: "/dev/sda1".into(),
        }]);
        Paths::new(mounts, is_anonymous)
    }

    #[test]
    fn a_path_begins_where_its_file_system_is_mounted() {
        let mut paths = mounted("/srv", false);
        assert_eq!(paths.name(&file(&["a", "b"], true)), "/srv/a/b");
        assert_eq!(paths.name(&file(&["a", "b"], false)), "/srv/.../a/b#17");
        assert_eq!(paths.name(&file(&["a\x1b[2J\n"], true)), "/srv/a\u{fffd}[2J\u{fffd}");
        assert_eq!(mounted("/", false).name(&file(&["a"], true)), "/a");
        let elsewhere =
            TracedFile { dev: DeviceNumber { major: 999, minor: 7 }, ..file(&["a"], true) };
        assert_eq!(paths.name(&elsewhere), "volume 999:7/a");
    }

    #[test]
    fn numbers_keep_who_shares_a_directory_with_whom() {
        let mut paths = mounted("/srv", true);
        let mut name = |components: &[&str]| paths.name(&file(components, true));
        assert_eq!(name(&["home", "ann", "tax"]), "/1/1/1/1");
        assert_eq!(name(&["home", "ann", "love"]), "/1/1/1/2");
        assert_eq!(name(&["home", "bob", "tax"]), "/1/1/2/1");
        assert_eq!(name(&["home", "ann", "tax"]), "/1/1/1/1");
    }
}
