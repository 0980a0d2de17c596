//! Two threads a file system: one lets pages go, one starts writing. Both calls may wait for a device,
//! and opening a file for a server, which neither the program nor the thread that decides shall do, nor
//! what goes on on another file system.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use linux::mounts::Mount;
use linux::sys;
use readahead::DeviceNumber;
use readahead::behind::Span;

use super::copies::Writer;
use super::release::{Release, Released};
use crate::act::open_file;
use crate::observe::{Event, PageTables};

/// Releases that wait on a file system at most; one that does not answer is given no more.
const MOST_UNDER_WAY: usize = 384;

/// Steps of the writers of a slow disk.
const MOST_WRITES: usize = 16;

/// The threads; they end with this.
pub(super) struct Hands {
    tables: Arc<dyn PageTables>,
    lanes: HashMap<DeviceNumber, Lane>,
    lanes_begun: u64,
    /// With the number of the lane.
    done: Sender<(u64, Released)>,
    released: Receiver<(u64, Released)>,
    /// Pages written by each process on each file system that are being looked at.
    written: HashMap<Writer, u64>,
}

/// One file system's.
struct Lane {
    /// Another one each time, as the next file system mounted may have the device number of the last.
    number: u64,
    releases: Sender<Release>,
    writes: Sender<(Event, Span)>,
    under_way: usize,
    writes_under_way: Arc<AtomicUsize>,
}

impl Hands {
    pub(super) fn new(tables: Arc<dyn PageTables>) -> Self {
        let (done, released) = mpsc::channel();
        let (lanes, written) = (HashMap::new(), HashMap::new());
        Hands { tables, lanes, lanes_begun: 0, done, released, written }
    }

    fn lane(&mut self, mount: &Mount) -> &mut Lane {
        let (tables, done, begun) = (&self.tables, &self.done, &mut self.lanes_begun);
        let begin = || {
            *begun += 1;
            let tables = tables.clone();
            let let_go = move |release: Release, mount: &Mount| release.run(mount, &*tables);
            Lane::begin(*begun, mount.clone(), done.clone(), let_go)
        };
        self.lanes.entry(mount.dev).or_insert_with(begin)
    }

    pub(super) fn release(&mut self, release: Release, mount: &Mount) {
        let (stream, pages) = (release.stream, release.pages);
        let lane = self.lane(mount);
        let is_sent = lane.releases.send(release).is_ok();
        lane.under_way += usize::from(is_sent);
        if is_sent && stream.written {
            *self.written.entry((stream.tgid, stream.file.dev)).or_default() += pages;
        }
    }

    /// Pages that a process has written on a file system and that are being looked at.
    pub(super) fn written_pages(&self, writer: Writer) -> u64 {
        self.written.get(&writer).copied().unwrap_or(0)
    }

    /// Unless so much is being written already that it would only wait: a disk that is slower than its
    /// writer would keep its file system mounted.
    pub(super) fn write_out(&mut self, event: &Event, span: Span, mount: &Mount) {
        let lane = self.lane(mount);
        if lane.writes_under_way.load(Ordering::Relaxed) < MOST_WRITES {
            lane.writes_under_way.fetch_add(1, Ordering::Relaxed);
            // Without its thread the kernel writes when it sees fit.
            let _ = lane.writes.send((*event, span));
        }
    }

    /// What has been done since, waiting up to `timeout` for something if anything is under way.
    pub(super) fn done(&mut self, timeout: Duration) -> Option<Released> {
        if self.is_idle() {
            return None;
        }
        let (number, mut done) = self.released.recv_timeout(timeout).ok()?;
        let Release { stream, pages, .. } = &done.of;
        match self.lanes.get_mut(&stream.file.dev) {
            Some(lane) if lane.number == number => {
                lane.under_way -= 1;
                if stream.written {
                    let of = (stream.tgid, stream.file.dev);
                    *self.written.entry(of).or_default() -= pages;
                    self.written.retain(|_, pages| *pages > 0);
                }
            }
            // It was unmounted since: nothing is left there.
            _ => done.left.clear(),
        }
        Some(done)
    }

    /// Whether another release may be handed over on this file system.
    pub(super) fn has_room(&self, dev: DeviceNumber) -> bool {
        self.lanes.get(&dev).is_none_or(|lane| lane.under_way < MOST_UNDER_WAY)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.lanes.values().all(|lane| lane.under_way == 0)
    }

    /// It was unmounted.
    pub(super) fn forget_file_system(&mut self, dev: DeviceNumber) {
        self.lanes.remove(&dev);
        self.written.retain(|writer, _| writer.1 != dev);
    }
}

impl Lane {
    fn begin(
        number: u64,
        mount: Mount,
        done: Sender<(u64, Released)>,
        let_go: impl Fn(Release, &Mount) -> Released + Send + 'static,
    ) -> Self {
        let (releases, release_inbox) = mpsc::channel::<Release>();
        let (writes, write_inbox) = mpsc::channel::<(Event, Span)>();
        let writes_under_way = Arc::new(AtomicUsize::new(0));
        let (written, of) = (writes_under_way.clone(), mount.clone());
        let write = move || {
            for (event, span) in write_inbox {
                // A file system that cannot: the kernel writes when it sees fit.
                if let Ok(file) = open_file(&event, &of) {
                    let _ = sys::write_out(file.as_fd(), span.start, span.pages());
                }
                written.fetch_sub(1, Ordering::Relaxed);
            }
        };
        let release = move || {
            for release in release_inbox {
                if done.send((number, let_go(release, &mount))).is_err() {
                    break;
                }
            }
        };
        // Without a thread its channel is closed, and pages stay.
        let _ = thread::Builder::new().name("bowwave-release".into()).spawn(release);
        let _ = thread::Builder::new().name("bowwave-writeout".into()).spawn(write);
        Lane { number, releases, writes, under_way: 0, writes_under_way }
    }
}
