//! Decodes the tables of programs/count.h: 64-bit words in the machine's byte order, and texts that end with a zero.

use linux::mount_points::MountPoints;
use readahead::{DeviceNumber, FileKey};
use top::{BINS, Counts, Key, Latencies, Steps};

use crate::fields::{half_word, text};

/// Words of `struct counts` that count; those after them tell where the last access was. As in programs/count.h.
const COUNTERS: usize = 9;
/// Most components of a name, and the bytes of each, as in programs/count.h and programs/path.h.
const NAME_COMPONENTS: usize = 6;
const NAME_BYTES: usize = 64;

/// `struct count_key`.
pub(super) fn key(bytes: &[u8]) -> Option<Key> {
    let file =
        FileKey { dev: DeviceNumber::from_kernel(half_word(bytes, 8)?), ino: words(bytes).next()? };
    Some(Key { pid: half_word(bytes, 12)?, file })
}

/// `struct count_key`.
pub(super) fn encode_key(key: &Key) -> Vec<u8> {
    let mut bytes = encode_file(&key.file);
    bytes[12..].copy_from_slice(&key.pid.to_ne_bytes());
    bytes
}

/// `struct file_name_key`.
pub(super) fn encode_file(file: &FileKey) -> Vec<u8> {
    let ino = file.ino.to_ne_bytes();
    let dev = file.dev.to_kernel().to_ne_bytes();
    [&ino[..], &dev, &[0; 4]].concat()
}

/// `struct counts`, one of each processor, added up.
pub(super) fn counts(of_processors: &[Vec<u8>]) -> Counts {
    let mut sums = [0; COUNTERS];
    for bytes in of_processors {
        sums.iter_mut().zip(words(bytes)).for_each(|(sum, count)| *sum += count);
    }
    let [reads, faults, pages, missing, brought, forward, backward, strided, random] = sums;
    let steps = Steps { forward, backward, strided, random };
    Counts { reads, faults, pages, missing, brought, steps }
}

/// `struct stalls` at the time `now_ns`. The sum includes how long threads that still wait have waited so far.
pub(super) fn stalls(bytes: &[u8], now_ns: u64) -> Latencies {
    let mut words = words(bytes);
    let [over_ns, waiting, since_ns] = std::array::from_fn(|_| words.next().unwrap_or(0));
    let waiting_ns = waiting.wrapping_mul(now_ns).wrapping_sub(since_ns);
    // The programs may change the fields meanwhile.
    let is_consistent = waiting > 0 && waiting_ns <= waiting.saturating_mul(now_ns);
    let ns = over_ns.saturating_add(if is_consistent { waiting_ns } else { 0 });
    let mut stalls = Latencies { ns, bins: [0; BINS] };
    stalls.bins.iter_mut().zip(words).for_each(|(bin, count)| *bin = count);
    stalls
}

/// The end of a file's path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileName {
    /// Its last components.
    components: Vec<String>,
    /// Whether they begin at the root of its file system.
    is_whole: bool,
}

impl FileName {
    /// The path of this file, which is on that file system; the end of it if it is long.
    pub(super) fn path(&self, dev: DeviceNumber, mounts: &mut MountPoints) -> String {
        let end = self.components.join("/");
        if !self.is_whole {
            return format!(".../{end}");
        }
        let place = mounts.above(dev, &self.components);
        place.map_or_else(|| format!("{dev}/{end}"), |place| place.path_of(&self.components))
    }
}

/// `struct file_name`.
pub(super) fn file_name(bytes: &[u8]) -> Option<FileName> {
    let count = half_word(bytes, 0)? as usize;
    let texts = bytes.get(8..)?.chunks_exact(NAME_BYTES).take(count.min(NAME_COMPONENTS));
    let mut components: Vec<String> = texts.map(text).collect();
    components.reverse();
    Some(FileName { components, is_whole: half_word(bytes, 4)? != 0 })
}

/// `struct process`: the cgroup's number and the program's name.
pub(super) fn process(bytes: &[u8]) -> Option<(u64, String)> {
    Some((words(bytes).next()?, text(bytes.get(8..)?)))
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_key_is_decoded_as_it_was_encoded(pid: u32, ino: u64, major in 0u32..4096, minor in 0u32..1 << 20) {
            let file = FileKey { dev: DeviceNumber { major, minor }, ino };
            prop_assert_eq!(key(&encode_key(&Key { pid, file })), Some(Key { pid, file }));
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
            key(&bytes);
            file_name(&bytes);
            process(&bytes);
            stalls(&bytes, u64::MAX);
        }
    }

    #[test]
    fn who_still_waits_has_waited_until_now() {
        let of = |over: u64, waiting: u64, since: u64| {
            let words = [&[over, waiting, since][..], &[0; BINS]].concat();
            words.into_iter().flat_map(u64::to_ne_bytes).collect::<Vec<_>>()
        };
        assert_eq!(stalls(&of(7, 0, 0), 1000).ns, 7);
        assert_eq!(stalls(&of(7, 2, 300 + 900), 1000).ns, 7 + 700 + 100);
    }

    #[test]
    fn counters_of_all_processors_are_added_up() {
        let of = |numbers: [u64; 12]| numbers.map(u64::to_ne_bytes).concat();
        // The last three tell where the last access was.
        let one = of([1, 2, 3, 4, 5, 6, 7, 8, 9, 70, 80, 90]);
        let sum = counts(&[one.clone(), one]);
        let steps = Steps { forward: 12, backward: 14, strided: 16, random: 18 };
        assert_eq!(sum, Counts { reads: 2, faults: 4, pages: 6, missing: 8, brought: 10, steps });
    }

    #[test]
    fn the_components_of_a_path_come_last_first() {
        let mut bytes = [2u32.to_ne_bytes(), 1u32.to_ne_bytes()].concat();
        for component in ["f100", "lab"] {
            let mut text = component.as_bytes().to_vec();
            text.resize(NAME_BYTES, 0);
            bytes.extend(text);
        }
        let name = file_name(&bytes).expect("a name");
        assert_eq!(
            name,
            FileName { components: vec!["lab".into(), "f100".into()], is_whole: true }
        );
        let dev = DeviceNumber { major: 8, minor: 1 };
        let mut nowhere = MountPoints::default();
        assert_eq!(name.path(dev, &mut nowhere), "8:1/lab/f100");
        let end = FileName { is_whole: false, ..name };
        assert_eq!(end.path(dev, &mut nowhere), ".../lab/f100");
    }
}
