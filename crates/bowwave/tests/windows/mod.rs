//! Whether the kernel's windows are as before: of devices and of open files.
//!
//! The judge of an open file's window is the disk: how many requests a reader of it makes by itself.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use lab::Lab;
use rustix::fs::{Advice, fadvise, major, minor};
use serde_json::Value;

/// What a reader by itself is tried with.
const PART_BYTES: u64 = 4 << 20;

/// Labs are loop devices.
const LOOP_MAJOR: u32 = 7;

/// Requests that a reader makes by itself that has this open file, while nobody else reads the lab. The fewest of
/// three attempts: the device may still serve what was asked for before.
pub(crate) fn requests(lab: &Lab, file: &File) -> u64 {
    lab.set_fast(true).expect("fast");
    let fewest = (0..3).map(|_| requests_once(lab, file)).min().expect("three");
    lab.set_fast(false).expect("slow");
    fewest
}

fn requests_once(lab: &Lab, file: &File) -> u64 {
    fadvise(file, 0, None, Advice::DontNeed).expect("advised");
    let before = lab.status().expect("counters").reads;
    let mut page = [0; 4096];
    for offset in (0..PART_BYTES).step_by(page.len()) {
        file.read_exact_at(&mut page, offset).expect("read");
    }
    fadvise(file, 0, None, Advice::DontNeed).expect("advised");
    lab.status().expect("counters").reads - before
}

/// Nothing is left over, and a reader of the open file makes as many requests as before.
pub(crate) fn are_as_before(lab: &Lab, state: &Path, file: &File, requests: u64, when: &str) {
    assert_eq!(lab.read_ahead_kb().expect("a window"), 128, "{when}");
    assert_eq!(left_over(lab, state), 0, "{when}: left over");
    is_as_before(lab, file, requests, when);
}

/// A reader of the open file makes as many requests as before.
pub(crate) fn is_as_before(lab: &Lab, file: &File, requests: u64, when: &str) {
    let now = self::requests(lab, file);
    let is_alike = now.abs_diff(requests) <= requests / 8;
    assert!(is_alike, "{when}: {now} requests instead of {requests}");
}

/// Journals of the lab's window, and ledgers of open files' windows, that tell of something to be given back.
pub(crate) fn left_over(lab: &Lab, state: &Path) -> usize {
    journals(lab.block_device()) + ledgers(state).count()
}

/// Journals of this device's window. Another bowwave may have one of another device.
pub(crate) fn journals(device: &Path) -> usize {
    let number = number(device);
    let name = device.file_name().expect("a name").to_string_lossy();
    // A journal is named after the knob's path, with dashes for slashes.
    let is_its_own = |journal: &str| journal.split('-').any(|part| part == number || part == name);
    let journals = fs::read_dir(linux::knob::JOURNALS).into_iter().flatten().flatten();
    journals.filter(|entry| is_its_own(&entry.file_name().to_string_lossy())).count()
}

/// The ledgers of open files' windows.
pub(crate) fn ledgers(state: &Path) -> impl Iterator<Item = PathBuf> {
    let is_ledger = |e: &fs::DirEntry| e.file_name().to_string_lossy().starts_with("given-");
    let state = fs::read_dir(state).expect("it is there").flatten();
    state.filter(is_ledger).map(|ledger| ledger.path())
}

/// Inode numbers of the open files whose window is not their own, as a later start would read them.
pub(crate) fn noted(state: &Path) -> Vec<u64> {
    let text: String = ledgers(state).filter_map(|it| fs::read_to_string(it).ok()).collect();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter_map(|line| line["ino"].as_u64()).collect()
}

/// The `read_ahead_kb` of every device, but for other labs, which come and go.
pub(crate) fn of_devices(lab: &Lab) -> BTreeMap<PathBuf, u64> {
    let own = number(lab.block_device());
    let devices = fs::read_dir("/sys/class/bdi").expect("sysfs").flatten();
    let is_other_lab = |name: &str| name != own && name.starts_with(&format!("{LOOP_MAJOR}:"));
    let devices = devices.filter(|it| !is_other_lab(&it.file_name().to_string_lossy()));
    let knobs = devices.map(|device| device.path().join("read_ahead_kb"));
    knobs.filter_map(|knob| Some((knob.clone(), kb(&knob)?))).collect()
}

/// Devices that were there before have the same `read_ahead_kb`.
pub(crate) fn devices_are_as(lab: &Lab, before: &BTreeMap<PathBuf, u64>, when: &str) {
    for (knob, kb) in of_devices(lab) {
        let was = *before.get(&knob).unwrap_or(&kb);
        assert_eq!(kb, was, "{when}: {}", knob.display());
    }
}

/// The device's number, as sysfs writes it.
fn number(device: &Path) -> String {
    let number = fs::metadata(device).expect("a device").rdev();
    format!("{}:{}", major(number), minor(number))
}

fn kb(knob: &Path) -> Option<u64> {
    fs::read_to_string(knob).ok()?.trim().parse().ok()
}
