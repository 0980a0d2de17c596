//! What the eBPF programs have counted since they were loaded.

use std::collections::HashMap;

use readahead::FileKey;

use crate::latency::Latencies;
use crate::steps::Steps;

/// One process and one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The process.
    pub pid: u32,
    /// The file. Inode 0 stands for all files of the file system for which the tables had no room.
    pub file: FileKey,
}

/// Totals of one process and file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls that got pages from the page cache.
    pub reads: u64,
    /// Page faults in mappings of the file.
    pub faults: u64,
    /// Pages that these asked for; one for each fault.
    pub pages: u64,
    /// Of these, pages that were not in the cache.
    pub missing: u64,
    /// Pages that the process has brought into the cache.
    pub brought: u64,
    /// In which order it has read.
    pub steps: Steps,
}

impl Counts {
    /// What was counted since `before`. If `before` has more, the table has forgotten this entry meanwhile.
    pub(crate) fn since(&self, before: &Counts) -> Counts {
        let pairs = [
            (self.reads, before.reads),
            (self.faults, before.faults),
            (self.pages, before.pages),
            (self.missing, before.missing),
            (self.brought, before.brought),
        ];
        if pairs.iter().any(|(now, before)| now < before) {
            return *self;
        }
        let [reads, faults, pages, missing, brought] = pairs.map(|(now, before)| now - before);
        let steps = self.steps.since(&before.steps);
        Counts { reads, faults, pages, missing, brought, steps }
    }
}

/// All totals at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Accesses.
    pub counts: HashMap<Key, Counts>,
    /// Waiting for pages.
    pub stalls: HashMap<Key, Latencies>,
    /// Accesses and stalls for which the tables had no room at all.
    pub uncounted: u64,
}

impl Sample {
    /// Every process and file that is counted; some come twice.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.counts.keys().chain(self.stalls.keys())
    }
}
