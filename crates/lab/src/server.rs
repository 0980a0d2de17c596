//! The server: a FUSE file system with three files.
//!
//! | file | meaning |
//! |---|---|
//! | `disk` | the image; reads and writes take what the model says |
//! | `status` | the counters, as JSON |
//! | `control` | write `fast` to switch delays and faults off (while files are prepared), `timed` to switch them on, `faults FAULT...` to have these faults and no others |

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyWrite, Request, WriteFlags,
};

use crate::control::Order;
use crate::error::LabError;
use crate::fault::{Fault, Faults, Kind};
use crate::injected::Injected;
use crate::map::Image;
use crate::pacing::Pacing;
use crate::real_time::take_precedence;
use crate::timer::Timer;

/// What the server serves, and where.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// A device of the catalogue, or a TOML file.
    pub device: String,
    /// Size of the image.
    pub size_bytes: u64,
    /// An empty folder to mount the three files on.
    pub folder: PathBuf,
    /// Microseconds by which to delay replies on average; 0 except in tests.
    pub inject_late_us: f64,
    /// Faults while the delays are on.
    pub faults: Vec<Fault>,
}

/// Seed of the injected lateness; any number will do.
const LATENESS_SEED: u64 = 1;

/// The kernel's largest FUSE request: 256 pages.
const LARGEST_REQUEST_BYTES: u32 = 1 << 20;

/// Most requests in flight, as many as a loop device has.
const MOST_IN_FLIGHT: u16 = 256;

/// The kernel asks for attributes each time; this costs little here.
const NO_CACHING: Duration = Duration::ZERO;

/// Inode numbers.
const ROOT: u64 = 1;
const DISK: u64 = 2;
const STATUS: u64 = 3;
const CONTROL: u64 = 4;

/// Serves until the folder is unmounted. Calls `ready` once the files are there.
///
/// # Errors
/// If the device is unknown, memory is short, FUSE refuses, or `ready` fails.
pub fn serve(
    options: &ServeOptions,
    ready: impl FnOnce() -> io::Result<()>,
) -> Result<(), LabError> {
    let spec = device::load(&options.device)?;
    let image = Image::new(options.size_bytes).map_err(LabError::file("the image in memory"))?;
    let pacing = Pacing::new(spec.build(options.size_bytes), spec.is_rotational());
    let injected = Injected::new(options.inject_late_us, LATENESS_SEED);
    let timer = Timer::start(pacing, injected, Faults::new(options.faults.clone()));
    let files = LabFiles {
        image: Arc::new(image),
        timer,
        snapshots: Mutex::default(),
        handles: AtomicU64::new(1),
    };
    let mut config = Config::default();
    // Bowwave recognises the folder by this name, and does not manage it.
    config.mount_options =
        vec![MountOption::FSName("bowwave-lab".into()), MountOption::Subtype("bowwave".into())];
    let session = fuser::Session::new(files, &options.folder, &config)
        .map_err(LabError::file(&options.folder))?;
    ready().map_err(LabError::file("standard output"))?;
    // The threads that take requests inherit the priority: a request must not wait for a processor before it counts.
    take_precedence();
    session.run().map_err(LabError::file(&options.folder))
}

struct LabFiles {
    image: Arc<Image>,
    timer: Arc<Timer>,
    /// The counters at the time when `status` was opened, by handle. A reader that needs several reads must not get
    /// parts of different texts.
    snapshots: Mutex<HashMap<u64, Vec<u8>>>,
    handles: AtomicU64,
}

impl LabFiles {
    fn status(&self) -> Vec<u8> {
        serde_json::to_vec(&self.timer.status()).unwrap_or_default()
    }

    /// False, and nothing changes, if the device cannot have such a fault.
    fn obey(&self, order: Order) -> bool {
        match order {
            Order::Fast => self.timer.set_fast(true),
            Order::Timed => self.timer.set_fast(false),
            Order::Faults(faults) => {
                if faults.iter().any(|fault| fault.check(self.image.len()).is_err()) {
                    return false;
                }
                self.timer.set_faults(Faults::new(faults));
            }
        }
        true
    }

    fn snapshots(&self) -> MutexGuard<'_, HashMap<u64, Vec<u8>>> {
        self.snapshots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attributes(&self, ino: u64) -> Option<FileAttr> {
        let (kind, perm, size) = match ino {
            ROOT => (FileType::Directory, 0o700, 0),
            DISK => (FileType::RegularFile, 0o600, self.image.len()),
            STATUS => (FileType::RegularFile, 0o400, self.status().len() as u64),
            CONTROL => (FileType::RegularFile, 0o200, 0),
            _ => return None,
        };
        Some(FileAttr {
            ino: INodeNo(ino),
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            flags: 0,
            blksize: 4096,
        })
    }
}

impl Filesystem for LabFiles {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // Without asynchronous direct I/O, only one request would be in flight. Old kernels may lack it.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.add_capabilities(InitFlags::FUSE_MAX_PAGES);
        let _ = config.set_max_write(LARGEST_REQUEST_BYTES);
        let _ = config.set_max_readahead(LARGEST_REQUEST_BYTES);
        let _ = config.set_max_background(MOST_IN_FLIGHT);
        let _ = config.set_congestion_threshold(MOST_IN_FLIGHT);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let ino = match name.to_str() {
            Some("disk") => DISK,
            Some("status") => STATUS,
            Some("control") => CONTROL,
            _ => 0,
        };
        match self.attributes(ino).filter(|_| parent.0 == ROOT) {
            Some(attributes) => reply.entry(&NO_CACHING, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _request: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(ino.0) {
            Some(attributes) => reply.attr(&NO_CACHING, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn setattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        _size: Option<u64>,
        _atime: Option<fuser::TimeOrNow>,
        _mtime: Option<fuser::TimeOrNow>,
        _ctime: Option<std::time::SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<std::time::SystemTime>,
        _chgtime: Option<std::time::SystemTime>,
        _bkuptime: Option<std::time::SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        // Opening `control` with truncation causes this call; it changes nothing.
        match self.attributes(ino.0) {
            Some(attributes) => reply.attr(&NO_CACHING, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _request: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let handle = self.handles.fetch_add(1, Ordering::Relaxed);
        if ino.0 == STATUS {
            self.snapshots().insert(handle, self.status());
        }
        reply.opened(FileHandle(handle), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn release(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.snapshots().remove(&handle.0);
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn read(
        &self,
        _request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match ino.0 {
            DISK => {
                let image = Arc::clone(&self.image);
                let bytes = u64::from(size);
                let fate = self.timer.fate(Kind::Read, offset, bytes);
                let answer = move || match fate.served {
                    Some(bytes) => image.read(offset, bytes, |data| reply.data(data)),
                    None => reply.error(Errno::EIO),
                };
                self.timer.submit(Kind::Read, (offset, bytes), fate.answered, Box::new(answer));
            }
            STATUS => {
                let snapshots = self.snapshots();
                let text = snapshots.get(&handle.0).map_or(&[][..], Vec::as_slice);
                let start = (offset as usize).min(text.len());
                reply.data(&text[start..text.len().min(start + size as usize)]);
            }
            _ => reply.error(Errno::EBADF),
        }
    }

    fn write(
        &self,
        _request: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match ino.0 {
            DISK => {
                let bytes = data.len() as u64;
                let fate = self.timer.fate(Kind::Write, offset, bytes);
                let written = fate.served.map(|_| self.image.write(offset, data) as u32);
                let answer = move || match written {
                    Some(written) => reply.written(written),
                    None => reply.error(Errno::EIO),
                };
                self.timer.submit(Kind::Write, (offset, bytes), fate.answered, Box::new(answer));
            }
            CONTROL if Order::read(data).is_some_and(|order| self.obey(order)) => {
                reply.written(data.len() as u32);
            }
            CONTROL => reply.error(Errno::EINVAL),
            _ => reply.error(Errno::EBADF),
        }
    }
}
