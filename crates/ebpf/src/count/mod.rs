//! Counts how programs read files, for `bowwave top`. Nothing is read ahead or changed.
//!
//! ```text
//!   kernel                                  this process
//!   programs --> `counts`, `stalls`  -----> Counting::sample      totals of each process and file
//!   programs --> `names`, `processes` ----> Counting::describe    what these are called
//!   programs --> `seen` (shared memory) --> Counting::seen        how often programs ran for cached pages
//!   programs <-- attached or not <--------- Counting::see_cached
//! ```
//!
//! The programs are in programs/count.bpf.c. The kernel removes them when the process ends, however it ends.

#[cfg(feature = "bpf")]
mod bpf;
#[cfg(any(feature = "bpf", test))]
mod decode;

#[cfg(feature = "bpf")]
pub use bpf::Counting;
#[cfg(not(feature = "bpf"))]
pub use without::Counting;

/// What the kernel's tracepoints tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sees {
    /// Reads: `mm_filemap_get_pages` (Linux 6.12).
    pub reads: bool,
    /// Page faults: `mm_filemap_fault`, `mm_filemap_map_pages` (6.12).
    pub faults: bool,
    /// Pages that a read lacks: `page_cache_sync_ra`, `page_cache_async_ra` (6.18).
    pub missing: bool,
}

/// A build that has no eBPF part.
#[cfg(not(feature = "bpf"))]
mod without {
    use linux::mount_points::MountPoints;
    use top::{Key, Names, Sample};

    use super::Sees;
    use crate::error::ObserveError;

    /// Cannot be made.
    #[derive(Debug)]
    pub enum Counting {}

    #[allow(missing_docs, clippy::missing_errors_doc)]
    impl Counting {
        pub fn open() -> Result<Self, ObserveError> {
            Err(ObserveError::NotBuilt)
        }

        pub fn sees(&self) -> Sees {
            match *self {}
        }

        pub fn see_cached(&mut self, _: bool) -> Result<(), ObserveError> {
            match *self {}
        }

        pub fn seen(&self) -> Vec<u64> {
            match *self {}
        }

        pub fn sample(&self) -> Result<Sample, ObserveError> {
            match *self {}
        }

        pub fn describe(&self, _: Key, _: &mut Names, _: &mut MountPoints) {
            match *self {}
        }

        pub fn forget(&self, _: &[Key], _: &Sample) -> bool {
            match *self {}
        }
    }
}
