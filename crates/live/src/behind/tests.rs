//! The hands at work on a real file, with tables that say what a test wants.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linux::mounts::{self, Mount};
use linux::sys;
use readahead::behind::{BLOCK_PAGES, Block, Span, Unused};
use readahead::{DeviceNumber, FileKey};

use super::copies::Backlogs;
use super::hands::Hands;
use super::release::{Release, Released};
use super::stream::Stream;
use super::{Behind, Mode, Rules, Totals};
use crate::observe::{Event, PageTables, StreamKey};

const BLOCKS: u64 = 16;

/// Everything may go, but for what was used by somebody else after so many looks.
#[derive(Default)]
struct Tables {
    used_after: HashMap<u64, u32>,
    looks: Mutex<HashMap<u64, u32>>,
    /// Held by a test: nothing of this file system is answered.
    stuck: Option<(DeviceNumber, Arc<Mutex<()>>)>,
    has_failed: bool,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PageTables for Tables {
    fn block(&self, file: FileKey, block: u64) -> Option<Block> {
        if let Some((_, until)) = self.stuck.as_ref().filter(|(dev, _)| *dev == file.dev) {
            drop(held(until));
        }
        let mut looks = held(&self.looks);
        let looks = looks.entry(block).or_default();
        *looks += 1;
        let is_used = self.used_after.get(&block).is_some_and(|after| *looks > *after);
        let brought = if is_used { 0 } else { u64::MAX };
        Some(Block { brought, used: u64::MAX, owner: std::process::id() })
    }

    fn forget(&self, _: FileKey, _: u64) {}

    fn write_failed(&self, _: FileKey) -> bool {
        self.has_failed
    }
}

/// A cached and written file on a file system with a page cache; `None` where the temporary folder is on
/// none.
struct Cached {
    file: File,
    mount: Mount,
    _path: tempfile::TempPath,
}

impl Cached {
    fn new() -> Option<Self> {
        let (mut file, path) = tempfile::NamedTempFile::new().expect("a file").into_parts();
        let Ok(mount) = mounts::of_path(&path) else {
            eprintln!("skipped: {} is on no disk; set TMPDIR to a folder on one", path.display());
            return None;
        };
        // Block by block, so that no folio is larger.
        let bytes = vec![1; (BLOCK_PAGES * readahead::PAGE_BYTES) as usize];
        (0..BLOCKS).for_each(|_| std::io::Write::write_all(&mut file, &bytes).expect("written"));
        file.sync_all().expect("on the disk");
        // Opened through this process, as the file system may encode its handles in any way.
        Some(Cached { file, mount: Mount { fs_type: "any".into(), ..mount }, _path: path })
    }

    fn pages(&self, block: u64) -> u64 {
        let start = block * BLOCK_PAGES;
        sys::cached_pages(self.file.as_fd(), start, BLOCK_PAGES).expect("one's own file")
    }

    fn release(&self) -> Release {
        let about = self.file.metadata().expect("metadata");
        let dev = DeviceNumber::from_stat(about.dev());
        let (file, tgid) = (FileKey { dev, ino: about.ino() }, std::process::id());
        let span = Span { start: 0, end: BLOCKS * BLOCK_PAGES };
        Release {
            stream: StreamKey { file, tgid, written: false },
            event: Event::miss(file, tgid),
            span,
            counted: span,
            pages: span.pages(),
            unused: Unused::Stay,
            unmaps: false,
            delay: 0,
            tries: 0,
        }
    }
}

#[test]
fn a_second_reader_saves_its_pages_up_to_the_last_moment() {
    let Some(cached) = Cached::new() else { return };
    // Block 3 before anything is looked at; block 5 when all has been found to be free to go.
    let tables = Tables { used_after: HashMap::from([(3, 0), (5, 1)]), ..Tables::default() };
    let done = cached.release().run(&cached.mount, &tables);
    for block in 0..BLOCKS {
        let expected = if [3, 5].contains(&block) { BLOCK_PAGES } else { 0 };
        assert_eq!(cached.pages(block), expected, "block {block}");
    }
    assert_eq!((done.dropped_pages, done.kept_pages), (14 * BLOCK_PAGES, 2 * BLOCK_PAGES));
    assert_eq!(done.left, []);
}

#[test]
fn what_could_not_be_written_or_is_not_written_stays() {
    let Some(cached) = Cached::new() else { return };
    let failed = Tables { has_failed: true, ..Tables::default() };
    let done = cached.release().run(&cached.mount, &failed);
    assert_eq!((done.dropped_pages, cached.pages(0)), (0, BLOCK_PAGES));
    std::os::unix::fs::FileExt::write_all_at(&cached.file, &[2], 0).expect("dirty again");
    let done = cached.release().run(&cached.mount, &Tables::default());
    // It is asked for 2 MiB at a time, half of the file.
    assert_eq!(done.left, [(Span { start: 0, end: 512 }, 512)]);
    assert_eq!(done.dropped_pages, 512);
}

#[test]
fn a_file_system_that_does_not_answer_holds_up_no_other() {
    let Some(cached) = Cached::new() else { return };
    let (until, stuck) = (Arc::new(Mutex::new(())), DeviceNumber { major: 0, minor: 77 });
    let tables = Tables { stuck: Some((stuck, until.clone())), ..Tables::default() };
    let mut hands = Hands::new(Arc::new(tables));
    let guard = held(&until);
    let mut other = cached.release();
    other.stream.file.dev = stuck;
    hands.release(other, &Mount { dev: stuck, ..cached.mount.clone() });
    hands.release(cached.release(), &cached.mount);
    let done = hands.done(Duration::from_secs(60)).expect("the other file system's");
    assert_eq!(done.dropped_pages, BLOCKS * BLOCK_PAGES);
    assert!(!hands.is_idle(), "one is stuck");
    drop(guard);
    let late = hands.done(Duration::from_secs(60)).expect("it goes on");
    assert_eq!((late.of.stream.file.dev, hands.is_idle()), (stuck, true));
}

#[test]
fn what_was_left_on_a_file_system_is_not_left_on_the_next_one_with_its_number() {
    let Some(cached) = Cached::new() else { return };
    std::os::unix::fs::FileExt::write_all_at(&cached.file, &[2], 0).expect("dirty again");
    let mut hands = Hands::new(Arc::new(Tables::default()));
    let dev = cached.release().stream.file.dev;
    let mount = Mount { dev, ..cached.mount.clone() };
    hands.release(Release { tries: 1, ..cached.release() }, &mount);
    while cached.pages(BLOCKS - 1) > 0 {
        std::thread::yield_now();
    }
    hands.forget_file_system(dev);
    hands.release(Release { tries: 2, ..cached.release() }, &mount);
    let all = std::iter::from_fn(|| hands.done(Duration::from_secs(60)));
    let left = all.filter(|done| !done.left.is_empty()).map(|done| done.of.tries);
    assert_eq!(left.collect::<Vec<_>>(), [2]);
}

fn behind(tables: Tables) -> Behind {
    Behind {
        rules: Rules::only(Mode::Always),
        streams: HashMap::new(),
        waiting: Vec::new(),
        hands: Hands::new(Arc::new(tables)),
        is_looking: true,
        heard_at: 0,
        looked_through_at: 0,
        unsettled: HashSet::new(),
        is_finishing: false,
        memory: HashMap::new(),
        memory_asked_at: 0,
        backlogs: Backlogs::default(),
        totals: Totals::default(),
    }
}

#[test]
fn what_had_to_wait_for_room_is_counted_like_all_that_was_passed() {
    let Some(cached) = Cached::new() else { return };
    let used = HashMap::from([(3, 0)]);
    let mut behind = behind(Tables { used_after: used, ..Tables::default() });
    let Release { stream, event, span, .. } = cached.release();
    let nothing = Span { start: 0, end: 0 };
    let dev = stream.file.dev;
    let mount = Mount { dev, ..cached.mount.clone() };
    while behind.hands.has_room(dev) {
        let release = Release { span: nothing, counted: nothing, ..cached.release() };
        behind.hands.release(release, &mount);
    }
    behind.release((stream, &event), span, span, span.pages(), (Unused::Stay, 0, 0), &mount);
    behind.try_again(1, &|_| Some(&mount));
    assert_eq!((behind.waiting.len(), behind.totals().left_pages), (1, span.pages()));
    while behind.has_left_overs() {
        while let Some(done) = behind.hands.done(Duration::ZERO) {
            behind.note(done, 1);
        }
        behind.try_again(1, &|_| Some(&mount));
    }
    let (dropped_pages, kept_pages) = (15 * BLOCK_PAGES, BLOCK_PAGES);
    assert_eq!(behind.totals(), Totals { dropped_pages, kept_pages, left_pages: 0 });
}

#[test]
fn writing_is_given_up_after_many_tries_but_not_at_the_end() {
    let mut behind = behind(Tables::default());
    let span = Span { start: 0, end: 512 };
    let file = FileKey { dev: DeviceNumber { major: 0, minor: 77 }, ino: 1 };
    let stream = StreamKey { file, tgid: 1, written: true };
    let of = Release {
        stream,
        event: Event::miss(file, 1),
        span,
        counted: span,
        pages: 1,
        unused: Unused::Stay,
        unmaps: false,
        delay: 1,
        tries: 1_000_000,
    };
    let done = |of| Released { of, dropped_pages: 0, kept_pages: 0, left: vec![(span, 512)] };
    behind.note(done(of.clone()), 1);
    assert!(!behind.has_left_overs());
    assert_eq!(behind.totals(), Totals { left_pages: 512, ..Totals::default() });
    behind.finish();
    behind.note(done(of), 1);
    assert!(behind.has_left_overs());
}

/// A process that has passed so many pages of one file reading, and of another writing.
fn copying(stream: StreamKey, event: &Event, read: u64, written: u64) -> Behind {
    let mut behind = behind(Tables::default());
    for (ino, written, pages) in [(1, false, read), (2, true, written)] {
        let key = StreamKey { file: FileKey { ino, ..stream.file }, written, ..stream };
        let mut stream = Stream::new(event, Mode::Always, 256 << 20);
        let terms = stream.terms.expect("always");
        let passed = Span { start: 0, end: pages };
        stream.passage.on_pass(passed, u64::MAX, super::stream::passing(written), terms);
        behind.streams.insert(key, stream);
    }
    behind
}

#[test]
fn a_copy_too_far_ahead_of_a_disk_with_a_head_is_held_until_it_pauses() {
    let Some(cached) = Cached::new() else { return };
    let Release { stream, event, .. } = cached.release();
    let source = FileKey { ino: 1, ..stream.file };
    let mount = Mount { dev: stream.file.dev, ..cached.mount.clone() };
    // Three steps of 8 MiB are not too many, besides the one under way.
    let most = 3 * 2048;
    for (read, is_copied) in [(10_000, true), (100_000, false)] {
        for has_head in [true, false] {
            let mut behind = copying(stream, &event, read, 10_000);
            let writer = StreamKey { file: FileKey { ino: 2, ..source }, written: true, ..stream };
            let held = |behind: &mut Behind| {
                behind.compare_with_disks(&|_| has_head);
                let is_copied = behind.copied().contains(&(stream.tgid, source));
                (behind.holds_back(stream.tgid), is_copied)
            };
            assert_eq!(held(&mut behind), (false, false), "the disk keeps up");
            let release = Release { stream: writer, pages: most + 1, ..cached.release() };
            behind.hands.release(release, &mount);
            let is_held = is_copied && has_head;
            assert_eq!(held(&mut behind), (true, is_held), "{read} pages read");
            drop(behind.hands.done(Duration::from_secs(60)).expect("looked at"));
            assert_eq!(held(&mut behind), (false, is_held), "the disk has caught up");
            behind.streams.get_mut(&writer).expect("it writes").is_settled = true;
            assert_eq!(held(&mut behind), (false, false), "it pauses");
        }
    }
}
