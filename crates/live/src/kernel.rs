//! What this kernel offers, and which of its hooks are used: decided in one place.
//!
//! | event | tracepoint | since | else |
//! |---|---|---|---|
//! | a page was absent; the kernel's own mark was touched | `page_cache_sync_ra`, `page_cache_async_ra` | 6.18 | the functions of these names |
//! | a read | `mm_filemap_get_pages` | 6.12 | `filemap_read`, `filemap_splice_read` |
//! | a fault, mapped pages | `mm_filemap_fault`, `mm_filemap_map_pages` | 6.12 | `filemap_fault`, `filemap_map_pages` |
//! | a page came into the cache, was written, could not be | `mm_filemap_add_to_page_cache`, `writeback_dirty_folio`, `filemap_set_wb_err` | 5.18 | nothing: no drop-behind |
//! | a read of a disk begins and ends | `block_io_start`, `block_io_done` | 6.5 | `block_getrq`, `block_rq_complete` |
//!
//! The kernel's type information decides, not its version, since distributions carry features back. A tracepoint is
//! there if a type has its name, which needs no privilege and no tracefs. A function is there if it has the
//! parameters that our programs read.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::OnceLock;

use linux::sys;

/// The kernel's own type information.
pub const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Set to `functions`, functions are used where there are tracepoints as well, so that the two can be compared.
pub const HOOKS: &str = "BOWWAVE_HOOKS";

/// Begins the name of each tracepoint's type.
const PREFIX: &[u8] = b"btf_trace_";

/// Says how far the kernel is locked down; the choice stands in brackets.
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";

/// Whether this kernel lets no program look into its memory.
pub fn is_locked_down() -> bool {
    is_confidential(&std::fs::read_to_string(LOCKDOWN).unwrap_or_default())
}

fn is_confidential(setting: &str) -> bool {
    setting.contains("[confidentiality]")
}

/// What a kernel has that a program can be attached to.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// Tracepoints, by name.
    pub tracepoints: HashSet<String>,
    /// Functions, by name, that have the parameters that our programs read.
    pub functions: HashSet<String>,
}

impl Offer {
    fn has_tracepoints(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.tracepoints.contains(*name))
    }

    fn has_functions(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.functions.contains(*name))
    }
}

/// How events of one kind are seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hook {
    /// At tracepoints.
    Tracepoint,
    /// Where the kernel's functions are called or return (fentry, fexit).
    Function,
    /// Not at all.
    #[default]
    Nothing,
}

/// How the reads of disks are seen.
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

/// The hooks that are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Pages that are absent, and the kernel's own marks.
    pub absent: Hook,
    /// Reads, for our marks.
    pub reads: Hook,
    /// What is spliced does not pass through the function that reads.
    pub splices: bool,
    /// Faults, and pages that are mapped around them.
    pub faults: Hook,
    /// Reads of disks.
    pub disks: DiskHook,
    /// Pages that enter the cache, are written, could not be written.
    pub page_life: bool,
}

const ABSENT: [&str; 2] = ["page_cache_sync_ra", "page_cache_async_ra"];
const READS: &str = "mm_filemap_get_pages";
const READING: &str = "filemap_read";
const SPLICING: &str = "filemap_splice_read";
const FAULTS: [&str; 2] = ["mm_filemap_fault", "mm_filemap_map_pages"];
const FAULTING: [&str; 2] = ["filemap_fault", "filemap_map_pages"];
const PAGE_LIFE: [&str; 3] =
    ["mm_filemap_add_to_page_cache", "writeback_dirty_folio", "filemap_set_wb_err"];
const REQUESTS: [&str; 3] = ["block_io_start", "block_io_done", "block_rq_merge"];
const BIOS: [&str; 3] = ["block_getrq", "block_rq_complete", "block_rq_merge"];

/// The functions that our programs can be attached to, with the parameters that these read (include/linux/pagemap.h,
/// fs.h and mm.h of Linux 6.1 to 7.3).
#[cfg(feature = "bpf")]
const FUNCTIONS: [(&str, &[&str]); 6] = [
    (ABSENT[0], &["ractl", "req_count"]),
    (ABSENT[1], &["ractl", "folio", "req_count"]),
    (READING, &["iocb", "iter", "already_read"]),
    (SPLICING, &["in", "ppos", "pipe", "len", "flags"]),
    (FAULTING[0], &["vmf"]),
    (FAULTING[1], &["vmf", "start_pgoff", "end_pgoff"]),
];

impl Hooks {
    /// The best that a kernel offers: tracepoints, unless functions are preferred, for a comparison.
    pub fn choose(offer: &Offer, prefers_functions: bool) -> Self {
        let choose = |tracepoints: &[&str], functions: &[&str]| {
            let (has_tracepoints, has_functions) =
                (offer.has_tracepoints(tracepoints), offer.has_functions(functions));
            match () {
                () if has_functions && (prefers_functions || !has_tracepoints) => Hook::Function,
                () if has_tracepoints => Hook::Tracepoint,
                () => Hook::Nothing,
            }
        };
        let reads = choose(&[READS], &[READING]);
        Hooks {
            absent: choose(&ABSENT, &ABSENT),
            reads,
            splices: reads == Hook::Function && offer.has_functions(&[SPLICING]),
            faults: choose(&FAULTS, &FAULTING),
            disks: match () {
                () if offer.has_tracepoints(&REQUESTS) => DiskHook::Request,
                () if offer.has_tracepoints(&BIOS) => DiskHook::Bio,
                () => DiskHook::Nothing,
            },
            page_life: offer.has_tracepoints(&PAGE_LIFE),
        }
    }

    /// What is needed to manage reads at all: events of absent pages, and of marks.
    pub fn can_observe(&self) -> bool {
        self.absent != Hook::Nothing && self.reads != Hook::Nothing
    }

    /// What is needed to drop pages behind streams: to hear of pages that enter the cache, of their uses, and of
    /// writing that failed.
    pub fn can_drop_behind(&self) -> bool {
        self.can_observe() && self.page_life
    }
}

/// For people: how each kind of event is seen.
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
    /// The kernel carries its type information.
    pub btf: bool,
    /// The hooks that are used.
    pub hooks: Hooks,
    /// `cachestat(2)`.
    pub cachestat: bool,
}

impl Features {
    /// Looks at the running kernel, once.
    pub fn detect() -> Self {
        static FOUND: OnceLock<Features> = OnceLock::new();
        *FOUND.get_or_init(|| {
            let names = names_of_types(Path::new(BTF)).unwrap_or_default();
            let prefers_functions = std::env::var_os(HOOKS).is_some_and(|set| set == "functions");
            let mut offer = Offer { tracepoints: tracepoints_in(&names), ..Offer::default() };
            let mut hooks = Hooks::choose(&offer, false);
            // Reading all types takes tens of milliseconds, so only where their names do not answer.
            let is_all = [hooks.absent, hooks.reads, hooks.faults] == [Hook::Tracepoint; 3];
            if !is_all || prefers_functions {
                offer.functions = functions();
                hooks = Hooks::choose(&offer, prefers_functions);
            }
            Features { btf: !names.is_empty(), hooks, cachestat: sys::has_cachestat() }
        })
    }
}

/// What the names of types tell: each tracepoint has a type `btf_trace_NAME`.
fn tracepoints_in(names: &[u8]) -> HashSet<String> {
    let names = names.split(|byte| *byte == 0).filter_map(|text| text.strip_prefix(PREFIX));
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
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

/// The header of type information, up to where the names are: a magic number, version, flags, its own
/// length, and offset and length of types and names behind it, 32 bits each.
const HEADER_BYTES: usize = 24;
const MAGIC: u16 = 0xeb9f;

/// The names, each ended by a zero: a third of the whole, which is megabytes.
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

    fn offer(tracepoints: &[&[&str]], functions: &[&[&str]]) -> Offer {
        let set = |groups: &[&[&str]]| groups.concat().into_iter().map(str::to_owned).collect();
        Offer { tracepoints: set(tracepoints), functions: set(functions) }
    }

    /// What the type information of Debian's kernels names.
    fn linux_6_1() -> Offer {
        offer(&[&PAGE_LIFE, &BIOS], &[&ABSENT, &[READING], &FAULTING])
    }

    fn linux_6_12() -> Offer {
        let tracepoints: [&[&str]; 5] = [&PAGE_LIFE, &BIOS, &REQUESTS, &[READS], &FAULTS];
        offer(&tracepoints, &[&ABSENT, &[READING, SPLICING], &FAULTING])
    }

    fn linux_6_18() -> Offer {
        let mut offer = linux_6_12();
        offer.tracepoints.extend(ABSENT.map(str::to_owned));
        offer
    }

    #[test]
    fn tracepoints_are_found_by_their_whole_name() {
        let types = b"\0btf_trace_page_cache_sync_ra\0btf_trace_mm_filemap_get_pages_x\0page_cache_async_ra\0";
        let found = tracepoints_in(types);
        assert!(found.contains("page_cache_sync_ra"));
        assert!(!found.contains(READS), "another name begins like it");
        assert!(!found.contains("page_cache_async_ra"), "a function");
        assert!(tracepoints_in(b"").is_empty());
    }

    #[test]
    fn where_there_are_all_tracepoints_nothing_else_is_used() {
        let hooks = Hooks::choose(&linux_6_18(), false);
        let Hooks { absent, reads, faults, .. } = hooks;
        assert_eq!([absent, reads, faults], [Hook::Tracepoint; 3]);
        assert!(hooks.disks == DiskHook::Request && !hooks.splices);
        assert!(hooks.can_observe() && hooks.can_drop_behind());
    }

    #[test]
    fn functions_stand_in_for_the_tracepoints_that_are_missing_and_for_no_others() {
        let hooks = Hooks::choose(&linux_6_12(), false);
        assert_eq!(hooks.absent, Hook::Function);
        assert_eq!([hooks.reads, hooks.faults], [Hook::Tracepoint; 2]);
        assert!(hooks.disks == DiskHook::Request && !hooks.splices && hooks.can_drop_behind());
    }

    #[test]
    fn before_there_were_tracepoints_functions_do_all() {
        let hooks = Hooks::choose(&linux_6_1(), false);
        let Hooks { absent, reads, faults, .. } = hooks;
        assert_eq!([absent, reads, faults], [Hook::Function; 3]);
        assert!(hooks.disks == DiskHook::Bio && !hooks.splices && hooks.can_drop_behind());
    }

    #[test]
    fn where_reading_goes_around_the_function_splices_are_seen_too() {
        let mut linux_6_8 = linux_6_1();
        linux_6_8.functions.insert(SPLICING.into());
        assert!(Hooks::choose(&linux_6_8, false).splices);
    }

    #[test]
    fn for_a_comparison_functions_are_used_where_there_are_tracepoints() {
        let hooks = Hooks::choose(&linux_6_18(), true);
        let Hooks { absent, reads, faults, .. } = hooks;
        assert_eq!([absent, reads, faults], [Hook::Function; 3]);
        assert!(hooks.splices && hooks.disks == DiskHook::Request);
    }

    #[test]
    fn one_of_two_that_belong_together_is_nothing() {
        for missing in ABSENT {
            let mut offer = linux_6_1();
            offer.functions.remove(missing);
            let hooks = Hooks::choose(&offer, false);
            assert_eq!(hooks.absent, Hook::Nothing);
            assert!(!hooks.can_observe() && !hooks.can_drop_behind());
        }
        assert_eq!(Hooks::choose(&Offer::default(), true), Hooks::default());
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
