//! The image: a mapped, sparse file in memory.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::sync::RwLock;

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, memfd_create};

/// The disk's contents. Pages that were never written take no memory.
pub(crate) struct Image {
    map: MmapRaw,
    /// Locked shared while bytes are copied. As on a real disk, a write and a read of the same bytes at the same time
    /// may give either content; but our threads never see a torn one.
    copying: RwLock<()>,
}

impl Image {
    pub(crate) fn new(bytes: u64) -> io::Result<Self> {
        let file = File::from(memfd_create("bowwave-lab", MemfdFlags::CLOEXEC)?);
        file.set_len(bytes)?;
        let map = MmapOptions::new().len(bytes as usize).map_raw(&file)?;
        Ok(Image { map, copying: RwLock::new(()) })
    }

    pub(crate) fn len(&self) -> u64 {
        self.map.len() as u64
    }

    /// Passes the bytes of `[offset, offset + bytes)`, cut at the end, to `consume`.
    pub(crate) fn read(&self, offset: u64, bytes: u64, consume: impl FnOnce(&[u8])) {
        let start = offset.min(self.len()) as usize;
        let count = bytes.min(self.len() - start as u64) as usize;
        let _shared = self.copying.read();
        // SAFETY: the range lies inside the map, which lives as long as `self` and belongs to a
        // memfd that nobody else has; writers are kept out by the lock.
        consume(unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(start), count) });
    }

    /// Writes `data` at `offset`, cut at the end. Returns the number of bytes written.
    pub(crate) fn write(&self, offset: u64, data: &[u8]) -> usize {
        let start = offset.min(self.len()) as usize;
        let count = data.len().min(self.len() as usize - start);
        let _exclusive = self.copying.write();
        // SAFETY: as above; the exclusive lock keeps readers and other writers out, and `data`
        // is memory of the caller, outside the map.
        unsafe {
            std::ptr::copy_nonoverlapping(data.as_ptr(), self.map.as_mut_ptr().add(start), count);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_the_rest_is_zero() {
        let image = Image::new(1 << 20).expect("memory");
        assert_eq!(image.write((1 << 20) - 2, b"abc"), 2, "cut at the end");
        image.read((1 << 20) - 4, 100, |bytes| assert_eq!(bytes, b"\0\0ab"));
        image.read(2 << 20, 10, |bytes| assert!(bytes.is_empty()));
    }
}
