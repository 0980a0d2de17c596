//! From totals to what happened in an interval.

use std::collections::HashMap;

use crate::activity::Activity;
use crate::latency::Latencies;
use crate::sample::{Counts, Key, Sample};

/// What one process did with one file in one interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Use {
    /// The process and file.
    pub key: Key,
    /// What it did. Pages that it brought are `kernel_pages`.
    pub activity: Activity,
}

/// The totals at the end of the last interval.
#[derive(Debug)]
pub struct History {
    before: Sample,
    /// Whether the kernel tells which pages reads miss.
    tells_missing: bool,
}

impl History {
    /// Nothing is counted yet. Some kernels do not tell which pages reads miss.
    pub fn new(tells_missing: bool) -> Self {
        History { before: Sample::default(), tells_missing }
    }

    /// These entries were removed from the tables: if they come back, they begin at zero.
    pub fn forget(&mut self, keys: &[Key]) {
        for key in keys {
            self.before.counts.remove(key);
            self.before.stalls.remove(key);
        }
    }

    /// What happened since the last call, and which entries have not changed since then.
    ///
    /// `seen` is the share of the interval in which accesses to cached pages were seen: what was counted only then is
    /// scaled up. Nothing is scaled if it is 1.
    pub fn advance(&mut self, sample: &Sample, seen: f64) -> (Vec<Use>, Vec<Key>) {
        let mut uses: HashMap<Key, Activity> = HashMap::new();
        let mut idle = Vec::new();
        for (key, counts) in &sample.counts {
            let before = self.before.counts.get(key).copied().unwrap_or_default();
            let counts = counts.since(&before);
            if counts == Counts::default() {
                idle.push(*key);
            } else {
                uses.insert(*key, self.scaled(&counts, seen));
            }
        }
        for (key, latencies) in &sample.stalls {
            let before = self.before.stalls.get(key).copied().unwrap_or_default();
            let latencies = latencies.since(&before);
            if latencies == Latencies::default() {
                if !sample.counts.contains_key(key) {
                    idle.push(*key);
                }
            } else {
                let activity = uses.entry(*key).or_default();
                activity.stalls = latencies.count();
                activity.stalled_s = latencies.ns as f64 * 1e-9;
                activity.latencies = latencies;
            }
        }
        idle.retain(|key| !uses.contains_key(key));
        self.before = sample.clone();
        let uses = uses.into_iter().map(|(key, activity)| Use { key, activity });
        (uses.collect(), idle)
    }

    fn scaled(&self, counts: &Counts, seen: f64) -> Activity {
        let scale = |count: u64| {
            if seen > 0.0 && seen < 1.0 { (count as f64 / seen).round() as u64 } else { count }
        };
        Activity {
            reads: scale(counts.reads),
            faults: scale(counts.faults),
            pages: scale(counts.pages),
            steps: counts.steps.map(scale),
            judged_pages: scale(if self.tells_missing { counts.pages } else { counts.faults }),
            missing_pages: counts.missing,
            kernel_pages: counts.brought,
            ..Activity::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use readahead::{DeviceNumber, FileKey};

    use super::*;
    use crate::steps::Steps;

    fn key(pid: u32, ino: u64) -> Key {
        Key { pid, file: FileKey { dev: DeviceNumber { major: 8, minor: 1 }, ino } }
    }

    fn of(key: Key, counts: Counts) -> Sample {
        Sample { counts: [(key, counts)].into(), ..Sample::default() }
    }

    proptest! {
        #[test]
        fn the_intervals_add_up_to_the_total(steps in prop::collection::vec((0u64..100, 0u64..100), 1..20)) {
            let mut history = History::new(true);
            let (mut total, mut told) = (Counts::default(), 0);
            for (reads, pages) in steps {
                total.reads += reads;
                total.pages += pages;
                let (uses, idle) = history.advance(&of(key(1, 2), total), 1.0);
                prop_assert_eq!(uses.is_empty(), reads + pages == 0);
                prop_assert_eq!(uses.is_empty(), !idle.is_empty());
                told += uses.iter().map(|of| of.activity.reads).sum::<u64>();
            }
            prop_assert_eq!(told, total.reads);
        }
    }

    #[test]
    fn an_entry_that_the_table_forgot_begins_at_zero_again() {
        let mut history = History::new(true);
        let counts = |reads| Counts { reads, pages: reads, ..Counts::default() };
        history.advance(&of(key(1, 2), counts(100)), 1.0);
        let (uses, _) = history.advance(&of(key(1, 2), counts(7)), 1.0);
        assert_eq!(uses[0].activity.reads, 7);
    }

    #[test]
    fn what_was_seen_a_part_of_the_time_is_scaled_and_what_was_always_seen_is_not() {
        let steps = Steps { forward: 7, backward: 3, ..Steps::default() };
        let counts = Counts { reads: 10, faults: 1, pages: 20, missing: 3, brought: 32, steps };
        let (uses, _) = History::new(true).advance(&of(key(1, 2), counts), 0.25);
        let told = uses[0].activity;
        assert_eq!((told.reads, told.faults, told.pages), (40, 4, 80));
        assert_eq!((told.steps.forward, told.steps.backward), (28, 12));
        assert_eq!((told.missing_pages, told.kernel_pages), (3, 32));
    }

    #[test]
    fn an_entry_that_was_removed_and_comes_back_with_more_begins_at_zero() {
        let mut history = History::new(true);
        let counts = |reads| Counts { reads, pages: reads, ..Counts::default() };
        history.advance(&of(key(1, 2), counts(1)), 1.0);
        history.forget(&[key(1, 2)]);
        let (uses, _) = history.advance(&of(key(1, 2), counts(5)), 1.0);
        assert_eq!(uses[0].activity.reads, 5);
    }

    #[test]
    fn where_the_kernel_does_not_tell_what_reads_miss_only_faults_are_judged() {
        let counts = Counts { reads: 90, faults: 10, pages: 100, missing: 5, ..Counts::default() };
        let share = |tells_missing| {
            let (uses, _) = History::new(tells_missing).advance(&of(key(1, 2), counts), 1.0);
            uses[0].activity.hit_share()
        };
        assert_eq!((share(true), share(false)), (Some(0.95), Some(0.5)));
    }

    #[test]
    fn of_who_waits_without_any_other_access_an_idle_entry_is_found() {
        let mut latencies = Latencies { ns: 5, ..Latencies::default() };
        latencies.bins[0] = 1;
        let sample = Sample { stalls: [(key(1, 2), latencies)].into(), ..Sample::default() };
        let mut history = History::new(true);
        assert_eq!(history.advance(&sample, 1.0).1, []);
        assert_eq!(history.advance(&sample, 1.0).1, [key(1, 2)]);
    }

    #[test]
    fn a_process_that_only_waits_is_in_use() {
        let mut latencies = Latencies { ns: 5_000_000, ..Latencies::default() };
        latencies.bins[12] = 1;
        let counts = Counts { reads: 1, pages: 1, ..Counts::default() };
        let mut sample = of(key(1, 2), counts);
        let mut history = History::new(true);
        history.advance(&sample, 1.0);
        sample.stalls.insert(key(1, 2), latencies);
        let (uses, idle) = history.advance(&sample, 1.0);
        assert!(idle.is_empty());
        assert_eq!((uses[0].activity.stalls, uses[0].activity.stalled_s), (1, 0.005));
    }
}
