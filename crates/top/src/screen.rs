//! Text for a terminal.

use std::time::Duration;

use crate::activity::Activity;
use crate::names::Names;
use crate::table::{Of, Row};
use crate::view::{By, View};

/// All that one picture shows.
pub struct Picture<'a> {
    /// The rows in their order.
    pub rows: &'a [Row],
    /// The sum of these and of rows that are left out.
    pub total: Activity,
    /// What their names mean.
    pub names: &'a Names,
    /// What the user has chosen.
    pub view: &'a View,
    /// The length of the interval.
    pub interval: Duration,
    /// The share of the interval in which accesses to cached pages were seen.
    pub seen: f64,
    /// What is not shown or not known, one sentence each.
    pub notes: &'a [String],
}

/// The least width.
pub const COLUMNS: usize = 80;

/// Where there is this much room, a column says why a file is not managed.
const COLUMNS_WITH_REASON: usize = 110;
const REASON: usize = 24;

/// The heading and width of each column that all rows have.
const FIGURES: [(&str, usize); 6] =
    [("READS/s", 8), ("MB/s", 7), ("HIT%", 6), ("BOWW%", 6), ("WAIT%", 7), ("STALLS", 7)];
/// And of those that follow.
const LATENCIES: [(&str, usize); 2] = [("MEDIAN", 7), ("P99", 7)];
const PATTERN: [(&str, usize); 1] = [("PATTERN", 10)];

/// What the keys do, for the last line.
const KEYS: &str = "ptfdc process stream file device cgroup  s sort  / filter  space pause  q end";

impl Picture<'_> {
    /// Lines of at most `columns` characters, but not fewer than 80; as many as there are.
    pub fn lines(&self, columns: usize) -> Vec<String> {
        let columns = columns.max(COLUMNS);
        let mut lines = vec![cut_end(&self.title(), columns), cut_end(&self.sums(), columns)];
        lines.extend(self.notes.iter().map(|note| cut_end(&visible(note), columns)));
        lines.push(self.heading(columns));
        lines.extend(self.rows.iter().map(|row| self.row(row, columns)));
        lines
    }

    /// The same for a terminal with this many lines, with a line of keys at its end.
    pub fn for_terminal(&self, columns: usize, height: usize) -> Vec<String> {
        let mut lines = self.lines(columns);
        let keys = if self.view.is_typing {
            format!("filter: {}_  (Enter ends, Escape shows all)", self.view.filter)
        } else {
            KEYS.to_owned()
        };
        lines.truncate(height.saturating_sub(1).max(1));
        lines.push(cut_end(&visible(&keys), columns.max(COLUMNS)));
        lines
    }

    fn title(&self) -> String {
        let View { by, sort, filter, is_paused, .. } = self.view;
        let mut title = format!(
            "bowwave top  by {}, most {} first, {:.1} s",
            by.name(),
            sort.name(),
            self.interval.as_secs_f64()
        );
        if !filter.is_empty() {
            title += &format!(", only {}", visible(filter));
        }
        if *is_paused {
            title += "  PAUSED";
        }
        title
    }

    fn sums(&self) -> String {
        if self.interval.is_zero() {
            return "counting ...".into();
        }
        let sum = &self.total;
        let seconds = self.interval.as_secs_f64();
        let rate = |count: u64| compact(count as f64 / seconds);
        let seen = match self.seen {
            seen if seen < 1.0 => format!("; reads seen {:.0} % of the time", seen * 100.0),
            _ => String::new(),
        };
        format!(
            "{}/s reads, {}/s faults, {:.1} MB/s, {} % hit, {}/s stalls{seen}",
            rate(sum.reads),
            rate(sum.faults),
            sum.bytes() as f64 * 1e-6 / seconds,
            percent(sum.hit_share()),
            rate(sum.stalls),
        )
    }

    /// The heading and width of each column after the name.
    fn columns(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let last: &[_] = if self.view.by == By::Stream { &PATTERN } else { &LATENCIES };
        FIGURES.iter().chain(last).copied()
    }

    fn name_width(&self, columns: usize) -> usize {
        let numbers: usize = self.columns().map(|(_, width)| width).sum();
        let reason = if self.gives_reasons(columns) { REASON } else { 0 };
        columns - numbers - reason
    }

    fn gives_reasons(&self, columns: usize) -> bool {
        columns >= COLUMNS_WITH_REASON && self.view.by == By::File
    }

    fn heading(&self, columns: usize) -> String {
        let width = self.name_width(columns);
        let mut line = format!("{:<width$}", self.view.by.name().to_uppercase());
        self.columns().for_each(|(name, width)| line += &format!("{name:>width$}"));
        if self.gives_reasons(columns) {
            line += "  MANAGED BY BOWWAVE";
        }
        line
    }

    fn row(&self, row: &Row, columns: usize) -> String {
        let width = self.name_width(columns);
        let name = visible(&row.name);
        // The end of a path matters, and the beginning of other names.
        let name = match row.of {
            Of::File(_) | Of::Cgroup(_) => cut_begin(&name, width - 1),
            Of::Stream(_) => cut_middle(&name, width - 1),
            _ => cut_end(&name, width - 1),
        };
        let mut line = format!("{name:<width$}");
        let seconds = self.interval.as_secs_f64();
        let texts = figures(&row.activity, seconds).into_iter().chain(match self.view.by {
            By::Stream => vec![row.activity.steps.pattern().unwrap_or("-").to_owned()],
            _ => percentiles(&row.activity).to_vec(),
        });
        for (text, (_, width)) in texts.zip(self.columns()) {
            line += &format!("{text:>width$}");
        }
        if self.gives_reasons(columns)
            && let Of::File(file) = row.of
        {
            line += &format!("  {}", self.names.managed(file, &row.activity));
        }
        line
    }
}

fn percentiles(activity: &Activity) -> [String; 2] {
    [50, 99].map(|percent| activity.latencies.percentile_ms(percent).map_or("-".into(), duration))
}

fn figures(activity: &Activity, seconds: f64) -> [String; 6] {
    [
        compact((activity.reads + activity.faults) as f64 / seconds),
        compact(activity.bytes() as f64 * 1e-6 / seconds),
        percent(activity.hit_share()),
        percent(activity.bowwave_share()),
        compact(activity.stalled_s / seconds * 100.0),
        compact(activity.stalls as f64 / seconds),
    ]
}

fn percent(share: Option<f64>) -> String {
    match share {
        None => "-".into(),
        // Only all is 100.
        Some(share) => format!("{:.1}", (share * 1000.0).floor() / 10.0),
    }
}

/// A number in at most 6 characters: `0`, `0.25`, `7.5`, `12345`, `123k`, `4.5M`.
fn compact(number: f64) -> String {
    let scaled = |scale: f64, unit: &str| {
        let value = number / scale;
        if value < 10.0 { format!("{value:.1}{unit}") } else { format!("{value:.0}{unit}") }
    };
    match number {
        0.0 => "0".into(),
        number if number < 1.0 => format!("{number:.2}"),
        number if number < 100.0 => format!("{number:.1}"),
        number if number < 99_999.5 => format!("{number:.0}"),
        number if number < 1e6 => scaled(1e3, "k"),
        number if number < 1e9 => scaled(1e6, "M"),
        number if number < 1e12 => scaled(1e9, "G"),
        number if number < 1e15 => scaled(1e12, "T"),
        _ => "huge".into(),
    }
}

/// Milliseconds with a unit, in at most 6 characters.
fn duration(ms: f64) -> String {
    match ms {
        ms if ms < 1.0 => format!("{:.0}us", ms * 1e3),
        ms if ms < 10.0 => format!("{ms:.1}ms"),
        ms if ms < 1e3 => format!("{ms:.0}ms"),
        ms if ms < 1e6 => format!("{:.1}s", ms * 1e-3),
        ms => format!("{:.0}s", ms * 1e-3),
    }
}

/// Escapes control characters in foreign text as `\n`, `\u{1b}` and so on, since a terminal would obey them.
pub fn visible(text: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.into() };
    text.chars().map(shown).collect()
}

/// At most `most` characters, without the last ones.
fn cut_end(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most - 3).collect::<String>() + "...",
    }
}

/// At most `most` characters, without the first ones.
fn cut_begin(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    "...".chars().chain(text.chars().skip(count - (most - 3))).collect()
}

/// At most `most` characters: the beginning and, of the longer part, the end.
fn cut_middle(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let begin = most / 3;
    let (head, tail) = text.split_at(text.char_indices().nth(begin).map_or(0, |(at, _)| at));
    head.to_owned() + &cut_begin(tail, most - begin)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use readahead::{DeviceNumber, FileKey};

    use super::*;
    use crate::latency::{BINS, Latencies};
    use crate::sample::Key;
    use crate::steps::Steps;
    use crate::table::total;
    use crate::view::Sort;

    const FILE: FileKey = FileKey { dev: DeviceNumber { major: 8, minor: 1 }, ino: 7 };

    fn reader() -> Activity {
        let mut latencies = Latencies::default();
        latencies.bins[12] = 90;
        latencies.bins[14] = 10;
        Activity {
            reads: 1234,
            faults: 6,
            pages: 19_744,
            steps: Steps { forward: 1000, random: 240, ..Steps::default() },
            judged_pages: 19_744,
            missing_pages: 1_300,
            kernel_pages: 5_000,
            bowwave_pages: 15_000,
            stalls: 100,
            stalled_s: 0.75,
            latencies,
        }
    }

    fn picture<'a>(rows: &'a [Row], names: &'a Names, view: &'a View) -> Picture<'a> {
        let interval = Duration::from_secs(2);
        Picture { rows, total: total(rows), names, view, interval, seen: 1.0, notes: &[] }
    }

    #[test]
    fn a_busy_process_is_a_row_of_eighty_columns() {
        let row = Row { of: Of::Process(1234), name: "1234 tar".into(), activity: reader() };
        let expected = "\
bowwave top  by process, most wait first, 2.0 s
617/s reads, 3.0/s faults, 40.4 MB/s, 93.4 % hit, 50.0/s stalls
PROCESS                   READS/s   MB/s  HIT% BOWW%  WAIT% STALLS MEDIAN    P99
1234 tar                      620   40.4  93.4  75.0   37.5   50.0  6.4ms   31ms";
        let shown = picture(&[row], &Names::default(), &View::default()).lines(80).join("\n");
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_stream_shows_its_process_the_end_of_its_file_and_its_pattern() {
        let of = Of::Stream(Key { pid: 1234, file: FILE });
        let row =
            Row { of, name: "1234 tar /srv/backup/weekly/data.img".into(), activity: reader() };
        let view = View { by: By::Stream, ..View::default() };
        let lines = picture(&[row], &Names::default(), &view).lines(80);
        let expected = "\
STREAM                        READS/s   MB/s  HIT% BOWW%  WAIT% STALLS   PATTERN
1234 tar .../weekly/data.img      620   40.4  93.4  75.0   37.5   50.0   forward";
        assert_eq!(lines[2..].join("\n"), expected);
    }

    #[test]
    fn a_wide_terminal_says_why_a_file_is_not_managed() {
        let row = Row { of: Of::File(FILE), name: "/srv/f".into(), activity: reader() };
        let view = View { by: By::File, ..View::default() };
        let lines = picture(std::slice::from_ref(&row), &Names::default(), &view).lines(110);
        assert!(lines[3].ends_with("  no bowwave runs"), "{}", lines[3]);
        let mut names = Names::default();
        names.managers.pids.insert(1);
        let told = |activity: Activity, names: &Names| {
            let row = Row { activity, ..row.clone() };
            picture(&[row], names, &view).lines(110)[3].clone()
        };
        let alone = Activity { bowwave_pages: 0, ..reader() };
        assert!(told(reader(), &names).ends_with("  managed"));
        assert!(told(alone, &names).ends_with("  file system not managed"));
        names.managers.file_systems.insert(FILE.dev);
        assert!(told(alone, &names).ends_with("  nothing to read ahead"));
        let cached = Activity { missing_pages: 0, stalls: 0, ..alone };
        assert!(told(cached, &names).ends_with("  nothing was missing"));
    }

    #[test]
    fn the_share_of_the_time_in_which_reads_were_seen_is_shown() {
        let (names, view) = (Names::default(), View::default());
        let picture = Picture { seen: 0.07, ..picture(&[], &names, &view) };
        assert!(picture.lines(80)[1].ends_with("; reads seen 7 % of the time"));
    }

    #[test]
    fn the_keys_stay_in_sight_in_a_small_terminal_and_the_filter_while_it_is_typed() {
        let row = Row { of: Of::Process(1), name: "1 a".into(), activity: reader() };
        let rows = vec![row; 50];
        let (names, mut view) = (Names::default(), View::default());
        let lines = picture(&rows, &names, &view).for_terminal(80, 24);
        assert_eq!(lines.len(), 24);
        assert!(lines[23].ends_with("q end"));
        view.typed("/ta");
        let lines = picture(&rows, &names, &view).for_terminal(80, 24);
        assert!(lines[23].starts_with("filter: ta_"));
    }

    fn activity() -> impl Strategy<Value = Activity> {
        let count = prop_oneof![0u64..2000, 0u64..1 << 50];
        (prop::collection::vec(count, 7), 0.0f64..1e9, 0usize..BINS).prop_map(
            |(counts, stalled_s, bin)| {
                let mut latencies = Latencies::default();
                latencies.bins[bin] = counts[6];
                Activity {
                    reads: counts[0],
                    faults: counts[1],
                    pages: counts[2],
                    steps: Steps { random: counts[0], ..Steps::default() },
                    judged_pages: counts[2],
                    missing_pages: counts[3],
                    kernel_pages: counts[4],
                    bowwave_pages: counts[5],
                    stalls: counts[6],
                    stalled_s,
                    latencies,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn lines_are_never_longer_than_the_terminal_and_carry_no_control_characters(
            activity in activity(),
            name in "[a-z/\u{1b}\n\u{e9}]{0,200}",
            filter in "[a-z\u{1b}]{0,100}",
            columns in 80usize..200,
            by in prop::sample::select(By::ALL.to_vec()),
            sort in prop::sample::select(Sort::ALL.to_vec()),
        ) {
            let of = match by {
                By::Process => Of::Process(u32::MAX),
                By::Stream => Of::Stream(Key { pid: u32::MAX, file: FILE }),
                By::File => Of::File(FILE),
                By::Device => Of::Device(FILE.dev),
                By::Cgroup => Of::Cgroup(name.clone()),
            };
            let rows = [Row { of, name, activity }];
            let view = View { by, sort, filter, is_paused: true, ..View::default() };
            let notes = ["\u{1b}[2J".repeat(80)];
            let names = Names::default();
            let picture = Picture { notes: &notes, seen: 0.5, ..picture(&rows, &names, &view) };
            for line in picture.for_terminal(columns, 30) {
                prop_assert!(line.chars().count() <= columns, "{}: {line}", line.chars().count());
                prop_assert!(!line.chars().any(char::is_control), "{line:?}");
            }
        }

        #[test]
        fn a_number_takes_at_most_six_characters(number in prop_oneof![0.0f64..1e6, 0.0f64..1e18]) {
            prop_assert!(compact(number).len() <= 6, "{}", compact(number));
        }

        #[test]
        fn a_latency_takes_at_most_six_characters(ms in prop_oneof![0.0f64..1e4, 0.0f64..5e6]) {
            prop_assert!(duration(ms).len() <= 6, "{}", duration(ms));
        }
    }
}
