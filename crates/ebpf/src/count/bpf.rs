//! Loads programs/count.bpf.c, and reads their tables.

use std::collections::HashSet;
use std::mem::MaybeUninit;

use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, OpenObject};
use linux::mount_points::MountPoints;
use linux::sys;
use top::{Key, Names, Process, Sample};

use super::{Sees, decode};
use crate::error::{ObserveError, check_machine};
use crate::kernel::{self, BTF};
use crate::warnings::{self, refused};

mod skeleton {
    #![allow(unsafe_code, unreachable_pub, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/count.skel.rs"));
}
use skeleton::{CountSkel, CountSkelBuilder};

/// Most memory of the values in the table `counts`, which has one for each processor.
const MOST_TABLE_BYTES: usize = 64 << 20;

/// Bytes of a `struct counts`, and most entries of that table, as in programs/count.h and programs/count.bpf.c.
const COUNTS_BYTES: usize = 96;
const MOST_ENTRIES: usize = 32768;

/// Words from one processor's counter in `seen` to the next, as in programs/count.h.
const SEEN_WORDS: usize = 8;

/// The attached programs and their tables.
pub struct Counting {
    skeleton: CountSkel<'static>,
    /// The programs that run for cached pages, too, while they are attached.
    links: Vec<Link>,
    sees: Sees,
}

fn lost(error: libbpf_rs::Error) -> ObserveError {
    ObserveError::Lost(format!("{error:#}"))
}

fn sees(tracepoints: &HashSet<String>) -> Sees {
    let has = |names: &[&str]| names.iter().all(|name| tracepoints.contains(*name));
    Sees {
        reads: has(&["mm_filemap_get_pages"]),
        faults: has(&["mm_filemap_fault", "mm_filemap_map_pages"]),
        missing: has(&["page_cache_sync_ra", "page_cache_async_ra"]),
    }
}

impl Counting {
    /// Loads the programs, and attaches all but those that run for cached pages.
    ///
    /// # Errors
    /// As [`crate::observe::open`].
    pub fn open() -> Result<Self, ObserveError> {
        let mut counting = Self::load()?;
        counting.skeleton.attach().map_err(refused)?;
        Ok(counting)
    }

    fn load() -> Result<Self, ObserveError> {
        if !cfg!(target_arch = "x86_64") {
            return Err(ObserveError::Architecture("top"));
        }
        check_machine()?;
        let tracepoints = kernel::tracepoints();
        if tracepoints.is_empty() {
            return Err(ObserveError::Refused(format!("it has no type information ({BTF})")));
        }
        let sees = sees(&tracepoints);
        warnings::begin();
        // The skeleton borrows this object for as long as the process counts, so one small leak does no harm.
        let object: &'static mut MaybeUninit<OpenObject> =
            Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = CountSkelBuilder::default().open(object).map_err(refused)?;
        let programs = &mut open.progs;
        programs.count_read.set_autoload(sees.reads);
        programs.count_mapping.set_autoload(sees.faults);
        programs.count_fault.set_autoload(sees.faults);
        programs.note_absent.set_autoload(sees.missing);
        programs.note_mark.set_autoload(sees.missing);
        programs.count_read.set_autoattach(false);
        programs.count_mapping.set_autoattach(false);
        let processors = libbpf_rs::num_possible_cpus().map_err(refused)?;
        let entries = (MOST_TABLE_BYTES / COUNTS_BYTES / processors).min(MOST_ENTRIES);
        open.maps.counts.set_max_entries(entries as u32).map_err(refused)?;
        let skeleton = open.load().map_err(refused)?;
        Ok(Counting { skeleton, links: Vec::new(), sees })
    }

    /// What this kernel's tracepoints tell.
    pub fn sees(&self) -> Sees {
        self.sees
    }

    /// Attaches the programs that run for cached pages, or detaches them.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn see_cached(&mut self, on: bool) -> Result<(), ObserveError> {
        if let Some(shared) = self.skeleton.maps.bss_data.as_deref_mut() {
            shared.sees_cached = u32::from(on);
        }
        if !on {
            self.links.clear();
        } else if self.links.is_empty() {
            let programs = &self.skeleton.progs;
            let all = [&programs.count_read, &programs.count_mapping];
            let loaded = all.into_iter().filter(|program| program.autoload());
            self.links = loaded
                .map(|program| program.attach())
                .collect::<Result<_, _>>()
                .map_err(refused)?;
        }
        Ok(())
    }

    /// How often these programs have run, by processor.
    pub fn seen(&self) -> Vec<u64> {
        let shared = self.skeleton.maps.bss_data.as_deref();
        shared
            .map_or(Vec::new(), |shared| shared.seen.iter().copied().step_by(SEEN_WORDS).collect())
    }

    /// All totals.
    ///
    /// # Errors
    /// If a table cannot be read.
    pub fn sample(&self) -> Result<Sample, ObserveError> {
        let maps = &self.skeleton.maps;
        let mut sample = Sample {
            uncounted: maps.bss_data.as_deref().map_or(0, |shared| shared.uncounted),
            ..Sample::default()
        };
        for map in [&maps.counts, &maps.rest] {
            for bytes in map.keys() {
                let counts = map.lookup_percpu(&bytes, MapFlags::ANY).map_err(lost)?;
                if let (Some(key), Some(counts)) = (decode::key(&bytes), counts) {
                    sample.counts.insert(key, decode::counts(&counts));
                }
            }
        }
        for bytes in maps.stalls.keys() {
            let stalls = maps.stalls.lookup(&bytes, MapFlags::ANY).map_err(lost)?;
            if let (Some(key), Some(stalls)) = (decode::key(&bytes), stalls) {
                sample.stalls.insert(key, decode::stalls(&stalls, sys::monotonic_ns()));
            }
        }
        Ok(sample)
    }

    /// Adds the names of this process and file, as the programs noted them.
    pub fn describe(&self, key: Key, names: &mut Names, mounts: &mut MountPoints) {
        let maps = &self.skeleton.maps;
        let process = maps.processes.lookup(&key.pid.to_ne_bytes(), MapFlags::ANY).ok().flatten();
        if let Some((number, name)) = process.and_then(|bytes| decode::process(&bytes)) {
            let known = names.processes.remove(&key.pid);
            // Another number: a later process with the same number, or one that has been moved.
            let known = known.filter(|process| process.cgroup_number == number);
            let cgroup = known.map(|process| process.cgroup).filter(|path| !path.is_empty());
            let cgroup = cgroup.unwrap_or_else(|| path_of_cgroup(key.pid, number, names));
            names.processes.insert(key.pid, Process { name, cgroup_number: number, cgroup });
        }
        let name = maps.names.lookup(&decode::encode_file(&key.file), MapFlags::ANY).ok().flatten();
        if let Some(name) = name.and_then(|bytes| decode::file_name(&bytes)) {
            names.files.insert(key.file, name.path(key.file.dev, mounts));
        }
    }

    /// Removes idle entries, once half of a table is in use. Returns whether it has.
    pub fn forget(&self, idle: &[Key], sample: &Sample) -> bool {
        let maps = &self.skeleton.maps;
        let others = sample.counts.keys().filter(|key| key.file.ino == 0).count();
        let is_half_full = |used: usize, map: &dyn MapCore| used >= map.max_entries() as usize / 2;
        let is_due = is_half_full(sample.counts.len() - others, &maps.counts)
            || is_half_full(others, &maps.rest)
            || is_half_full(sample.stalls.len(), &maps.stalls);
        if !is_due {
            return false;
        }
        let idle_keys: HashSet<&Key> = idle.iter().collect();
        let used = || sample.keys().filter(|key| !idle_keys.contains(key));
        let pids: HashSet<u32> = used().map(|key| key.pid).collect();
        let files: HashSet<_> = used().map(|key| key.file).collect();
        for key in idle {
            // An entry that is not there needs no removal.
            let bytes = decode::encode_key(key);
            let _ = maps.counts.delete(&bytes);
            let _ = maps.rest.delete(&bytes);
            let _ = maps.stalls.delete(&bytes);
            if !pids.contains(&key.pid) {
                let _ = maps.processes.delete(&key.pid.to_ne_bytes());
            }
            if !files.contains(&key.file) {
                let _ = maps.names.delete(&decode::encode_file(&key.file));
            }
        }
        true
    }
}

/// The path of a process's cgroup, in the hierarchy of version 2 or else in that of version 1's memory controller.
/// `number` is the number of its cgroup of version 2, which gives the path if the process has ended. All cgroups are
/// searched for it, so once only: many processes may have ended.
fn path_of_cgroup(pid: u32, number: u64, names: &mut Names) -> String {
    linux::cgroup::path_of(pid).unwrap_or_else(|| {
        let search = || linux::cgroup::path_of_number(number).unwrap_or_default();
        names.cgroups.entry(number).or_insert_with(search).clone()
    })
}

#[cfg(test)]
mod tests {
    use linux::privilege::Privilege;

    use super::*;

    #[test]
    fn the_kernel_accepts_the_programs() {
        if !Privilege::own().may_observe() {
            return crate::skip("needs root");
        }
        let counting = match Counting::load() {
            Ok(counting) => counting,
            Err(error) => return crate::skip(error),
        };
        assert_eq!(counting.sample().expect("its tables"), Sample::default());
        assert_eq!(counting.seen().iter().sum::<u64>(), 0);
    }
}
