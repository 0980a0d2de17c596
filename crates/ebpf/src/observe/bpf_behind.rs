//! Drop-behind's part of the eBPF source.
//!
//! ```text
//!   kernel                       engine's thread            threads that drop pages
//!   programs <-- `looks_behind` <-- look_behind --> epoch --> Tables (entries of another epoch do not count)
//!   programs --> `blocks`, `failed_inodes` -----------------> Tables
//!   programs --> `streams` -----> touched
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use controller::ids::{FileKey, StreamKey};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use linux::daemons;
use readahead::behind::{Block, Span};

use super::behind::{BehindSource, PageTables};
use super::bpf::BpfObserver;
use super::layout::{self, bytes_of};
use crate::error::ObserveError;

impl BehindSource for BpfObserver {
    fn look_behind(&mut self, on: bool) -> Result<(), ObserveError> {
        if on {
            self.attach_access_programs()?;
        }
        self.looks_behind = on;
        // First end the epoch, so that nobody drops pages by its tables once uses are no longer seen.
        let epoch = self.epoch.fetch_add(1, Ordering::SeqCst) + 1;
        if let Some(shared) = self.skeleton.maps.bss_data.as_deref_mut() {
            // In this order: pages that enter the cache in between belong to the old epoch.
            shared.watched_inodes.fill(0);
            shared.looks_behind = if on { epoch } else { 0 };
        }
        Ok(())
    }

    fn touched(&self, stream: StreamKey) -> Option<Span> {
        let key = layout::encode_stream_key(stream);
        let value = self.skeleton.maps.streams.lookup(bytes_of(&key), MapFlags::ANY).ok()??;
        layout::decode_touched(&value)
    }

    fn forget_stream(&mut self, stream: StreamKey) {
        let _ = self.skeleton.maps.streams.delete(bytes_of(&layout::encode_stream_key(stream)));
    }

    fn update_daemons(&mut self) {
        let shared = self.skeleton.maps.bss_data.as_deref_mut();
        // Cleared only if it was set, since a daemon may begin between the two; and before the search, so that one that
        // begins meanwhile sets it again.
        if let Some(shared) = shared.filter(|shared| shared.may_be_new_daemon != 0) {
            shared.may_be_new_daemon = 0;
            self.look_for_daemons();
        }
    }

    fn page_tables(&self) -> Result<Arc<dyn PageTables>, ObserveError> {
        let refused = |error| ObserveError::Refused(format!("{error:#}"));
        Ok(Arc::new(Tables {
            blocks: MapHandle::try_from(&self.skeleton.maps.blocks).map_err(refused)?,
            failed_inodes: MapHandle::try_from(&self.skeleton.maps.failed_inodes)
                .map_err(refused)?,
            epoch: self.epoch.clone(),
        }))
    }
}

impl BpfObserver {
    /// Looks at all processes.
    pub(super) fn look_for_daemons(&mut self) {
        let Some(shared) = self.skeleton.maps.bss_data.as_deref_mut() else { return };
        let running: Vec<u32> = daemons::running().map(|daemon| daemon.pid).collect();
        shared.daemons.iter_mut().filter(|pid| !running.contains(pid)).for_each(|pid| *pid = 0);
        for pid in running {
            if shared.daemons.contains(&pid) {
                continue;
            }
            let Some(slot) = shared.daemons.iter_mut().find(|slot| **slot == 0) else {
                // One of the others may end.
                shared.may_be_new_daemon = 1;
                return;
            };
            *slot = pid;
            // If it ended before it was in the slot, the eBPF programs have not cleared that.
            if !daemons::is_running(pid) {
                *slot = 0;
            }
        }
    }
}

struct Tables {
    blocks: MapHandle,
    failed_inodes: MapHandle,
    epoch: Arc<AtomicU32>,
}

impl PageTables for Tables {
    fn block(&self, file: FileKey, block: u64) -> Option<Block> {
        let key = layout::encode_block_key(file, block);
        let value = self.blocks.lookup(bytes_of(&key), MapFlags::ANY).ok()??;
        layout::decode_block(&value, self.epoch.load(Ordering::SeqCst))
    }

    fn forget(&self, file: FileKey, block: u64) {
        // This fails if the map has evicted it already.
        let _ = self.blocks.delete(bytes_of(&layout::encode_block_key(file, block)));
    }

    fn write_failed(&self, file: FileKey) -> bool {
        let slot = layout::failed_slot(file.ino) as u32;
        let value = self.failed_inodes.lookup(&slot.to_ne_bytes(), MapFlags::ANY);
        // If the map cannot be read, assume a failure: then nothing is dropped.
        !matches!(value, Ok(Some(bytes)) if bytes == [0; 4])
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use super::*;
    use controller::{Input, Interest, Kind};

    use crate::kernel::Features;
    use crate::observe::{Observer, Scope, Watch};
    use linux::sys;
    use readahead::DeviceNumber;

    const BYTES: usize = 1 << 20;

    /// The programs, watching the file system of a temporary folder. `None`, with a message, without root, the
    /// tracepoints, or a disk.
    fn observer() -> Option<(BpfObserver, tempfile::TempDir)> {
        let folder = tempfile::tempdir().expect("a folder");
        let mount = linux::mounts::of_path(folder.path());
        let (Ok(mount), true) = (mount, Features::detect().hooks.can_drop_behind()) else {
            crate::skip("drop-behind does not work here, or the temporary folder is on no disk");
            return None;
        };
        match BpfObserver::open(&Scope::Machine, Some(Watch { least_file_pages: 0 }), &[]) {
            Ok(mut observer) => {
                observer.watch_file_system(mount.dev, Interest::All).expect("watched");
                observer.look_behind(true).expect("looking");
                Some((observer, folder))
            }
            Err(error) => {
                crate::skip(error);
                None
            }
        }
    }

    fn key(path: &Path) -> FileKey {
        let about = fs::metadata(path).expect("it is there");
        FileKey { dev: DeviceNumber::from_stat(about.dev()), ino: about.ino() }
    }

    fn evict(path: &Path) {
        let file = File::open(path).expect("it is there");
        file.sync_all().expect("written");
        sys::drop_pages(file.as_fd(), 0, (BYTES / 4096) as u64).expect("dropped");
    }

    /// Has a program read the file. Returns whether the eBPF programs followed its stream.
    fn is_followed(observer: &BpfObserver, path: &Path) -> bool {
        let mut cat = Command::new("cat").arg(path).stdout(Stdio::null()).spawn().expect("it runs");
        let tgid = cat.id();
        assert!(cat.wait().expect("it ended").success());
        observer.touched(StreamKey { file: key(path), tgid, written: false }).is_some()
    }

    /// As `watched_slot` in behind.bpf.h.
    fn slot(path: &Path) -> u64 {
        key(path).ino.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - 13)
    }

    #[test]
    fn a_file_without_known_pages_is_not_followed_even_if_another_has_its_hash() {
        let Some((mut observer, folder)) = observer() else { return };
        let watched = folder.path().join("watched");
        fs::write(&watched, vec![1; BYTES]).expect("written");
        evict(&watched);
        assert!(is_followed(&observer, &watched), "it was cold");
        let wanted = slot(&watched);
        let other = (0..100_000).find_map(|number| {
            let path = folder.path().join(number.to_string());
            File::create(&path).expect("created");
            (slot(&path) == wanted).then_some(path)
        });
        let other = other.expect("one of so many inodes");
        // It is cached, and nobody knows who has brought it.
        observer.look_behind(false).expect("looking away");
        fs::write(&other, vec![1; BYTES]).expect("written");
        observer.look_behind(true).expect("looking");
        evict(&watched);
        assert!(is_followed(&observer, &watched), "it is cold again");
        assert!(!is_followed(&observer, &other), "another file has its slot");
        evict(&other);
        assert!(
            is_followed(&observer, &other) && is_followed(&observer, &watched),
            "both are known"
        );
    }

    #[test]
    fn a_daemon_that_ends_is_removed_at_once() {
        let Some((mut observer, _folder)) = observer() else { return };
        let mut other = Command::new("cat").stdin(Stdio::piped()).spawn().expect("it runs");
        let own = std::process::id();
        let noted = |observer: &BpfObserver| {
            observer.skeleton.maps.bss_data.as_deref().expect("it has variables").daemons
        };
        let shared = observer.skeleton.maps.bss_data.as_deref_mut().expect("it has variables");
        shared.daemons = [0, own, other.id(), 0];
        std::thread::spawn(|| {}).join().expect("it ends");
        assert_eq!(noted(&observer), [0, own, other.id(), 0], "a thread is not the process");
        drop(other.stdin.take());
        other.wait().expect("it ends");
        assert_eq!(noted(&observer), [0, own, 0, 0]);
        observer.look_for_daemons();
        assert!(!noted(&observer).contains(&own), "this is a test");
    }

    #[test]
    fn daemons_are_looked_for_once_a_program_of_that_name_has_begun() {
        let Some((mut observer, folder)) = observer() else { return };
        let may_be = |observer: &BpfObserver, name: &str| {
            let program = folder.path().join(name);
            let _ = std::os::unix::fs::symlink("/bin/true", &program);
            assert!(Command::new(&program).status().expect("it runs").success());
            let shared = observer.skeleton.maps.bss_data.as_deref().expect("it has variables");
            shared.may_be_new_daemon != 0
        };
        let noted = |observer: &BpfObserver| {
            observer.skeleton.maps.bss_data.as_deref().expect("it has variables").daemons[0]
        };
        // Another bowwave of this machine may begin at any moment, but hardly during each try.
        let is_left_alone = |_| {
            let shared = observer.skeleton.maps.bss_data.as_deref_mut().expect("it has variables");
            (shared.daemons[0], shared.may_be_new_daemon) = (std::process::id(), 0);
            let may_be = may_be(&observer, "bowwav") || may_be(&observer, "bowwave2");
            observer.update_daemons();
            !may_be && noted(&observer) != 0
        };
        assert!((0..5).any(is_left_alone), "nobody has begun");
        assert!(may_be(&observer, "bowwave"));
        observer.update_daemons();
        assert_eq!(noted(&observer), 0, "this is a test");
    }

    #[test]
    fn events_carry_the_advice_of_programs() {
        let Some((mut observer, folder)) = observer() else { return };
        let path = folder.path().join("file");
        fs::write(&path, vec![1; BYTES]).expect("written");
        let mut told = |advice: &str| {
            evict(&path);
            let script = format!(
                "import os,sys\nf=os.open(sys.argv[1],0)\n\
                 os.posix_fadvise(f,0,0,os.POSIX_FADV_{advice})\nos.pread(f,4096,500000)"
            );
            let reader = Command::new("python3").args(["-c", &script]).arg(&path).status();
            assert!(reader.expect("python3 is installed").success());
            let events = observer.wait(Duration::from_secs(1)).expect("events");
            let mut misses = events.into_iter().filter_map(|event| match event.input {
                Input::Access(it) if it.kind == Kind::Miss && it.of.file == key(&path) => {
                    Some(it.advice)
                }
                _ => None,
            });
            let advice = misses.next_back().expect("it was cold");
            (advice.random, advice.sequential, advice.noreuse)
        };
        assert_eq!(told("NORMAL"), (false, false, false));
        assert_eq!(told("RANDOM"), (true, false, false));
        assert_eq!(told("SEQUENTIAL"), (false, true, false));
        assert_eq!(told("NOREUSE"), (false, false, true));
    }
}
