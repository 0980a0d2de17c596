//! The eBPF source: loads the kernel half, filters in the kernel, fetches through a ring buffer.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, OpenObject, PrintLevel, RingBuffer, RingBufferBuilder};
use linux::meminfo;
use readahead::{DeviceNumber, FileKey, Mark};

use super::behind::BehindSource;
use super::layout::{self, CHUNK_PAGES};
use super::{DiskStats, Event, FileState, Interest, ObserveError, Observer, Scope, Watch};
use crate::kernel::Features;

mod skeleton {
    #![allow(unsafe_code, unreachable_pub, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/observe.skel.rs"));
}
use skeleton::{ObserveSkel, ObserveSkelBuilder};

/// The programs, attached; they go when this is dropped, also by a kill.
pub(super) struct BpfObserver {
    ring: RingBuffer<'static>,
    fetched: Rc<RefCell<Vec<Event>>>,
    batch: Vec<Event>,
    pub(super) skeleton: ObserveSkel<'static>,
    /// What looks for marks, while any are out.
    mark_links: Vec<Link>,
    /// Drop-behind needs what looks for marks as well.
    pub(super) looks_behind: bool,
    /// How often it began to.
    pub(super) epoch: Arc<AtomicU32>,
}

fn refused(error: libbpf_rs::Error) -> ObserveError {
    ObserveError::Refused(format!("{error:#}"))
}

fn lost(error: libbpf_rs::Error) -> ObserveError {
    ObserveError::Lost(format!("{error:#}"))
}

impl BpfObserver {
    pub(super) fn open(scope: &Scope, behind: Option<Watch>) -> Result<Self, ObserveError> {
        libbpf_rs::set_print(Some((PrintLevel::Warn, |_, _| {})));
        // The skeleton borrows the object for as long as it lives, which is as long as the process
        // observes: one leak of one object.
        let object: &'static mut MaybeUninit<OpenObject> =
            Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = ObserveSkelBuilder::default().open(object).map_err(refused)?;
        let constants = open.maps.rodata_data.as_deref_mut().expect("the object has constants");
        constants.our_tgid = std::process::id();
        constants.only_tasks = matches!(scope, Scope::Process(_));
        constants.drops_behind = behind.is_some();
        constants.least_file_pages = behind.map_or(0, |watch| watch.least_file_pages);
        leave_out_what_the_kernel_lacks(&mut open.progs);
        if behind.is_none() {
            leave_out_drop_behind(&mut open).map_err(refused)?;
        }
        let has_plenty = meminfo::available_to(std::process::id()) >= PLENTY_BYTES;
        if matches!(scope, Scope::Process(_)) || !has_plenty {
            fit_tables_to_little_memory(&mut open, behind.is_some()).map_err(refused)?;
        }
        open.progs.on_get_pages.set_autoattach(false);
        open.progs.on_map_pages.set_autoattach(false);
        let mut skeleton = open.load().map_err(refused)?;
        if let Scope::Process(pid) = scope {
            let tasks = &skeleton.maps.tasks;
            tasks
                .update(&pid.to_ne_bytes(), &1u32.to_ne_bytes(), MapFlags::ANY)
                .map_err(refused)?;
        }
        skeleton.attach().map_err(refused)?;
        let fetched = Rc::new(RefCell::new(Vec::with_capacity(1024)));
        let ring = build_ring(&skeleton, Rc::clone(&fetched))?;
        let mut observer = BpfObserver {
            ring,
            fetched,
            batch: Vec::with_capacity(1024),
            skeleton,
            mark_links: Vec::new(),
            looks_behind: false,
            epoch: Arc::default(),
        };
        if behind.is_some() {
            observer.note_daemons();
        }
        Ok(observer)
    }
}

impl BpfObserver {
    /// Attaches the programs that see cached reads, if they are not.
    pub(super) fn look_for_marks(&mut self) -> Result<(), ObserveError> {
        if self.mark_links.is_empty() {
            let programs = [&self.skeleton.progs.on_get_pages, &self.skeleton.progs.on_map_pages];
            let loaded = programs.into_iter().filter(|program| program.autoload());
            self.mark_links = loaded
                .map(|program| program.attach())
                .collect::<Result<_, _>>()
                .map_err(refused)?;
        }
        Ok(())
    }
}

/// A tracepoint the kernel does not have would make the whole object fail to load.
fn leave_out_what_the_kernel_lacks(programs: &mut skeleton::OpenObserveProgs<'_>) {
    let features = Features::detect();
    programs.on_sync_ra.set_autoload(features.sync_ra);
    programs.on_async_ra.set_autoload(features.async_ra);
    programs.on_get_pages.set_autoload(features.get_pages);
    programs.on_fault.set_autoload(features.fault);
    programs.on_map_pages.set_autoload(features.map_pages);
    programs.on_io_start.set_autoload(features.block_io);
    programs.on_io_done.set_autoload(features.block_io);
    programs.on_merge.set_autoload(features.block_io);
    programs.on_write_error.set_autoload(features.write_error);
}

/// Without drop-behind neither its programs nor its tables take anything.
fn leave_out_drop_behind(open: &mut skeleton::OpenObserveSkel<'_>) -> libbpf_rs::Result<()> {
    open.progs.on_add.set_autoload(false);
    open.progs.on_dirty.set_autoload(false);
    open.progs.on_write_error.set_autoload(false);
    open.maps.blocks.set_max_entries(FEW_ENTRIES)?;
    open.maps.streams.set_max_entries(FEW_ENTRIES)
}

/// The tables are charged to our memory cgroup, which `run` shares with its command: 27 MB where
/// there is plenty for every program on the machine, else 6.
fn fit_tables_to_little_memory(
    open: &mut skeleton::OpenObserveSkel<'_>,
    drops_behind: bool,
) -> libbpf_rs::Result<()> {
    open.maps.marks.set_max_entries(8192)?;
    open.maps.files.set_max_entries(4096)?;
    open.maps.tasks.set_max_entries(8192)?;
    open.maps.requests.set_max_entries(4096)?;
    if drops_behind {
        // 2 GiB read ahead, or passed and not released yet.
        open.maps.blocks.set_max_entries(8192)?;
        open.maps.streams.set_max_entries(4096)?;
    }
    Ok(())
}

/// Large tables are 1 % of it or less.
const PLENTY_BYTES: u64 = 4 << 30;

/// An LRU table wants some for each processor's list.
const FEW_ENTRIES: u32 = 256;

fn build_ring(
    skeleton: &ObserveSkel<'static>,
    fetched: Rc<RefCell<Vec<Event>>>,
) -> Result<RingBuffer<'static>, ObserveError> {
    let mut builder = RingBufferBuilder::new();
    builder
        .add(&skeleton.maps.events, move |bytes| {
            fetched.borrow_mut().extend(layout::decode_event(bytes));
            0
        })
        .map_err(refused)?;
    builder.build().map_err(refused)
}

impl Observer for BpfObserver {
    fn wait(
        &mut self,
        timeout: Duration,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<(), ObserveError> {
        match self.ring.poll(timeout) {
            Err(error) if error.kind() == libbpf_rs::ErrorKind::Interrupted => {}
            other => other.map_err(lost)?,
        }
        std::mem::swap(&mut self.batch, &mut *self.fetched.borrow_mut());
        self.batch.drain(..).for_each(on_event);
        Ok(())
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.skeleton.maps.events.as_fd()
    }

    fn watch_file_system(
        &mut self,
        dev: DeviceNumber,
        interest: Interest,
    ) -> Result<(), ObserveError> {
        let key = dev.to_kernel().to_ne_bytes();
        let value = layout::encode_interest(interest).to_ne_bytes();
        self.skeleton.maps.file_systems.update(&key, &value, MapFlags::ANY).map_err(lost)
    }

    fn forget_file_system(&mut self, dev: DeviceNumber) -> Result<(), ObserveError> {
        let key = dev.to_kernel().to_ne_bytes();
        self.skeleton.maps.file_systems.delete(&key).map_err(lost)
    }

    fn watch_disk(&mut self, dev: DeviceNumber, slot: usize) -> Result<(), ObserveError> {
        let key = dev.to_kernel().to_ne_bytes();
        if let Some(shared) = self.skeleton.maps.bss_data.as_deref_mut() {
            shared.disk_stats[slot] = Default::default();
        }
        let map = &self.skeleton.maps.disks;
        map.update(&key, &(slot as u32).to_ne_bytes(), MapFlags::ANY).map_err(lost)
    }

    fn forget_disk(&mut self, dev: DeviceNumber) -> Result<(), ObserveError> {
        let key = dev.to_kernel().to_ne_bytes();
        self.skeleton.maps.disks.delete(&key).map_err(lost)
    }

    fn set_mark(&mut self, file: FileKey, mark: Mark) -> Result<(), ObserveError> {
        self.look_for_marks()?;
        if let Some(shared) = self.skeleton.maps.bss_data.as_deref_mut() {
            let (word, bit) = layout::marked_inode(file.ino);
            shared.marked_inodes[word] |= bit;
        }
        let mut value = [0; 16];
        value[..8].copy_from_slice(&mark.first.to_ne_bytes());
        value[8..].copy_from_slice(&mark.last.to_ne_bytes());
        for chunk in mark.first / CHUNK_PAGES..=mark.last / CHUNK_PAGES {
            let key = layout::encode_mark_key(file, chunk);
            self.skeleton.maps.marks.update(&key, &value, MapFlags::ANY).map_err(lost)?;
        }
        Ok(())
    }

    fn set_state(&mut self, file: FileKey, state: FileState) -> Result<(), ObserveError> {
        let mut value = [0; 24];
        value[..8].copy_from_slice(&state.marked_chunks.to_ne_bytes());
        value[8..16].copy_from_slice(&state.muted_until.to_ne_bytes());
        value[16..20].copy_from_slice(&u32::from(state.led).to_ne_bytes());
        let key = layout::encode_file_key(file);
        self.skeleton.maps.files.update(&key, &value, MapFlags::ANY).map_err(lost)
    }

    fn keep_marks_of(&mut self, files: &mut dyn Iterator<Item = FileKey>) {
        let mut files = files.peekable();
        if files.peek().is_none() && !self.looks_behind {
            self.mark_links.clear();
        }
        let Some(shared) = self.skeleton.maps.bss_data.as_deref_mut() else {
            return;
        };
        let mut marked = [0; layout::MARKED_INODES_WORDS];
        for file in files {
            let (word, bit) = layout::marked_inode(file.ino);
            marked[word] |= bit;
        }
        shared.marked_inodes = marked;
    }

    fn disk_stats(&self, slot: usize) -> DiskStats {
        let counters = self.skeleton.maps.bss_data.as_deref();
        let Some(stats) = counters.and_then(|bss| bss.disk_stats.get(slot)) else {
            return DiskStats::default();
        };
        DiskStats {
            foreground_reads: stats.foreground_reads,
            foreground_ns: stats.foreground_ns,
            led_reads: stats.led_reads,
            led_ns: stats.led_ns,
            visit_reads: stats.visit_reads,
            visit_ns: stats.visit_ns,
            our_reads: stats.our_reads,
            our_bytes: stats.our_bytes,
            our_bytes_in_flight: stats.our_bytes_in_flight.max(0) as u64,
        }
    }

    fn lost_events(&self) -> u64 {
        self.skeleton.maps.bss_data.as_deref().map_or(0, |bss| bss.lost_events)
    }
}
