//! The figures of one interval.

use readahead::{PAGE_BYTES, figures};
use serde::Serialize;

use crate::latency::Latencies;
use crate::steps::Steps;

figures! {
    /// What happened in one interval.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
    pub struct Activity {
        /// Calls that got pages from the page cache: read, pread, sendfile, io_uring and others.
        pub reads: u64 as Counter,
        /// Page faults in mapped files.
        pub faults: u64 as Counter,
        /// Pages of 4 KiB that reads and faults asked for; a fault asks for one.
        pub pages: u64 as Counter,
        /// How each of these reads and faults lies to the one before.
        pub steps: Steps,
        /// Of these, those of which the kernel tells whether they were in the cache.
        #[serde(skip)]
        pub judged_pages: u64 as Counter,
        /// Of these, pages that were neither in the cache nor on their way.
        pub missing_pages: u64 as Counter,
        /// Pages that the kernel brought into the cache for programs that read, with its own read-ahead.
        pub kernel_pages: u64 as Counter,
        /// Pages that bowwave brought into the cache.
        pub bowwave_pages: u64 as Counter,
        /// How often a thread waited for a page.
        pub stalls: u64 as Counter,
        /// How long threads waited for pages, added up.
        pub stalled_s: f64 as Counter,
        /// Stalls by latency.
        #[serde(skip)]
        pub latencies: Latencies,
    }
}

impl Activity {
    /// The share of the pages that were in the cache, or on their way, when they were asked for. `None` if none was
    /// asked for.
    pub fn hit_share(&self) -> Option<f64> {
        let pages = self.judged_pages.max(self.missing_pages);
        (pages > 0).then(|| 1.0 - self.missing_pages as f64 / pages as f64)
    }

    /// The share of the pages brought into the cache that bowwave brought. `None` if none was brought.
    pub fn bowwave_share(&self) -> Option<f64> {
        let brought = self.kernel_pages + self.bowwave_pages;
        (brought > 0).then(|| self.bowwave_pages as f64 / brought as f64)
    }

    /// Bytes of the pages asked for.
    pub fn bytes(&self) -> u64 {
        self.pages * PAGE_BYTES
    }

    /// Adds what happened in the same interval.
    pub fn add(&mut self, other: &Activity) {
        self.reads += other.reads;
        self.faults += other.faults;
        self.pages += other.pages;
        self.steps.add(&other.steps);
        self.judged_pages += other.judged_pages;
        self.missing_pages += other.missing_pages;
        self.kernel_pages += other.kernel_pages;
        self.bowwave_pages += other.bowwave_pages;
        self.stalls += other.stalls;
        self.stalled_s += other.stalled_s;
        self.latencies.add(&other.latencies);
    }
}
