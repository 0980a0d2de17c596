//! A part of a file, mapped so that writes reach the file.
#![allow(unsafe_code)]

use std::fs::File;

use memmap2::{MmapMut, MmapOptions};

/// Maps `bytes` bytes from `offset` on, which is a multiple of the page size.
pub(crate) fn mapped(file: &File, offset: u64, bytes: usize) -> MmapMut {
    // SAFETY: one thread works on this file, and it truncates nothing while the mapping is there; nobody else has the
    // file open for writing.
    unsafe { MmapOptions::new().offset(offset).len(bytes).map_mut(file) }.expect("it can be mapped")
}
