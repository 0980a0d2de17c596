//! Finds out which hooks this kernel has, and chooses those that bowwave's eBPF programs use.
//!
//! | event | tracepoint | since | otherwise |
//! |---|---|---|---|
//! | a page was absent; the kernel's own mark was touched | `page_cache_sync_ra`, `page_cache_async_ra` | 6.18 | the functions of these names |
//! | a read | `mm_filemap_get_pages` | 6.12 | `filemap_read`, `filemap_splice_read` |
//! | a fault; pages mapped around it | `mm_filemap_fault`, `mm_filemap_map_pages` | 6.12 | `filemap_fault`, `filemap_map_pages` |
//! | a page entered the cache, was dirtied, could not be written | `mm_filemap_add_to_page_cache`, `writeback_dirty_folio`, `filemap_set_wb_err` | 5.18 | nothing: no drop-behind |
//! | a disk read begins and ends | `block_io_start`, `block_io_done` | 6.5 | `block_getrq`, `block_rq_complete` |
//!
//! The kernel's type information (BTF) decides, not its version, since distributions backport features. A tracepoint
//! exists if BTF has a type of its name; looking that up needs no privilege and no tracefs. A function exists if it has
//! the parameters that our programs read.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::OnceLock;

use linux::sys;

/// The kernel's type information.
pub const BTF: &str = "/sys/kernel/btf/vmlinux";

/// An environment variable. The value `functions` prefers functions to tracepoints, to compare the two.
pub const HOOKS: &str = "BOWWAVE_HOOKS";

/// Begins the name of each tracepoint's type, behind the end of the name before.
const TRACEPOINT_PREFIX: &[u8] = b"\0btf_trace_";

/// Lists the lockdown modes, with the current one in brackets.
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";

/// Whether this kernel forbids programs to read its memory, as ours do.
pub fn is_locked_down() -> bool {
    is_confidential(&std::fs::read_to_string(LOCKDOWN).unwrap_or_default())
}

fn is_confidential(setting: &str) -> bool {
    setting.contains("[confidentiality]")
}

/// The names of what a kernel lets programs attach to.
#[derive(Clone, Debug, Default)]
pub struct Available {
    /// All tracepoints.
    pub tracepoints: HashSet<String>,
    /// Those of `FUNCTIONS` that have the parameters that our programs read.
    pub functions: HashSet<String>,
}

impl Available {
    fn has_tracepoints(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.tracepoints.contains(*name))
    }

    fn has_functions(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.functions.contains(*name))
    }
}

/// Where programs see one kind of event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hook {
    /// At tracepoints.
    Tracepoint,
    /// Where kernel functions are entered or left (fentry, fexit).
    Function,
    /// Not at all.
    #[default]
    Nothing,
}

/// Where programs see disk reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiskHook {
    /// `block_io_start`, `block_io_done`.
    Request,
    /// `block_getrq`, `block_rq_complete`.
    Bio,
    /// Not at all.
    #[default]
    Nothing,
}

/// The hooks that our programs use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Absent pages, and the kernel's own marks.
    pub absent: Hook,
    /// Reads that may touch our marks.
    pub reads: Hook,
    /// Whether to hook splices as well, which go around the function that reads.
    pub splices: bool,
    /// Faults, and pages mapped around them.
    pub faults: Hook,
    /// Disk reads.
    pub disks: DiskHook,
    /// Pages that enter the cache, are dirtied, or cannot be written.
    pub page_life: bool,
}

const ABSENT: [&str; 2] = ["page_cache_sync_ra", "page_cache_async_ra"];
const READ_TRACEPOINT: &str = "mm_filemap_get_pages";
const READ_FUNCTION: &str = "filemap_read";
const SPLICE_FUNCTION: &str = "filemap_splice_read";
const FAULT_TRACEPOINTS: [&str; 2] = ["mm_filemap_fault", "mm_filemap_map_pages"];
const FAULT_FUNCTIONS: [&str; 2] = ["filemap_fault", "filemap_map_pages"];
const PAGE_LIFE: [&str; 3] =
    ["mm_filemap_add_to_page_cache", "writeback_dirty_folio", "filemap_set_wb_err"];
const REQUESTS: [&str; 3] = ["block_io_start", "block_io_done", "block_rq_merge"];
const BIOS: [&str; 3] = ["block_getrq", "block_rq_complete", "block_rq_merge"];

/// The functions that our programs can hook, with their parameters (include/linux/pagemap.h, fs.h and mm.h of Linux 6.1
/// to 7.3).
#[cfg(feature = "bpf")]
const FUNCTIONS: [(&str, &[&str]); 6] = [
    (ABSENT[0], &["ractl", "req_count"]),
    (ABSENT[1], &["ractl", "folio", "req_count"]),
    (READ_FUNCTION, &["iocb", "iter", "already_read"]),
    (SPLICE_FUNCTION, &["in", "ppos", "pipe", "len", "flags"]),
    (FAULT_FUNCTIONS[0], &["vmf"]),
    (FAULT_FUNCTIONS[1], &["vmf", "start_pgoff", "end_pgoff"]),
];

impl Hooks {
    /// Chooses tracepoints where available, otherwise functions; the other way round if `prefers_functions`.
    pub fn choose(available: &Available, prefers_functions: bool) -> Self {
        let choose = |tracepoints: &[&str], functions: &[&str]| {
            let (has_tracepoints, has_functions) =
                (available.has_tracepoints(tracepoints), available.has_functions(functions));
            match () {
                () if has_functions && (prefers_functions || !has_tracepoints) => Hook::Function,
                () if has_tracepoints => Hook::Tracepoint,
                () => Hook::Nothing,
            }
        };
        let reads = choose(&[READ_TRACEPOINT], &[READ_FUNCTION]);
        Hooks {
            absent: choose(&ABSENT, &ABSENT),
            reads,
            splices: reads == Hook::Function && available.has_functions(&[SPLICE_FUNCTION]),
            faults: choose(&FAULT_TRACEPOINTS, &FAULT_FUNCTIONS),
            disks: match () {
                () if available.has_tracepoints(&REQUESTS) => DiskHook::Request,
                () if available.has_tracepoints(&BIOS) => DiskHook::Bio,
                () => DiskHook::Nothing,
            },
            page_life: available.has_tracepoints(&PAGE_LIFE),
        }
    }

    /// Whether reads can be managed at all: that needs events of absent pages and of marks.
    pub fn can_observe(&self) -> bool {
        self.absent != Hook::Nothing && self.reads != Hook::Nothing
    }

    /// Whether pages can be dropped behind streams: that needs to know how pages came into the cache, whether they were
    /// used, and whether writing failed.
    pub fn can_drop_behind(&self) -> bool {
        self.can_observe() && self.page_life
    }
}

impl fmt::Display for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let called = |hook| match hook {
            Hook::Tracepoint => "tracepoints",
            Hook::Function => "functions",
            Hook::Nothing => "not seen",
        };
        let disks = match self.disks {
            DiskHook::Request => "requests",
            DiskHook::Bio => "bios",
            DiskHook::Nothing => "not seen",
        };
        write!(
            f,
            "absent pages: {}, reads: {}, faults: {}, disks: {disks}",
            called(self.absent),
            called(self.reads),
            called(self.faults),
        )
    }
}

/// What this kernel offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// The kernel has type information.
    pub btf: bool,
    /// The hooks that our programs use.
    pub hooks: Hooks,
    /// The kernel has `cachestat(2)`.
    pub cachestat: bool,
}

impl Features {
    /// Looks at the running kernel once, and remembers the result.
    pub fn detect() -> Self {
        static FOUND: OnceLock<Features> = OnceLock::new();
        *FOUND.get_or_init(|| {
            let names = names_of_types(Path::new(BTF)).unwrap_or_default();
            let prefers_functions = std::env::var_os(HOOKS).is_some_and(|set| set == "functions");
            let tracepoints = tracepoints_in(&names);
            let mut available = Available { tracepoints, ..Available::default() };
            let mut hooks = Hooks::choose(&available, false);
            // Functions need all types, which takes tens of ms. Read them only if tracepoints do not suffice.
            let is_all = [hooks.absent, hooks.reads, hooks.faults] == [Hook::Tracepoint; 3];
            if !is_all || prefers_functions {
                available.functions = functions();
                hooks = Hooks::choose(&available, prefers_functions);
            }
            Features { btf: !names.is_empty(), hooks, cachestat: sys::has_cachestat() }
        })
    }
}

/// The names of the running kernel's tracepoints; none without type information.
pub fn tracepoints() -> HashSet<String> {
    tracepoints_in(&names_of_types(Path::new(BTF)).unwrap_or_default())
}

/// The tracepoints among the names of types: each has a type `btf_trace_NAME`.
fn tracepoints_in(type_names: &[u8]) -> HashSet<String> {
    let name_at = |at: usize| {
        let rest = &type_names[at + TRACEPOINT_PREFIX.len()..];
        let end = memchr::memchr(0, rest).unwrap_or(rest.len());
        String::from_utf8_lossy(&rest[..end]).into_owned()
    };
    memchr::memmem::find_iter(type_names, TRACEPOINT_PREFIX).map(name_at).collect()
}

/// The functions of [`FUNCTIONS`] that this kernel has with these parameters.
#[cfg(feature = "bpf")]
fn functions() -> HashSet<String> {
    use libbpf_rs::btf::Btf;
    use libbpf_rs::btf::types::{Func, FuncProto};

    let Ok(btf) = Btf::from_path(BTF) else { return HashSet::new() };
    let has = |name: &str, parameters: &[&str]| {
        let function = btf.type_by_name::<Func<'_>>(name)?;
        let prototype = FuncProto::try_from(function.next_type()?).ok()?;
        let found = prototype.iter().map(|parameter| parameter.name.unwrap_or_default());
        Some(found.eq(parameters.iter().copied()))
    };
    let here = FUNCTIONS.iter().filter(|(name, parameters)| has(name, parameters) == Some(true));
    here.map(|(name, _)| (*name).to_owned()).collect()
}

#[cfg(not(feature = "bpf"))]
fn functions() -> HashSet<String> {
    HashSet::new()
}

/// `struct btf_header` (include/uapi/linux/btf.h): magic number, version, flags, its own length, and then offset and
/// length of the types and of the names behind the header, 32 bits each.
const HEADER_BYTES: usize = 24;
const MAGIC: u16 = 0xeb9f;

/// The names of all types, each ended by a zero. Reads a third of the file, which has megabytes.
fn names_of_types(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let mut header = [0; HEADER_BYTES];
    file.read_exact_at(&mut header, 0)?;
    let word = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().expect("4 bytes"));
    if u16::from_ne_bytes([header[0], header[1]]) != MAGIC {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut names = vec![0; word(20) as usize];
    file.read_exact_at(&mut names, u64::from(word(4)) + u64::from(word(16)))?;
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn available(tracepoints: &[&[&str]], functions: &[&[&str]]) -> Available {
        let set = |groups: &[&[&str]]| groups.concat().into_iter().map(str::to_owned).collect();
        Available { tracepoints: set(tracepoints), functions: set(functions) }
    }

    /// What the type information of Debian's kernels names.
    fn linux_6_1() -> Available {
        available(&[&PAGE_LIFE, &BIOS], &[&ABSENT, &[READ_FUNCTION], &FAULT_FUNCTIONS])
    }

    fn linux_6_12() -> Available {
        let tracepoints: [&[&str]; 5] =
            [&PAGE_LIFE, &BIOS, &REQUESTS, &[READ_TRACEPOINT], &FAULT_TRACEPOINTS];
        available(&tracepoints, &[&ABSENT, &[READ_FUNCTION, SPLICE_FUNCTION], &FAULT_FUNCTIONS])
    }

    fn linux_6_18() -> Available {
        let mut available = linux_6_12();
        available.tracepoints.extend(ABSENT.map(str::to_owned));
        available
    }

    #[test]
    fn tracepoints_are_found_by_their_whole_name() {
        let types = b"\0btf_trace_page_cache_sync_ra\0btf_trace_mm_filemap_get_pages_x\0page_cache_async_ra\0";
        let found = tracepoints_in(types);
        assert!(found.contains("page_cache_sync_ra"));
        assert!(!found.contains(READ_TRACEPOINT), "another name begins like it");
        assert!(!found.contains("page_cache_async_ra"), "a function");
        assert!(tracepoints_in(b"").is_empty());
    }

    #[test]
    fn with_all_tracepoints_no_function_is_hooked() {
        let hooks = Hooks::choose(&linux_6_18(), false);
        let Hooks { absent, reads, faults, .. } = hooks;
        assert_eq!([absent, reads, faults], [Hook::Tracepoint; 3]);
        assert!(hooks.disks == DiskHook::Request && !hooks.splices);
        assert!(hooks.can_observe() && hooks.can_drop_behind());
    }

    #[test]
    fn functions_replace_only_the_tracepoints_that_are_missing() {
        let hooks = Hooks::choose(&linux_6_12(), false);
        assert_eq!(hooks.absent, Hook::Function);
        assert_eq!([hooks.reads, hooks.faults], [Hook::Tracepoint; 2]);
        assert!(hooks.disks == DiskHook::Request && !hooks.splices && hooks.can_drop_behind());
    }

    #[test]
    fn without_page_cache_tracepoints_functions_replace_them_all() {
        let hooks = Hooks::choose(&linux_6_1(), false);
        let Hooks { absent, reads, faults, .. } = hooks;
        assert_eq!([absent, reads, faults], [Hook::Function; 3]);
        assert!(hooks.disks == DiskHook::Bio && !hooks.splices && hooks.can_drop_behind());
    }

    #[test]
    fn a_kernel_with_its_own_function_for_splices_has_that_hooked_too() {
        let mut linux_6_8 = linux_6_1();
        linux_6_8.functions.insert(SPLICE_FUNCTION.into());
        assert!(Hooks::choose(&linux_6_8, false).splices);
    }

    #[test]
    fn functions_can_be_preferred_to_tracepoints() {
        let hooks = Hooks::choose(&linux_6_18(), true);
        let Hooks { absent, reads, faults, .. } = hooks;
        assert_eq!([absent, reads, faults], [Hook::Function; 3]);
        assert!(hooks.splices && hooks.disks == DiskHook::Request);
    }

    #[test]
    fn one_hook_of_a_pair_is_not_enough() {
        for missing in ABSENT {
            let mut available = linux_6_1();
            available.functions.remove(missing);
            let hooks = Hooks::choose(&available, false);
            assert_eq!(hooks.absent, Hook::Nothing);
            assert!(!hooks.can_observe() && !hooks.can_drop_behind());
        }
        assert_eq!(Hooks::choose(&Available::default(), true), Hooks::default());
    }

    #[test]
    fn lockdown_matters_only_at_its_strictest() {
        assert!(!is_confidential("") && !is_confidential("none [integrity] confidentiality\n"));
        assert!(is_confidential("none integrity [confidentiality]\n"));
    }

    #[test]
    fn names_are_found_behind_the_types() {
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        // A header of 24 bytes, then 4 bytes of types, 6 of names.
        [24u32, 0, 4, 4, 6].iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        bytes.extend(*b"type\0a\0bc\0");
        let path = tempfile::NamedTempFile::new().expect("a file").into_temp_path();
        std::fs::write(&path, &bytes).expect("written");
        assert_eq!(names_of_types(&path).ok().as_deref(), Some(&b"\0a\0bc\0"[..]));
        std::fs::write(&path, &bytes[..30]).expect("written");
        assert!(names_of_types(&path).is_err(), "cut");
        std::fs::write(&path, vec![0; 64]).expect("written");
        assert!(names_of_types(&path).is_err(), "none");
    }
}
