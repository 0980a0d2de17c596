//! Who opens what, as fanotify(7) tells, which knows nothing of bowwave.
#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::stage::skipped;

pub(crate) struct Opened(File);

impl Opened {
    /// What is opened from now on, on the file systems that these paths lie on; `None` where the kernel does not
    /// tell.
    pub(crate) fn on_file_systems_of(paths: &[&Path]) -> Option<Self> {
        let flags = libc::FAN_CLASS_NOTIF | libc::FAN_NONBLOCK | libc::FAN_UNLIMITED_QUEUE;
        let events = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY;
        // SAFETY: the call takes numbers only, and nobody else owns the descriptor that it gives.
        let group = unsafe {
            let fd = libc::fanotify_init(flags, events as u32);
            if fd < 0 {
                return skipped(&format!("no fanotify: {}", std::io::Error::last_os_error()));
            }
            File::from_raw_fd(fd)
        };
        for path in paths {
            let path = CString::new(path.as_os_str().as_bytes()).expect("no NUL");
            let how = libc::FAN_MARK_ADD | libc::FAN_MARK_FILESYSTEM;
            // SAFETY: the path lives as long as the call.
            let marked = unsafe {
                let fd = group.as_raw_fd();
                libc::fanotify_mark(fd, how, libc::FAN_OPEN, libc::AT_FDCWD, path.as_ptr())
            };
            assert_eq!(marked, 0, "{path:?}: {}", std::io::Error::last_os_error());
        }
        Some(Opened(group))
    }

    /// The processes that have opened anything but regular files and folders.
    pub(crate) fn other_than_regular(&mut self) -> BTreeSet<u32> {
        const HEAD: usize = size_of::<libc::fanotify_event_metadata>();
        let mut processes = BTreeSet::new();
        let mut bytes = vec![0; 256 * HEAD];
        while let Ok(read @ 1..) = self.0.read(&mut bytes) {
            for event in bytes[..read].chunks_exact(HEAD) {
                // SAFETY: the kernel has filled in as much; any bits are numbers.
                let event: libc::fanotify_event_metadata =
                    unsafe { std::ptr::read_unaligned(event.as_ptr().cast()) };
                assert!(event.fd >= 0, "events were lost");
                // SAFETY: the descriptor comes with the event, and is nobody else's.
                let file = unsafe { File::from_raw_fd(event.fd) };
                let about = file.metadata().expect("it is open");
                if !about.is_file() && !about.is_dir() {
                    processes.insert(event.pid as u32);
                }
            }
        }
        processes
    }
}
