//! System calls that no library wraps. None writes data to a file; those for drop-behind release
//! clean pages or start writing dirty ones.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;

use readahead::PAGE_BYTES;
use rustix::fs::{Advice, fadvise};

/// `cachestat(2)`, since Linux 6.5, has the same number on every architecture.
const SYS_CACHESTAT: libc::c_long = 451;

#[repr(C)]
struct CachestatRange {
    offset: u64,
    bytes: u64,
}

#[repr(C)]
#[derive(Default)]
struct Cachestat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Whether this kernel has `cachestat(2)`; found out once.
pub fn has_cachestat() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let Ok(own) = File::open("/proc/self/exe") else { return false };
        // Refused is not missing.
        !matches!(cachestat(&own, 0, 1), Err(error) if error.raw_os_error() == Some(libc::ENOSYS)
            || error.kind() == io::ErrorKind::Unsupported)
    })
}

/// Counts the pages of `[start, start + pages)` that are cached; with `cachestat(2)`, also those being read.
///
/// # Errors
/// `EPERM` if the caller may not write to the file.
pub fn cached_pages(file: impl AsFd, start: u64, pages: u64) -> io::Result<u64> {
    Ok(cached_and_unwritten(file, start, pages)?.0)
}

/// Counts, within `[start, start + pages)`, the cached pages and those not on the disk yet, which
/// are dirty or being written. Without `cachestat(2)` the latter cannot be told and count as none.
///
/// # Errors
/// As [`cached_pages`].
pub fn cached_and_unwritten(file: impl AsFd, start: u64, pages: u64) -> io::Result<(u64, u64)> {
    if !has_cachestat() {
        return Ok((resident_pages(file, start, pages)?, 0));
    }
    let stat = cachestat(file, start, pages)?;
    Ok((stat.cached, stat.dirty + stat.writeback))
}

/// Counts the cached pages of `[start, start + pages)` by `mincore(2)`, on a mapping through which nothing is accessed.
fn resident_pages(file: impl AsFd, start: u64, pages: u64) -> io::Result<u64> {
    /// Pages of one call: 64 MiB.
    const AT_ONCE: u64 = 16 << 10;
    let mut resident = vec![0u8; pages.min(AT_ONCE) as usize];
    let mut cached = 0;
    let mut at = start;
    while at < start + pages {
        let count = (start + pages - at).min(AT_ONCE);
        let bytes = (count * PAGE_BYTES) as usize;
        let offset = (at * PAGE_BYTES) as libc::off64_t;
        // SAFETY: the kernel chooses an address where nothing is; the mapping lasts until `munmap` below, nobody else
        // knows of it, and nothing reads or writes through it. `mincore` writes a byte for each of its pages, and
        // the vector has as many.
        let asked = unsafe {
            let (file, none) = (file.as_fd().as_raw_fd(), std::ptr::null_mut());
            let map = libc::mmap64(none, bytes, libc::PROT_NONE, libc::MAP_SHARED, file, offset);
            if map == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let result = libc::mincore(map, bytes, resident.as_mut_ptr());
            let error = io::Error::last_os_error();
            libc::munmap(map, bytes);
            if result == 0 { Ok(()) } else { Err(error) }
        };
        asked?;
        cached += resident[..count as usize].iter().filter(|page| *page & 1 == 1).count() as u64;
        at += count;
    }
    Ok(cached)
}

fn cachestat(file: impl AsFd, start: u64, pages: u64) -> io::Result<Cachestat> {
    if pages == 0 {
        // For the system call, length 0 means the rest of the file.
        return Ok(Cachestat::default());
    }
    let range = CachestatRange { offset: start * PAGE_BYTES, bytes: pages * PAGE_BYTES };
    let mut stat = Cachestat::default();
    // SAFETY: both pointers refer to live values of the layout the system call defines, and the
    // descriptor is open for the borrow's duration.
    let result = unsafe {
        libc::syscall(SYS_CACHESTAT, file.as_fd().as_raw_fd(), &range, &mut stat, 0 as libc::c_uint)
    };
    if result == 0 { Ok(stat) } else { Err(io::Error::last_os_error()) }
}

/// Asks the kernel to read `[start, start + pages)` into the page cache. Returns once the requests
/// are submitted; waits if the device's queue is full.
///
/// # Errors
/// Whatever `readahead(2)` reports; `EINVAL` for a file that has no page cache.
pub fn readahead(file: impl AsFd, start: u64, pages: u64) -> io::Result<()> {
    let offset = (start * PAGE_BYTES) as libc::off64_t;
    // SAFETY: the call takes no pointers, and the descriptor is open.
    let result =
        unsafe { libc::readahead(file.as_fd().as_raw_fd(), offset, (pages * PAGE_BYTES) as usize) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Starts writing the dirty pages of `[start, start + pages)`. Waits only if the device's queue is
/// full.
///
/// This call reports no write errors; programs still receive them. The kernel keeps an error until
/// each file that was open then has asked for it (`fsync`, or a waiting `sync_file_range`), and
/// this call never asks.
///
/// # Errors
/// Whatever `sync_file_range(2)` reports; `ESPIPE` if it is no file.
pub fn write_out(file: impl AsFd, start: u64, pages: u64) -> io::Result<()> {
    let (offset, bytes) = ((start * PAGE_BYTES) as i64, (pages * PAGE_BYTES) as i64);
    // SAFETY: the call takes no pointers, and the descriptor is open.
    let result = unsafe {
        libc::sync_file_range(file.as_fd().as_raw_fd(), offset, bytes, libc::SYNC_FILE_RANGE_WRITE)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Drops the clean, unmapped, unused pages of `[start, start + pages)`. The kernel would first
/// write dirty ones, so do not pass any.
///
/// # Errors
/// Whatever `posix_fadvise(2)` reports.
pub fn drop_pages(file: impl AsFd, start: u64, pages: u64) -> io::Result<()> {
    // For the system call, length 0 means the rest of the file.
    let Some(bytes) = NonZeroU64::new(pages * PAGE_BYTES) else { return Ok(()) };
    Ok(fadvise(file, start * PAGE_BYTES, Some(bytes), Advice::DontNeed)?)
}

/// A file handle as ext2/3/4 and xfs encode it: inode number and generation, 32 bits each.
#[repr(C)]
struct InodeHandle {
    bytes: libc::c_uint,
    kind: libc::c_int,
    ino: u32,
    generation: u32,
}

/// `FILEID_INO32_GEN` of the kernel's exportfs.
const FILEID_INO32_GEN: libc::c_int = 1;

/// Reaches a file of the file system that `mount` is on by inode number and generation, without opening it
/// (`O_PATH`).
///
/// # Errors
/// `ESTALE` if there is no such inode or the file system uses other handles, `EPERM` without
/// CAP_DAC_READ_SEARCH.
pub(crate) fn reach_by_inode(
    mount: BorrowedFd<'_>,
    ino: u32,
    generation: u32,
) -> io::Result<OwnedFd> {
    let mut handle = InodeHandle { bytes: 8, kind: FILEID_INO32_GEN, ino, generation };
    let flags = libc::O_PATH | libc::O_CLOEXEC;
    // SAFETY: the handle is a live `struct file_handle` with `bytes` bytes of payload, and the
    // descriptor returned is owned by nobody else.
    unsafe {
        let fd = libc::syscall(
            libc::SYS_open_by_handle_at,
            mount.as_raw_fd(),
            std::ptr::from_mut(&mut handle),
            flags,
        );
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd as i32))
    }
}

/// Whether the calling thread may open a file for reading that it has reached (`O_PATH`).
///
/// # Errors
/// `EACCES` if it may not.
pub(crate) fn may_read(file: impl AsFd) -> io::Result<()> {
    let flags = libc::AT_EACCESS | libc::AT_EMPTY_PATH;
    // SAFETY: the empty path is a literal, and the descriptor is open.
    let result = unsafe {
        let fd = file.as_fd().as_raw_fd();
        libc::syscall(libc::SYS_faccessat2, fd, c"".as_ptr(), libc::R_OK, flags)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// `FS_IOC_GETVERSION`: `_IOR('v', 1, long)`, whose number holds the size of a `long`.
const FS_IOC_GETVERSION: libc::Ioctl =
    (2 << 30 | (std::mem::size_of::<libc::c_long>() << 16) | 0x7601) as libc::Ioctl;

/// The generation of a file's inode.
///
/// # Errors
/// `ENOTTY` where the file system tells none.
pub fn generation(file: impl AsFd) -> io::Result<u32> {
    // The kernel writes an `int`, though the number of the call has room for a `long`.
    let mut generation: [libc::c_int; 2] = [0; 2];
    // SAFETY: the pointer leads to a live value that is no smaller than what is written.
    let result =
        unsafe { libc::ioctl(file.as_fd().as_raw_fd(), FS_IOC_GETVERSION, &mut generation) };
    if result == 0 { Ok(generation[0] as u32) } else { Err(io::Error::last_os_error()) }
}

/// `struct fiemap` with room for one extent.
#[repr(C)]
#[derive(Default)]
struct Fiemap {
    start: u64,
    bytes: u64,
    flags: u32,
    mapped: u32,
    room: u32,
    reserved: u32,
    extent: FiemapExtent,
}

#[repr(C)]
#[derive(Default)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    bytes: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_too: [u32; 3],
}

/// `FS_IOC_FIEMAP`: `_IOWR('f', 11, struct fiemap)`, without its extents.
const FS_IOC_FIEMAP: libc::Ioctl = (3 << 30 | 32 << 16 | 0x660b) as libc::Ioctl;

/// Where a page of a file lies on its device, in bytes; `None` if it has no place or the file system does not tell.
pub fn place_of(file: impl AsFd, page: u64) -> Option<u64> {
    let start = page * PAGE_BYTES;
    let mut map = Fiemap { start, bytes: PAGE_BYTES, room: 1, ..Fiemap::default() };
    // SAFETY: the pointer leads to a live value with room for the one extent it announces.
    let result = unsafe { libc::ioctl(file.as_fd().as_raw_fd(), FS_IOC_FIEMAP, &mut map) };
    let into = start.saturating_sub(map.extent.logical);
    (result == 0 && map.mapped > 0).then(|| map.extent.physical.saturating_add(into))
}

/// Removes parts of a process's memory, `(address, bytes)`, from its page tables; see
/// [`Process::page_out`](crate::process::Process::page_out).
pub(crate) fn page_out(process: BorrowedFd<'_>, parts: &[(u64, u64)]) -> io::Result<()> {
    let parts: Vec<libc::iovec> = parts
        .iter()
        .map(|&(address, bytes)| libc::iovec {
            iov_base: address as *mut libc::c_void,
            iov_len: bytes as usize,
        })
        .collect();
    // SAFETY: the vector is live and has the length given. Its addresses belong to another process
    // and are not dereferenced here.
    let result = unsafe {
        libc::syscall(
            libc::SYS_process_madvise,
            process.as_raw_fd(),
            parts.as_ptr(),
            parts.len(),
            libc::MADV_PAGEOUT,
            0 as libc::c_uint,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// `KCMP_FILE` compares the open files of two descriptors.
const KCMP_FILE: i32 = 0;

/// Whether two descriptors of process `pid` share one open file. Returns false if the kernel does
/// not tell.
pub(crate) fn is_one_open_file(pid: u32, one: i32, other: i32) -> bool {
    // SAFETY: the call takes numbers only.
    unsafe { libc::syscall(libc::SYS_kcmp, pid, pid, KCMP_FILE, one, other) == 0 }
}

/// Whether a descriptor of process `pid` shares its open file with `file`. Returns false if the
/// kernel does not tell or the process has ended.
pub fn has_open_file(pid: u32, number: i32, file: impl AsFd) -> bool {
    let (own, file) = (std::process::id(), file.as_fd().as_raw_fd());
    // SAFETY: the call takes numbers only.
    unsafe { libc::syscall(libc::SYS_kcmp, own, pid, KCMP_FILE, file, number) == 0 }
}

/// CPU time used by this process, in seconds.
pub fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// CPU time used by the calling thread, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The time in nanoseconds on the clock that stamps events.
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The size of this machine's pages, in bytes.
pub fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use super::*;

    #[test]
    fn a_mapping_tells_the_same_cached_pages_as_the_system_call() {
        let mut file = tempfile::tempfile_in("/var/tmp").expect("a file");
        file.write_all(&vec![1; 10 * PAGE_BYTES as usize]).expect("room for ten pages");
        file.rewind().expect("a file");
        assert_eq!(resident_pages(&file, 0, 10).expect("it can be mapped"), 10);
        assert_eq!(resident_pages(&file, 8, 100).expect("beyond its end there is nothing"), 2);
        assert_eq!(resident_pages(&file, 3, 0).expect("nothing is asked"), 0);
        if has_cachestat() {
            assert_eq!(cached_pages(&file, 8, 100).expect("it is ours"), 2);
        }
    }
}
