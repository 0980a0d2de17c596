//! Totals: one table for `-v`, `--json`, `bowwave status` and the end of a daemon.
//!
//! | who | adds |
//! |---|---|
//! | the controller | everything but those below |
//! | the body | `lost_events`, `table_errors`, `cpu_s`, `longest_turn_s`, and `limited_reader` of `not_read` |

use derive_more::Add;
use readahead::figures;
use serde::{Deserialize, Serialize};

figures! {
    /// Totals since the start. Bytes are those of whole pages; a name without a unit is a count.
    #[derive(Add, Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)] // an older bowwave lacks some
    pub struct Metrics {
        /// Events received from the kernel.
        pub events: u64 as Counter,
        /// Events lost because they came faster than bowwave read them.
        pub lost_events: u64 as Counter,
        /// Writes to eBPF maps that failed, and programs that could not be attached. Events are missing then.
        pub table_errors: u64 as Counter,
        /// Windows that were read ahead.
        pub reads: u64 as Counter,
        /// Bytes of the windows that were read ahead, including pages that were cached already and cost nothing.
        pub read_ahead_bytes: u64 as Counter,
        /// Bytes read ahead that a reader has reached.
        pub used_bytes: u64 as Counter,
        /// Bytes read ahead that were evicted before use, or whose stream was forgotten first. The last window of each
        /// stream counts neither as used nor as wasted, because no event shows its use.
        pub wasted_bytes: u64 as Counter,
        /// Bytes read ahead in densely read regions. A sample shows their use, which counts only as seconds
        /// earned.
        pub dense_bytes: u64 as Counter,
        /// The most bytes that were read ahead and not used yet at any moment, of all streams together.
        pub most_ahead_bytes: u64 as Gauge,
        /// Kernel windows that were bounded while memory was short, or narrowed for random reading.
        pub bounded_windows: u64 as Counter,
        /// Requests of programs that would have waited for the device, but did not.
        pub stalls_saved: u64 as Counter,
        /// Estimated seconds of waiting for devices that programs were spared.
        pub earned_s: f64 as Gauge,
        /// Seconds of devices that reading ahead took, less the transfer of used pages.
        pub spent_s: f64 as Gauge,
        /// Files read ahead for programs that walk through directories.
        pub walk_files: u64 as Counter,
        /// Files read ahead for programs that walk through directories, and that the program has reached or passed.
        pub walk_files_used: u64 as Counter,
        /// Bytes of the files read ahead for programs that walk through directories.
        pub walk_bytes: u64 as Counter,
        /// Directories listed for programs that walk through directories.
        pub listings: u64 as Counter,
        /// Ranges of files asked for because the command had read them at an earlier start.
        pub remembered_ranges: u64 as Counter,
        /// Remembered ranges that were not cached and that the command has come to.
        pub remembered_used: u64 as Counter,
        /// Bytes of the remembered ranges that were not cached.
        pub remembered_bytes: u64 as Counter,
        /// Bytes dropped behind streams.
        pub dropped_bytes: u64 as Counter,
        /// Bytes that streams with drop-behind passed and that stay: cached before, used by others, or used again.
        /// Files that were fully cached do not count.
        pub kept_bytes: u64 as Counter,
        /// Bytes that should be dropped behind streams but cannot be: not written yet, mapped or held.
        pub left_bytes: u64 as Gauge,
        /// CPU time of this bowwave process.
        pub cpu_s: f64 as Counter,
        /// The longest that events had to wait because bowwave was handling others.
        pub longest_turn_s: f64 as Gauge,
        /// Accesses for which bowwave read nothing ahead, by reason.
        pub not_read: NotRead,
        /// Requested reads that failed.
        pub failed_reads: u64 as Counter,
        /// How often a file was muted for a while, because its events led to nothing.
        pub muted: u64 as Counter,
        /// Changes of a kernel window that failed.
        pub refused_windows: u64 as Counter,
    }
}

figures! {
    /// How many accesses led to no read-ahead, by reason.
    #[derive(Add, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)] // an older bowwave lacks some
    pub struct NotRead {
        /// The access belongs to no stream, or the pages that it needs next were requested before.
        pub nothing_to_gain: u64 as Counter,
        /// The program has advised random access.
        pub advised: u64 as Counter,
        /// As many bytes are in flight as the device's depth allows.
        pub device_busy: u64 as Counter,
        /// As many bytes are ahead as the budget allows.
        pub memory_full: u64 as Counter,
        /// Its process writes faster than the disk.
        pub writes_too_fast: u64 as Counter,
        /// The kernel itself reads ahead, in a larger window that bowwave set. Also counted in `reads`.
        pub larger_window: u64 as Counter,
        /// Its process may read only so much a second (`io.max`), or what others leave (`IOWeight=`, `ionice -c 3`).
        pub limited_reader: u64 as Counter,
    }
}

/// Why one access led to no read-ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    NothingToGain,
    Advised,
    DeviceBusy,
    MemoryFull,
    WritesTooFast,
    LargerWindow,
}

impl NotRead {
    /// Accesses for which nothing was read ahead.
    fn total(&self) -> u64 {
        self.reasons().iter().map(|(count, _)| count).sum()
    }

    /// How many accesses, and why.
    fn reasons(&self) -> [(u64, &'static str); 7] {
        [
            (self.nothing_to_gain, "nothing to gain"),
            (self.advised, "the program advised against it"),
            (self.device_busy, "the device was busy"),
            (self.memory_full, "the memory budget was used up"),
            (self.writes_too_fast, "the program wrote faster than the disk"),
            (self.larger_window, "the kernel did it in a larger window"),
            (self.limited_reader, "the program has an I/O limit, or a low I/O priority"),
        ]
    }

    pub(crate) fn count(&mut self, reason: Reason) {
        *match reason {
            Reason::NothingToGain => &mut self.nothing_to_gain,
            Reason::Advised => &mut self.advised,
            Reason::DeviceBusy => &mut self.device_busy,
            Reason::MemoryFull => &mut self.memory_full,
            Reason::WritesTooFast => &mut self.writes_too_fast,
            Reason::LargerWindow => &mut self.larger_window,
        } += 1;
    }
}

/// `812 times nothing to gain, 3 times the device was busy`: the most frequent reason first.
impl std::fmt::Display for NotRead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut reasons = self.reasons();
        reasons.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let times = |count| if count == 1 { "once".into() } else { format!("{count} times") };
        let met = reasons.iter().filter(|(count, _)| *count > 0);
        let met: Vec<_> = met.map(|(count, why)| format!("{} {why}", times(*count))).collect();
        f.write_str(&met.join(", "))
    }
}

/// Millions of bytes.
fn mb(bytes: u64) -> f64 {
    bytes as f64 * 1e-6
}

/// Number and noun: `1 file`, `2 files`.
fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// What was gained, and what it took.
impl std::fmt::Display for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:.1} s earned, {:.1} s spent; {}, {} lost; {:.3} s CPU",
            self.earned_s,
            self.spent_s,
            count(self.events, "event"),
            self.lost_events,
            self.cpu_s,
        )
    }
}

impl Metrics {
    /// Totals of two controllers that worked one after the other in one process.
    pub fn after(self, before: &Metrics) -> Metrics {
        Metrics {
            most_ahead_bytes: self.most_ahead_bytes.max(before.most_ahead_bytes),
            longest_turn_s: self.longest_turn_s.max(before.longest_turn_s),
            // Of the whole process, so it counts both already.
            cpu_s: self.cpu_s,
            ..self + *before
        }
    }

    /// Why nothing was read ahead, in one line, if there were more such accesses than windows read.
    pub fn why_nothing(&self) -> Option<String> {
        let is_rule = self.not_read.total() > self.reads;
        is_rule.then(|| format!("not read ahead: {}", self.not_read))
    }

    /// What was gained and what it took, a line for each way of reading ahead that did something, and why nothing was
    /// read ahead, if that was the rule.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let further = [self.windows(), self.walks(), self.remembered(), self.why_nothing()];
        std::iter::once(self.to_string()).chain(further.into_iter().flatten())
    }

    /// What was read ahead of streams and in regions, in one line, if anything.
    pub fn windows(&self) -> Option<String> {
        (self.reads > 0).then(|| {
            format!(
                "{:.1} MB read ahead in {}: {:.1} MB used, {:.1} MB wasted, {:.1} MB for dense random reading; \
                 {} saved",
                mb(self.read_ahead_bytes),
                count(self.reads, "window"),
                mb(self.used_bytes),
                mb(self.wasted_bytes),
                mb(self.dense_bytes),
                count(self.stalls_saved, "stall"),
            )
        })
    }

    /// What was done for programs that walk through directories, in one line, if anything.
    pub fn walks(&self) -> Option<String> {
        let directories = if self.listings == 1 { "directory" } else { "directories" };
        (self.listings > 0).then(|| {
            format!(
                "{} of {:.1} MB read ahead, {} used; {} {directories} listed",
                count(self.walk_files, "file"),
                mb(self.walk_bytes),
                self.walk_files_used,
                self.listings
            )
        })
    }

    /// What was read ahead because it was remembered, in one line, if anything.
    pub fn remembered(&self) -> Option<String> {
        (self.remembered_ranges > 0).then(|| {
            format!(
                "{} asked for: {:.1} MB were not cached, {} of them used",
                count(self.remembered_ranges, "remembered range"),
                mb(self.remembered_bytes),
                count(self.remembered_used, "range")
            )
        })
    }

    /// What drop-behind did, in one line.
    pub fn behind(&self) -> String {
        format!(
            "dropped {:.1} MB behind streams; kept {:.1} MB that were cached before, or used by others or \
             again; left {:.1} MB that were not written yet, or mapped",
            mb(self.dropped_bytes),
            mb(self.kept_bytes),
            mb(self.left_bytes),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_of_one_after_another_are_sums_but_for_the_most_at_a_moment_and_the_processs_own() {
        let of = |number: u64| Metrics {
            reads: number,
            most_ahead_bytes: number,
            longest_turn_s: number as f64,
            cpu_s: number as f64,
            not_read: NotRead { larger_window: number, ..NotRead::default() },
            ..Metrics::default()
        };
        let totals = of(5).after(&of(2));
        assert_eq!((totals.reads, totals.not_read.larger_window, totals.events), (7, 7, 0));
        assert_eq!((totals.most_ahead_bytes, totals.longest_turn_s), (5, 5.0));
        assert_eq!(totals.cpu_s, 5.0);
        let totals = of(2).after(&of(5));
        assert_eq!((totals.most_ahead_bytes, totals.longest_turn_s), (5, 5.0));
    }

    #[test]
    fn why_nothing_was_read_ahead_is_told_most_frequent_reason_first() {
        let not_read = NotRead { device_busy: 1, nothing_to_gain: 812, ..NotRead::default() };
        let metrics = Metrics { reads: 812, not_read, ..Metrics::default() };
        let told = "not read ahead: 812 times nothing to gain, once the device was busy";
        assert_eq!(metrics.why_nothing().as_deref(), Some(told));
    }

    #[test]
    fn why_nothing_was_read_ahead_is_not_told_where_most_was() {
        let not_read = NotRead { nothing_to_gain: 5, ..NotRead::default() };
        let metrics = Metrics { reads: 5, not_read, ..Metrics::default() };
        assert_eq!(metrics.why_nothing(), None);
        assert_eq!(Metrics::default().why_nothing(), None);
    }

    #[test]
    fn a_way_of_reading_ahead_is_told_where_something_was_read_so() {
        let nothing = "0.0 s earned, 0.0 s spent; 0 events, 0 lost; 0.000 s CPU";
        assert_eq!(Metrics::default().lines().collect::<Vec<_>>(), [nothing]);
        let metrics = Metrics { reads: 1, read_ahead_bytes: 400_000, ..Metrics::default() };
        let windows = "0.4 MB read ahead in 1 window: 0.0 MB used, 0.0 MB wasted, 0.0 MB for dense random reading; \
                       0 stalls saved";
        assert_eq!(metrics.lines().collect::<Vec<_>>(), [nothing, windows]);
        let metrics = Metrics { listings: 1, walk_files: 1, ..Metrics::default() };
        let walks = "1 file of 0.0 MB read ahead, 0 used; 1 directory listed";
        assert_eq!(metrics.lines().collect::<Vec<_>>(), [nothing, walks]);
        let metrics = Metrics { remembered_ranges: 2, remembered_used: 1, ..Metrics::default() };
        let ranges = "2 remembered ranges asked for: 0.0 MB were not cached, 1 range of them used";
        assert_eq!(metrics.lines().collect::<Vec<_>>(), [nothing, ranges]);
    }

    #[test]
    fn walks_are_told_where_there_were_any() {
        assert_eq!(Metrics::default().walks(), None);
        let metrics = Metrics {
            walk_files: 2500,
            walk_bytes: 31_000_000,
            walk_files_used: 2490,
            listings: 52,
            ..Metrics::default()
        };
        let told = "2500 files of 31.0 MB read ahead, 2490 used; 52 directories listed";
        assert_eq!(metrics.walks().as_deref(), Some(told));
    }

    #[test]
    fn every_reason_that_is_counted_is_told() {
        let all = [
            Reason::NothingToGain,
            Reason::Advised,
            Reason::DeviceBusy,
            Reason::MemoryFull,
            Reason::WritesTooFast,
            Reason::LargerWindow,
        ];
        let mut not_read = NotRead::default();
        all.iter().for_each(|reason| not_read.count(*reason));
        assert_eq!(not_read.total(), all.len() as u64);
        assert_eq!(not_read.to_string().matches("once").count(), all.len());
    }
}
