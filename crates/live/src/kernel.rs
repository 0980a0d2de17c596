//! What this kernel offers, decided in one place.
//!
//! | hook | tells | since |
//! |---|---|---|
//! | `page_cache_sync_ra`, `page_cache_async_ra` | a page was absent; the kernel's own mark was touched | 6.18 |
//! | `mm_filemap_get_pages`, `mm_filemap_fault`, `mm_filemap_map_pages` | reads, faults: our marks | 6.12 |
//! | `mm_filemap_add_to_page_cache`, `writeback_dirty_folio`, `filemap_set_wb_err` | drop-behind: who brought a page, who wrote it | 5.18 |
//! | `block_io_start`, `block_io_done` | what is in flight, how long others wait | 6.5 |
//! | `cachestat(2)` | what is cached | 6.5 |
//!
//! A tracepoint is there if the kernel's type information names it; that needs no privilege and no
//! tracefs. Kernels without the first group have the functions behind them, which fentry can
//! reach; the source that uses them will be chosen here.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::OnceLock;

use linux::sys;

/// The kernel's own type information.
pub const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Begins the name of each tracepoint's type.
const PREFIX: &[u8] = b"btf_trace_";

/// What this kernel offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// The kernel carries its type information.
    pub btf: bool,
    /// `readahead:page_cache_sync_ra`.
    pub sync_ra: bool,
    /// `readahead:page_cache_async_ra`.
    pub async_ra: bool,
    /// `filemap:mm_filemap_get_pages`.
    pub get_pages: bool,
    /// `filemap:mm_filemap_fault`.
    pub fault: bool,
    /// `filemap:mm_filemap_map_pages`.
    pub map_pages: bool,
    /// `block:block_io_start`, `block_io_done` and `block_rq_merge`.
    pub block_io: bool,
    /// `filemap:mm_filemap_add_to_page_cache` and `writeback:writeback_dirty_folio`.
    pub page_life: bool,
    /// `filemap:filemap_set_wb_err`.
    pub write_error: bool,
    /// `cachestat(2)`.
    pub cachestat: bool,
}

impl Features {
    /// Looks at the running kernel, once.
    pub fn detect() -> Self {
        static FOUND: OnceLock<Features> = OnceLock::new();
        *FOUND.get_or_init(|| {
            let names = names_of_types(Path::new(BTF)).unwrap_or_default();
            Features { cachestat: has_cachestat(), ..Self::in_names(&names) }
        })
    }

    /// What the names of types tell: each tracepoint has a type `btf_trace_NAME`.
    fn in_names(all: &[u8]) -> Self {
        let names = all.split(|byte| *byte == 0).filter_map(|text| text.strip_prefix(PREFIX));
        let names: HashSet<&[u8]> = names.collect();
        let has = |name: &str| names.contains(name.as_bytes());
        Features {
            btf: !all.is_empty(),
            sync_ra: has("page_cache_sync_ra"),
            async_ra: has("page_cache_async_ra"),
            get_pages: has("mm_filemap_get_pages"),
            fault: has("mm_filemap_fault"),
            map_pages: has("mm_filemap_map_pages"),
            block_io: has("block_io_start") && has("block_io_done") && has("block_rq_merge"),
            page_life: has("mm_filemap_add_to_page_cache") && has("writeback_dirty_folio"),
            write_error: has("filemap_set_wb_err"),
            cachestat: false,
        }
    }

    /// What is needed to drop pages behind streams: to hear of pages that enter the cache, of their
    /// uses, and of writing that failed.
    pub fn can_drop_behind(&self) -> bool {
        self.can_observe() && self.page_life && self.write_error && self.cachestat
    }

    /// What is needed to manage reads at all: events of absent pages, and of marks.
    pub fn can_observe(&self) -> bool {
        self.btf && self.sync_ra && self.get_pages
    }
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

fn has_cachestat() -> bool {
    let Ok(own) = File::open("/proc/self/exe") else { return false };
    let answer = sys::cached_pages(&own, 0, 1);
    // Refused is not missing.
    !matches!(answer, Err(error) if error.raw_os_error() == Some(libc::ENOSYS)
        || error.kind() == io::ErrorKind::Unsupported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracepoints_are_found_by_their_whole_name() {
        let types = b"\0btf_trace_page_cache_sync_ra\0btf_trace_mm_filemap_get_pages_x\0";
        let features = Features::in_names(types);
        assert!(features.btf && features.sync_ra);
        assert!(!features.get_pages, "another name begins like it");
        assert!(!features.can_observe());
        assert_eq!(Features::in_names(b""), Features::default());
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
