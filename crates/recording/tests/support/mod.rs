//! Shared by the tests: the header of their recordings.
#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod any;
pub(crate) mod session;

use controller::behind::{Mode, Rule, Rules};
use controller::{Charge, Options};
use readahead::adaptive::Limits;
use recording::Header;

/// A header that is the same on every day and machine.
pub(crate) fn header() -> Header {
    let always = Rule {
        path: Some("/srv/backup/**".into()),
        cgroup: None,
        command: None,
        mode: Mode::Always,
    };
    Header {
        bowwave: "0.1.0".into(),
        kernel: "6.18.0".into(),
        date: "2026-11-22".into(),
        architecture: "x86_64".into(),
        options: Options {
            charge: Charge::Reader,
            behind: Some(Rules { mode: Mode::Auto, rules: vec![always] }),
        },
        limits: Limits { files: 64, ..Limits::default() },
    }
}
