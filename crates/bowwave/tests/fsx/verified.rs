//! fio writes files, in order and at random, and verifies the checksum of each block: at once, and once nothing is
//! cached any more.

use crate::ground::Ground;
use crate::{programs, trial};

/// Bowwave would leave the file alone that fio advises as `RANDOM`.
const NO_ADVICE: &str = "--fadvise_hint=0";

/// Of each of fio's two files.
const FILE_MIB: u64 = 8;
const LONG_FILE_MIB: u64 = 150;

/// As many rounds of fio as wanted on that ground, under a daemon that drops behind always.
fn fio_verifies_on(ground: Option<Ground>) {
    let Some(mut ground) = ground else { return };
    if programs::installed("fio").is_none() {
        return;
    }
    let (seed, rounds) = (trial::seed(), trial::number("BOWWAVE_FIO_ROUNDS", 1, 10));
    let mib = if trial::is_long() { LONG_FILE_MIB } else { FILE_MIB };
    let (mut ahead, mut dropped) = (0, 0);
    for seed in seed..seed + rounds {
        for options in [&[NO_ADVICE][..], &[NO_ADVICE, "--verify_only"]] {
            let daemon = ground.daemon();
            programs::succeeds(&mut programs::fio(&ground.folder(), mib, seed, options));
            let summary = daemon.end();
            let figure = |name: &str| summary[name].as_u64().expect("a number");
            ahead += figure("read_ahead_bytes");
            dropped += figure("dropped_bytes");
            // fio asks the kernel to evict the files before it verifies, but the kernel may keep some of them.
            ground.evict();
        }
    }
    println!(
        "{}: fio verified {} MiB twice; {ahead} bytes read ahead, {dropped} dropped",
        ground.name(),
        2 * mib * rounds
    );
    assert!(ahead > 0, "nothing was read ahead");
    // What is dropped is dropped a moment later: within a second that may be nothing.
    assert!(dropped > 0 || !trial::is_long(), "nothing was dropped");
}

#[test]
fn fio_verifies_on_ext4() {
    fio_verifies_on(Ground::disk("ext4"));
}

#[test]
fn fio_verifies_on_xfs() {
    fio_verifies_on(Ground::disk("xfs"));
}

#[test]
fn fio_verifies_on_btrfs() {
    fio_verifies_on(Ground::disk("btrfs"));
}

#[test]
fn fio_verifies_on_an_overlay() {
    fio_verifies_on(Ground::overlay());
}

#[test]
fn fio_verifies_on_fuse() {
    fio_verifies_on(Ground::fuse());
}
