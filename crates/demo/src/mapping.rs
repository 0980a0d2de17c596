//! Maps files, and finds out which of their pages are cached.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use memmap2::{Mmap, MmapOptions};
use patterns::PAGE_BYTES;

/// Maps a file that nobody writes to.
pub(crate) fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the demonstration made the file, and nobody truncates or writes it while a pattern runs. If somebody did,
    // only the reader, a separate process, would end.
    unsafe { MmapOptions::new().map(file) }
}

/// Number of pages of the file in the page cache.
pub(crate) fn resident_pages(file: &File) -> io::Result<usize> {
    Ok(resident(file)?.into_iter().filter(|is_cached| *is_cached).count())
}

/// Whether each page of the file is in the page cache.
///
/// # Errors
/// If it cannot be mapped, such as an empty file.
pub fn resident(file: &File) -> io::Result<Vec<bool>> {
    resident_in(&map(file)?)
}

/// The same for a part of a mapping that begins with a page.
pub(crate) fn resident_in(part: &[u8]) -> io::Result<Vec<bool>> {
    let mut resident = vec![0u8; part.len().div_ceil(PAGE_BYTES as usize)];
    // SAFETY: the vector has a byte for each page of the part, whose mapping outlives the call.
    let result = unsafe {
        libc::mincore(part.as_ptr() as *mut libc::c_void, part.len(), resident.as_mut_ptr())
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(resident.iter().map(|page| page & 1 == 1).collect())
}
