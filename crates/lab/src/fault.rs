//! Faults of a lab's device.
//!
//! Faults apply only while the delays are on, so not while files are prepared or the lab is removed.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a request does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
}

/// A spike delays one read in this many.
const SPIKE_EVERY: u64 = 64;

/// Bytes of a sector, as the kernel counts them.
const SECTOR_BYTES: u64 = 512;

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Sort {
    /// Reads of these sectors fail.
    Eio(Vec<RangeInclusive<u64>>),
    /// A read returns half of its sectors.
    Short,
    /// One read in [`SPIKE_EVERY`] takes this much longer.
    Spike(Duration),
    /// Requests are not answered.
    Hang,
    /// Every request fails, as if the device had been pulled out.
    Vanish,
}

/// One fault, written as `KIND[@SECONDS]`: `eio:2048-4095,9000`, `short`, `spike:200`, `hang@2.5`, `vanish@5`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    sort: Sort,
    /// How long after the delays were switched on the fault begins.
    after: Duration,
}

/// Why a text is no fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// There is no such kind.
    #[error(
        "there is no fault {0:?}; choose eio:SECTORS, short, spike:MS, hang or vanish, with @SECONDS after it to \
         begin later"
    )]
    Unknown(String),
    /// The sectors cannot be read.
    #[error("{0:?} names no sectors of 512 bytes; write for example eio:2048-4095,9000")]
    Sectors(String),
    /// The milliseconds cannot be read.
    #[error("{0:?} is no number of milliseconds from 1 to 3600000; write for example spike:200")]
    Spike(String),
    /// The seconds cannot be read.
    #[error("{0:?} is no number of seconds up to 86400; write for example vanish@2.5")]
    Seconds(String),
    /// The device is smaller.
    #[error("{fault} names a sector that the device does not have; its last one is {last}")]
    Beyond {
        /// The fault's text.
        fault: String,
        /// The last sector.
        last: u64,
    },
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let (what, after) = match text.split_once('@') {
            Some((what, seconds)) => (what, seconds_in(seconds)?),
            None => (text, Duration::ZERO),
        };
        let sort = match what.split_once(':').unwrap_or((what, "")) {
            ("eio", sectors) => Sort::Eio(sectors_in(sectors)?),
            ("spike", ms) => Sort::Spike(milliseconds_in(ms)?),
            ("short", "") => Sort::Short,
            ("hang", "") => Sort::Hang,
            ("vanish", "") => Sort::Vanish,
            _ => return Err(FaultError::Unknown(text.into())),
        };
        Ok(Fault { sort, after })
    }
}

fn sectors_in(text: &str) -> Result<Vec<RangeInclusive<u64>>, FaultError> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last && last < u64::MAX / SECTOR_BYTES).then_some(first..=last)
    };
    let ranges: Option<_> = text.split(',').map(range).collect();
    ranges.ok_or_else(|| FaultError::Sectors(text.into()))
}

fn milliseconds_in(text: &str) -> Result<Duration, FaultError> {
    let ms = text.parse().ok().filter(|ms| (1..=3_600_000).contains(ms));
    ms.map(Duration::from_millis).ok_or_else(|| FaultError::Spike(text.into()))
}

fn seconds_in(text: &str) -> Result<Duration, FaultError> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| FaultError::Seconds(text.into()))
}

impl fmt::Display for Fault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.sort {
            Sort::Eio(ranges) => {
                let ranges = ranges.iter().map(|range| match (range.start(), range.end()) {
                    (first, last) if first == last => first.to_string(),
                    (first, last) => format!("{first}-{last}"),
                });
                write!(to, "eio:{}", ranges.collect::<Vec<_>>().join(","))?;
            }
            Sort::Short => write!(to, "short")?,
            Sort::Spike(by) => write!(to, "spike:{}", by.as_millis())?,
            Sort::Hang => write!(to, "hang")?,
            Sort::Vanish => write!(to, "vanish")?,
        }
        if self.after.is_zero() { Ok(()) } else { write!(to, "@{}", self.after.as_secs_f64()) }
    }
}

impl Fault {
    /// Checks that a device of that size can have it.
    ///
    /// # Errors
    /// [`FaultError::Beyond`].
    pub(crate) fn check(&self, size_bytes: u64) -> Result<(), FaultError> {
        let Sort::Eio(ranges) = &self.sort else { return Ok(()) };
        let sectors = size_bytes / SECTOR_BYTES;
        if ranges.iter().all(|range| *range.end() < sectors) {
            return Ok(());
        }
        Err(FaultError::Beyond { fault: self.to_string(), last: sectors.saturating_sub(1) })
    }
}

/// What faults do to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fate {
    /// Bytes that are served; `None` if it fails with EIO.
    pub(crate) served: Option<u64>,
    pub(crate) answered: Answered,
}

/// When a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    /// At the model's time.
    InTime,
    /// This much later.
    Later(Duration),
    /// When the delays are switched off.
    Never,
}

impl Fate {
    /// All of it is served at the model's time.
    pub(crate) fn good(bytes: u64) -> Fate {
        Fate { served: Some(bytes), answered: Answered::InTime }
    }
}

/// All faults of a device.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    faults: Vec<Fault>,
    /// Reads so far, of which every [`SPIKE_EVERY`]th has a spike.
    reads: AtomicU64,
}

impl Faults {
    pub(crate) fn new(faults: Vec<Fault>) -> Self {
        Faults { faults, reads: AtomicU64::new(0) }
    }

    /// What faults do to a request that comes `since` after the delays were switched on.
    pub(crate) fn fate(&self, since: Duration, kind: Kind, offset: u64, bytes: u64) -> Fate {
        let mut fate = Fate::good(bytes);
        let is_read = kind == Kind::Read;
        let reads = self.reads.fetch_add(u64::from(is_read), Ordering::Relaxed);
        for fault in self.faults.iter().filter(|fault| fault.after <= since) {
            match &fault.sort {
                Sort::Eio(bad) if is_read && touches(bad, offset, bytes) => fate.served = None,
                Sort::Short if is_read => fate.served = fate.served.map(shortened),
                Sort::Spike(by) if is_read && (reads + 1).is_multiple_of(SPIKE_EVERY) => {
                    fate.answered = Answered::Later(*by);
                }
                Sort::Vanish => fate.served = None,
                Sort::Eio(_) | Sort::Short | Sort::Spike(_) | Sort::Hang => {}
            }
        }
        let hangs = |fault: &Fault| fault.sort == Sort::Hang && fault.after <= since;
        if self.faults.iter().any(hangs) {
            fate.answered = Answered::Never;
        }
        fate
    }
}

/// Whether a request touches one of these sectors.
fn touches(bad: &[RangeInclusive<u64>], offset: u64, bytes: u64) -> bool {
    let end = offset.saturating_add(bytes);
    bad.iter().any(|range| {
        range.start() * SECTOR_BYTES < end && offset < (range.end() + 1) * SECTOR_BYTES
    })
}

/// Half of it in whole sectors, and at least one, so that a program that requests the rest comes to an end.
fn shortened(bytes: u64) -> u64 {
    (bytes / 2 / SECTOR_BYTES * SECTOR_BYTES).max(SECTOR_BYTES).min(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fault(text: &str) -> Fault {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn faults(texts: &[&str]) -> Faults {
        Faults::new(texts.iter().map(|text| fault(text)).collect())
    }

    const AT_ONCE: Duration = Duration::ZERO;

    #[test]
    fn faults_are_written_as_they_are_read() {
        for text in ["eio:0", "eio:2048-4095,9000", "short", "spike:200", "hang@2.5", "vanish@5"] {
            assert_eq!(fault(text).to_string(), text);
        }
        assert_eq!(fault("eio:7-7@0"), fault("eio:7"));
    }

    #[test]
    fn what_is_no_fault_is_answered_with_how_to_write_one() {
        for (text, hint) in [
            ("", "choose eio:SECTORS"),
            ("explode", "choose eio:SECTORS"),
            ("short:7", "choose eio:SECTORS"),
            ("eio", "eio:2048-4095,9000"),
            ("eio:", "eio:2048-4095,9000"),
            ("eio:9-3", "eio:2048-4095,9000"),
            ("eio:1,,2", "eio:2048-4095,9000"),
            ("eio:18446744073709551615", "eio:2048-4095,9000"),
            ("spike", "spike:200"),
            ("spike:0", "spike:200"),
            ("spike:-4", "spike:200"),
            ("vanish@", "vanish@2.5"),
            ("vanish@-1", "vanish@2.5"),
            ("vanish@NaN", "vanish@2.5"),
            ("hang@1e300", "vanish@2.5"),
        ] {
            let error = text.parse::<Fault>().expect_err(text).to_string();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }

    #[test]
    fn sectors_that_the_device_does_not_have_are_refused() {
        assert_eq!(fault("eio:0-2047").check(1 << 20), Ok(()));
        let error = fault("eio:5,2048").check(1 << 20).expect_err("one too far").to_string();
        assert!(error.contains("2047"), "{error}");
        assert_eq!(fault("hang").check(0), Ok(()));
    }

    #[test]
    fn a_read_fails_if_it_touches_a_bad_sector_and_a_write_never_does() {
        let faults = faults(&["eio:8-9,100"]);
        let served = |kind, offset, bytes| faults.fate(AT_ONCE, kind, offset, bytes).served;
        assert_eq!(served(Kind::Read, 0, 4096), Some(4096), "up to the sector before");
        assert_eq!(served(Kind::Read, 0, 4097), None);
        assert_eq!(served(Kind::Read, 9 * 512, 512), None);
        assert_eq!(served(Kind::Read, 10 * 512, 512), Some(512));
        assert_eq!(served(Kind::Read, 0, 1 << 20), None);
        assert_eq!(served(Kind::Write, 0, 1 << 20), Some(1 << 20));
    }

    #[test]
    fn a_short_read_comes_to_its_end() {
        let faults = faults(&["short"]);
        let mut left = 1 << 20;
        let mut reads = 0;
        while left > 0 {
            let served = faults.fate(AT_ONCE, Kind::Read, 0, left).served.expect("it is served");
            assert!(0 < served && served <= left && served.is_multiple_of(512));
            (left, reads) = (left - served, reads + 1);
        }
        assert!((2..30).contains(&reads), "{reads}");
    }

    #[test]
    fn one_read_in_sixty_four_has_a_spike() {
        let faults = faults(&["spike:200"]);
        let answers: Vec<Answered> =
            (0..256).map(|_| faults.fate(AT_ONCE, Kind::Read, 0, 4096).answered).collect();
        let late = answers.iter().filter(|answered| **answered != Answered::InTime);
        assert_eq!(late.collect::<Vec<_>>(), [&Answered::Later(Duration::from_millis(200)); 4]);
        assert_eq!(faults.fate(AT_ONCE, Kind::Write, 0, 4096).answered, Answered::InTime);
    }

    #[test]
    fn a_fault_begins_when_it_is_to() {
        let faults = faults(&["vanish@2", "hang@3"]);
        let fate = |ms, kind| faults.fate(Duration::from_millis(ms), kind, 0, 4096);
        for kind in [Kind::Read, Kind::Write] {
            assert_eq!(fate(1999, kind), Fate::good(4096));
            assert_eq!(fate(2000, kind), Fate { served: None, answered: Answered::InTime });
            assert_eq!(fate(3000, kind).answered, Answered::Never);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_fault_that_is_read_again_or_a_sentence(
            text in "(eio|short|spike|hang|vanish|x)?:?[0-9,-]{0,12}@?[0-9.eE+-]{0,8}"
        ) {
            match text.parse::<Fault>() {
                Ok(fault) => prop_assert_eq!(fault.to_string().parse(), Ok(fault)),
                Err(error) => prop_assert!(error.to_string().contains("write") || error.to_string().contains("choose")),
            }
        }
    }
}
