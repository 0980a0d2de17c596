//! The eBPF source: loads the programs, configures them through maps, and fetches their events from a ring buffer.
//!
//! ```text
//!   kernel                             this process
//!   programs --> `events` (ring) ----> wait
//!   programs <-- `file_systems`, `files`, `marks`, `tasks`, `disks` (maps), `marked_inodes` (shared memory)
//!   programs --> `disk_stats`, `lost_events` (shared memory)
//! ```

use std::cell::RefCell;
use std::collections::HashSet;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use controller::{CHUNK_PAGES, DiskStats, Interest, Listening};
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{
    Link, MapCore, MapFlags, MapMut, OpenObject, ProgramMut, RingBuffer, RingBufferBuilder,
};
use linux::{meminfo, program};
use readahead::{DeviceNumber, FileKey, Mark};

use super::descendants::{self, FollowedTasks};
use super::layout::{self, bytes_of};
use super::{CommandName, Observed, Observer, Scope, Watch};
use crate::error::ObserveError;
use crate::kernel::{DiskHook, Features, Hook, Hooks};
use crate::open_file;
use crate::warnings::{self, refused};

mod skeleton {
    #![allow(unsafe_code, unreachable_pub, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/observe.skel.rs"));
}
pub(super) use skeleton::types;
use skeleton::{ObserveSkel, ObserveSkelBuilder};

/// The attached programs. The kernel removes them when this is dropped or the process is killed.
pub(super) struct BpfObserver {
    ring: RingBuffer<'static>,
    /// Filled by the ring buffer's callback.
    fetched: Rc<RefCell<Vec<Observed>>>,
    /// Files that carry marks.
    marked: HashSet<FileKey>,
    pub(super) skeleton: ObserveSkel<'static>,
    /// The programs that see cached accesses, while there are marks or drop-behind needs them.
    access_links: Vec<Link>,
    /// Disks whose reads are counted.
    counted: HashSet<DeviceNumber>,
    /// The programs that count reads, while there are such disks.
    disk_links: Vec<Link>,
    pub(super) looks_behind: bool,
    /// Counts changes of `looks_behind`. Tables from another epoch do not count.
    pub(super) epoch: Arc<AtomicU32>,
}

fn lost(error: libbpf_rs::Error) -> ObserveError {
    ObserveError::Lost(format!("{error:#}"))
}

impl BpfObserver {
    pub(super) fn open(
        scope: &Scope,
        behind: Option<Watch>,
        remembered: &[CommandName],
    ) -> Result<Self, ObserveError> {
        warnings::begin();
        open_file::load_meanwhile();
        // The skeleton borrows this object for as long as the process observes, so one small leak does no harm.
        let object: &'static mut MaybeUninit<OpenObject> =
            Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = ObserveSkelBuilder::default().open(object).map_err(refused)?;
        configure(&mut open, scope, behind, remembered).map_err(refused)?;
        let mut skeleton = open.load().map_err(refused)?;
        if let Scope::Process(pid) = scope {
            skeleton.maps.tasks.add(*pid)?;
        }
        skeleton.attach().map_err(refused)?;
        if let Scope::Process(pid) = scope {
            descendants::follow_all(*pid, &skeleton.maps.tasks)?;
        }
        let fetched = Rc::default();
        let ring = build_ring(&skeleton, Rc::clone(&fetched))?;
        let mut observer = BpfObserver {
            ring,
            fetched,
            marked: HashSet::new(),
            skeleton,
            access_links: Vec::new(),
            counted: HashSet::new(),
            disk_links: Vec::new(),
            looks_behind: false,
            epoch: Arc::default(),
        };
        if behind.is_some() {
            observer.look_for_daemons();
        }
        Ok(observer)
    }

    /// Attaches the programs that see cached accesses, unless they are attached.
    pub(super) fn attach_access_programs(&mut self) -> Result<(), ObserveError> {
        let programs = &self.skeleton.progs;
        let all = [
            &programs.on_get_pages,
            &programs.on_read,
            &programs.on_splice,
            &programs.on_map_pages,
            &programs.on_map_pages_call,
        ];
        attach_loaded(&all, &mut self.access_links)
    }

    /// Attaches the programs that count the reads of disks, unless they are attached.
    fn attach_disk_programs(&mut self) -> Result<(), ObserveError> {
        if self.disk_links.is_empty() {
            // The ends of reads that were under way when the programs were detached were not seen.
            let requests = &self.skeleton.maps.requests;
            // A program that still runs may have deleted one.
            requests.keys().for_each(|key| drop(requests.delete(&key)));
        }
        let programs = &self.skeleton.progs;
        let all = [
            &programs.on_io_start,
            &programs.on_io_done,
            &programs.on_getrq,
            &programs.on_complete,
            &programs.on_merge,
        ];
        attach_loaded(&all, &mut self.disk_links)
    }
}

/// Attaches those of the programs that are loaded, unless there are links.
fn attach_loaded(programs: &[&ProgramMut<'_>], links: &mut Vec<Link>) -> Result<(), ObserveError> {
    if links.is_empty() {
        let loaded = programs.iter().filter(|program| program.autoload());
        *links =
            loaded.map(|program| program.attach()).collect::<Result<_, _>>().map_err(refused)?;
    }
    Ok(())
}

/// The map `tasks`.
impl FollowedTasks for MapMut<'_> {
    fn add(&self, pid: u32) -> Result<(), ObserveError> {
        self.update(&pid.to_ne_bytes(), &1u32.to_ne_bytes(), MapFlags::ANY).map_err(refused)
    }

    fn remove(&self, pid: u32) {
        // This fails if the eBPF program has removed it already.
        let _ = self.delete(&pid.to_ne_bytes());
    }
}

/// Sets what has to be set before loading: constants, programs, and sizes of maps.
fn configure(
    open: &mut skeleton::OpenObserveSkel<'_>,
    scope: &Scope,
    behind: Option<Watch>,
    remembered: &[CommandName],
) -> libbpf_rs::Result<()> {
    let hooks = Features::detect().hooks;
    let constants = open.maps.rodata_data.as_deref_mut().expect("the object has constants");
    constants.our_tgid = std::process::id();
    constants.only_tasks = matches!(scope, Scope::Process(_));
    constants.drops_behind = behind.is_some();
    constants.least_file_pages = behind.map_or(0, |watch| watch.least_file_pages);
    constants.own_names = program::names().map(words);
    for (place, name) in constants.remembered_commands.iter_mut().zip(remembered) {
        *place = words(*name);
        constants.remembered_count += 1;
    }
    constants.knows_reads_by_bio = hooks.disks == DiskHook::Bio;
    choose_programs(&mut open.progs, &hooks, behind.is_some());
    if behind.is_none() {
        shrink_drop_behind_maps(open)?;
    }
    let has_plenty = meminfo::available_to(std::process::id()) >= PLENTY_BYTES;
    if matches!(scope, Scope::Process(_)) || !has_plenty {
        shrink_maps(open, behind.is_some())?;
    }
    Ok(())
}

fn words(name: CommandName) -> [u64; 2] {
    let (words, _) = name.as_chunks();
    [u64::from_ne_bytes(words[0]), u64::from_ne_bytes(words[1])]
}

/// Chooses which programs to load, and which of them to attach at once. A program whose hook the kernel lacks would
/// make loading fail as a whole.
fn choose_programs(
    programs: &mut skeleton::OpenObserveProgs<'_>,
    hooks: &Hooks,
    drops_behind: bool,
) {
    let Hooks { absent, reads, splices, faults, disks, page_life } = *hooks;
    let page_life = page_life && drops_behind;
    programs.on_sync_ra.set_autoload(absent == Hook::Tracepoint);
    programs.on_async_ra.set_autoload(absent == Hook::Tracepoint);
    programs.on_sync_ra_call.set_autoload(absent == Hook::Function);
    programs.on_async_ra_call.set_autoload(absent == Hook::Function);
    programs.on_get_pages.set_autoload(reads == Hook::Tracepoint);
    programs.on_read.set_autoload(reads == Hook::Function);
    programs.on_splice.set_autoload(splices);
    programs.on_fault.set_autoload(faults == Hook::Tracepoint);
    programs.on_map_pages.set_autoload(faults == Hook::Tracepoint);
    programs.on_fault_call.set_autoload(faults == Hook::Function);
    programs.on_map_pages_call.set_autoload(faults == Hook::Function);
    programs.on_io_start.set_autoload(disks == DiskHook::Request);
    programs.on_io_done.set_autoload(disks == DiskHook::Request);
    programs.on_getrq.set_autoload(disks == DiskHook::Bio);
    programs.on_complete.set_autoload(disks == DiskHook::Bio);
    programs.on_merge.set_autoload(disks != DiskHook::Nothing);
    programs.on_add.set_autoload(page_life);
    programs.on_dirty.set_autoload(page_life);
    programs.on_write_error.set_autoload(page_life);
    programs.on_exec.set_autoload(drops_behind);
    // These see cached accesses; `attach_access_programs` attaches them when they are needed.
    programs.on_get_pages.set_autoattach(false);
    programs.on_read.set_autoattach(false);
    programs.on_splice.set_autoattach(false);
    programs.on_map_pages.set_autoattach(false);
    programs.on_map_pages_call.set_autoattach(false);
    // And these count the reads of disks; `attach_disk_programs` attaches them.
    programs.on_io_start.set_autoattach(false);
    programs.on_io_done.set_autoattach(false);
    programs.on_getrq.set_autoattach(false);
    programs.on_complete.set_autoattach(false);
    programs.on_merge.set_autoattach(false);
}

/// Makes the maps of drop-behind tiny, for use without it.
fn shrink_drop_behind_maps(open: &mut skeleton::OpenObserveSkel<'_>) -> libbpf_rs::Result<()> {
    open.maps.blocks.set_max_entries(FEW_ENTRIES)?;
    open.maps.streams.set_max_entries(FEW_ENTRIES)
}

/// Makes the maps smaller, for one command or little memory: 6 MB instead of 27. They are charged to our memory cgroup,
/// which `run` shares with its command.
fn shrink_maps(
    open: &mut skeleton::OpenObserveSkel<'_>,
    drops_behind: bool,
) -> libbpf_rs::Result<()> {
    open.maps.marks.set_max_entries(8192)?;
    open.maps.files.set_max_entries(4096)?;
    open.maps.tasks.set_max_entries(8192)?;
    open.maps.requests.set_max_entries(4096)?;
    if drops_behind {
        // Enough for 2 GiB that are read ahead, or passed and not released yet.
        open.maps.blocks.set_max_entries(8192)?;
        open.maps.streams.set_max_entries(4096)?;
    }
    Ok(())
}

/// The large maps (27 MB) are less than 1 % of this.
const PLENTY_BYTES: u64 = 4 << 30;

/// An LRU map needs some entries for each processor's list.
const FEW_ENTRIES: u32 = 256;

fn build_ring(
    skeleton: &ObserveSkel<'static>,
    fetched: Rc<RefCell<Vec<Observed>>>,
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
    fn wait(&mut self, timeout: Duration) -> Result<Vec<Observed>, ObserveError> {
        match self.ring.poll(timeout) {
            Err(error) if error.kind() == libbpf_rs::ErrorKind::Interrupted => {}
            other => other.map_err(lost)?,
        }
        Ok(self.fetched.take())
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
        let value = layout::encode_interest(interest);
        let value = layout::bytes_of(&value);
        self.skeleton.maps.file_systems.update(&key, value, MapFlags::ANY).map_err(lost)
    }

    fn forget_file_system(&mut self, dev: DeviceNumber) -> Result<(), ObserveError> {
        self.marked.retain(|file| file.dev != dev);
        let key = dev.to_kernel().to_ne_bytes();
        self.skeleton.maps.file_systems.delete(&key).map_err(lost)
    }

    fn watch_disk(&mut self, dev: DeviceNumber, slot: usize) -> Result<(), ObserveError> {
        self.attach_disk_programs()?;
        self.counted.insert(dev);
        let key = dev.to_kernel().to_ne_bytes();
        if let Some(shared) = self.skeleton.maps.bss_data.as_deref_mut() {
            shared.disk_stats[slot] = Default::default();
        }
        let map = &self.skeleton.maps.disks;
        map.update(&key, &(slot as u32).to_ne_bytes(), MapFlags::ANY).map_err(lost)
    }

    fn forget_disk(&mut self, dev: DeviceNumber) -> Result<(), ObserveError> {
        let key = dev.to_kernel().to_ne_bytes();
        self.counted.remove(&dev);
        if self.counted.is_empty() {
            self.disk_links.clear();
        }
        self.skeleton.maps.disks.delete(&key).map_err(lost)
    }

    fn set_mark(&mut self, file: FileKey, mark: Mark) -> Result<(), ObserveError> {
        self.attach_access_programs()?;
        self.marked.insert(file);
        if let Some(shared) = self.skeleton.maps.bss_data.as_deref_mut() {
            let (word, bit) = layout::marked_inode(file.ino);
            shared.marked_inodes[word] |= bit;
        }
        let value = types::mark { first: mark.first, last: mark.last };
        let marks = &self.skeleton.maps.marks;
        for chunk in mark.first / CHUNK_PAGES..=mark.last / CHUNK_PAGES {
            let key = layout::encode_mark_key(file, chunk);
            marks.update(bytes_of(&key), bytes_of(&value), MapFlags::ANY).map_err(lost)?;
        }
        Ok(())
    }

    fn listen(&mut self, file: FileKey, listening: Listening) -> Result<(), ObserveError> {
        if listening.marked_chunks == 0 {
            self.marked.remove(&file);
        }
        let (files, key) = (&self.skeleton.maps.files, layout::encode_file_key(file));
        if listening == Listening::default() {
            // The default for files that are not in the map. This fails if the map has evicted it already.
            let _ = files.delete(bytes_of(&key));
            return Ok(());
        }
        let value = layout::encode_listening(listening);
        files.update(bytes_of(&key), bytes_of(&value), MapFlags::ANY).map_err(lost)
    }

    fn tidy(&mut self) {
        if self.marked.is_empty() && !self.looks_behind {
            self.access_links.clear();
        }
        let Some(shared) = self.skeleton.maps.bss_data.as_deref_mut() else {
            return;
        };
        let mut marked = shared.marked_inodes;
        marked.fill(0);
        for file in &self.marked {
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
            managed_reads: stats.managed_reads,
            managed_ns: stats.managed_ns,
            seek_reads: stats.seek_reads,
            seek_ns: stats.seek_ns,
            bytes: stats.bytes,
            our_reads: stats.our_reads,
            our_bytes: stats.our_bytes,
            our_bytes_in_flight: stats.our_bytes_in_flight.max(0) as u64,
        }
    }

    fn lost_events(&self) -> u64 {
        self.skeleton.maps.bss_data.as_deref().map_or(0, |bss| bss.lost_events)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn existing_processes_and_their_later_children_are_followed() {
        // The script ends with its input, which ends with this test.
        let script = "sleep 1000 & one=$!; echo $one; read line; sleep 1000 & two=$!; echo $two; \
                      read line; kill $one $two; wait";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().expect("it runs");
        let mut input = shell.stdin.take().expect("piped");
        let output = BufReader::new(shell.stdout.take().expect("piped"));
        let mut pids = output.lines().map(|line| line.expect("a line").parse::<u32>());
        let mut pid = || pids.next().expect("it tells one").expect("a process id");
        let before = pid();
        let observer = BpfObserver::open(&Scope::Process(shell.id()), None, &[]);
        let Ok(observer) = observer else {
            drop(input);
            shell.wait().expect("it ends");
            return crate::skip("eBPF does not work here");
        };
        let is_followed = |pid: u32| {
            let tasks = &observer.skeleton.maps.tasks;
            tasks.lookup(&pid.to_ne_bytes(), MapFlags::ANY).expect("a table").is_some()
        };
        assert!(is_followed(shell.id()) && is_followed(before));
        input.write_all(b"\n").expect("it listens");
        let after = pid();
        assert!(is_followed(after));
        assert!(!is_followed(std::process::id()));
        drop(input);
        shell.wait().expect("it ends");
        assert!([shell.id(), before, after].into_iter().all(|pid| !is_followed(pid)));
    }

    #[test]
    fn reads_are_counted_only_while_there_are_disks_to_count() {
        let Ok(mut observer) = BpfObserver::open(&Scope::Machine, None, &[]) else {
            return crate::skip("eBPF does not work here");
        };
        let disk = |minor| DeviceNumber { major: 259, minor };
        let stale = 1u64.to_ne_bytes();
        let requests = |observer: &BpfObserver| observer.skeleton.maps.requests.keys().count();
        assert!(observer.disk_links.is_empty());
        let map = &observer.skeleton.maps.requests;
        let read = vec![0; map.value_size() as usize];
        map.update(&stale, &read, MapFlags::ANY).expect("a table");
        observer.watch_disk(disk(0), 0).expect("it is counted");
        assert_eq!(requests(&observer), 0, "what ended unseen is forgotten");
        observer.watch_disk(disk(1), 1).expect("it is counted");
        observer.forget_disk(disk(0)).expect("it is no longer counted");
        let can_count = Features::detect().hooks.disks != DiskHook::Nothing;
        assert_eq!(observer.disk_links.is_empty(), !can_count, "there is another disk");
        observer.forget_disk(disk(1)).expect("it is no longer counted");
        assert!(observer.disk_links.is_empty());
    }
}
