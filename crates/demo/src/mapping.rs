//! Reading through a mapping, and asking which of its pages are cached.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use memmap2::{Mmap, MmapOptions};

const PAGE_BYTES: usize = 4096;

/// Maps a file that nobody writes to.
pub(crate) fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the demonstration made the file, and nobody truncates or writes it while a pattern
    // runs; were it done all the same, the reader, a process of its own, would end.
    unsafe { MmapOptions::new().map(file) }
}

/// Pages of the file that are in the page cache.
pub(crate) fn resident_pages(file: &File) -> io::Result<usize> {
    let map = map(file)?;
    let mut resident = vec![0u8; map.len().div_ceil(PAGE_BYTES)];
    // SAFETY: the vector has a byte for each page of the mapping, which outlives the call.
    let result = unsafe {
        libc::mincore(map.as_ptr() as *mut libc::c_void, map.len(), resident.as_mut_ptr())
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(resident.iter().filter(|page| **page & 1 == 1).count())
}
