//! System calls that no library wraps. All of them only look, or only ask for pages.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use readahead::PAGE_BYTES;

/// `cachestat(2)`, since Linux 6.5, the same number on every architecture.
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

/// Pages of `[start, start + pages)` that are cached or being read.
///
/// # Errors
/// `ENOSYS` before Linux 6.5, `EPERM` where the caller may not write to the file.
pub(crate) fn cached_pages(file: BorrowedFd<'_>, start: u64, pages: u64) -> io::Result<u64> {
    Ok(cachestat(file, start, pages)?.cached)
}

/// Pages of `[start, start + pages)` that were reclaimed for want of memory, as far as the kernel still
/// knows. Those that a program dropped, or that were never read, leave no such trace.
///
/// # Errors
/// As [`cached_pages`].
pub(crate) fn evicted_pages(file: BorrowedFd<'_>, start: u64, pages: u64) -> io::Result<u64> {
    Ok(cachestat(file, start, pages)?.evicted)
}

fn cachestat(file: BorrowedFd<'_>, start: u64, pages: u64) -> io::Result<Cachestat> {
    if pages == 0 {
        // For the system call that is the rest of the file.
        return Ok(Cachestat::default());
    }
    let range = CachestatRange { offset: start * PAGE_BYTES, bytes: pages * PAGE_BYTES };
    let mut stat = Cachestat::default();
    // SAFETY: both pointers refer to live values of the layout the system call defines, and the
    // descriptor is open for the borrow's duration.
    let result = unsafe {
        libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &range, &mut stat, 0 as libc::c_uint)
    };
    if result == 0 { Ok(stat) } else { Err(io::Error::last_os_error()) }
}

/// Asks the kernel to read `[start, start + pages)` into the page cache; returns once the requests
/// are submitted, or have found the device's queue full and waited for room.
///
/// # Errors
/// Whatever `readahead(2)` reports; `EINVAL` for a file that has no page cache.
pub(crate) fn readahead(file: BorrowedFd<'_>, start: u64, pages: u64) -> io::Result<()> {
    let offset = (start * PAGE_BYTES) as libc::off64_t;
    // SAFETY: the call takes no pointers, and the descriptor is open.
    let result =
        unsafe { libc::readahead(file.as_raw_fd(), offset, (pages * PAGE_BYTES) as usize) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
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

/// Opens a file of the file system that `mount` lies on by inode number and generation.
///
/// # Errors
/// `ESTALE` if there is no such inode or the file system encodes handles otherwise, `EPERM`
/// without CAP_DAC_READ_SEARCH.
pub(crate) fn open_by_inode(
    mount: BorrowedFd<'_>,
    ino: u32,
    generation: u32,
) -> io::Result<OwnedFd> {
    let mut handle = InodeHandle { bytes: 8, kind: FILEID_INO32_GEN, ino, generation };
    // O_NONBLOCK: never wait for a lease to be broken.
    let flags = libc::O_RDONLY | libc::O_NOATIME | libc::O_CLOEXEC | libc::O_NONBLOCK;
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

/// A duplicate of descriptor `fd` of process `pid`: the same open file, not a new one.
///
/// # Errors
/// `ESRCH` if the process is gone, `EBADF` if it has no such descriptor, `EPERM` without the right
/// to trace it.
pub(crate) fn duplicate_from(pid: u32, fd: i32) -> io::Result<OwnedFd> {
    // SAFETY: neither call takes a pointer; each descriptor returned is owned by nobody else.
    unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        if process < 0 {
            return Err(io::Error::last_os_error());
        }
        let process = OwnedFd::from_raw_fd(process as i32);
        let copy = libc::syscall(libc::SYS_pidfd_getfd, process.as_fd().as_raw_fd(), fd, 0);
        if copy < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(copy as i32))
    }
}

/// CPU time this process has used, in seconds.
pub(crate) fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
