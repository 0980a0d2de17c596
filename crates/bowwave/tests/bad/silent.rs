//! A FUSE server that does not answer.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty,
    ReplyEntry, ReplyOpen, Request, SessionACL,
};
use rustix::mount::{UnmountFlags, unmount};

/// What is not answered.
#[derive(Clone, Copy)]
pub(crate) struct Silence {
    /// Anything but closing, once so many reads were answered.
    pub(crate) after_reads: u64,
    /// Closing, by any thread of bowwave's. All others are answered: a child of the reader that begins another program
    /// closes the file, and would wait for ever.
    pub(crate) when_bowwave_closes: bool,
}

const ROOT: u64 = 1;
const FILE: u64 = 2;

/// The kernel may keep what it knows of the file.
const FOR_LONG: Duration = Duration::from_secs(3600);

/// Who waits for an answer that does not come. An unanswered reply that is dropped would be an error, which is an
/// answer.
type Waiting = Arc<Mutex<Vec<Box<dyn Send>>>>;

/// A file system with one file.
pub(crate) struct Silent {
    folder: tempfile::TempDir,
    waiting: Waiting,
    session: Option<BackgroundSession>,
}

impl Silent {
    pub(crate) fn mount(silence: Silence, file_bytes: u64) -> io::Result<Silent> {
        let folder = tempfile::tempdir()?;
        let waiting = Waiting::default();
        let files =
            Files { silence, file_bytes, reads: AtomicU64::new(0), waiting: Arc::clone(&waiting) };
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("silent".into()), MountOption::RO];
        // Programs of other users' hang, too.
        config.acl = SessionACL::All;
        let session = fuser::Session::new(files, folder.path(), &config)?.spawn()?;
        Ok(Silent { folder, waiting, session: Some(session) })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Whether somebody waits for an answer that does not come.
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.waiting.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// All who wait get an error: unmounting by force aborts the connection, also where files are open and the mount
    /// stays.
    pub(crate) fn end(&self) {
        let _ = unmount(self.folder.path(), UnmountFlags::FORCE);
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        self.end();
        let _ = unmount(self.folder.path(), UnmountFlags::DETACH);
        drop(self.session.take());
    }
}

struct Files {
    silence: Silence,
    file_bytes: u64,
    reads: AtomicU64,
    waiting: Waiting,
}

impl Files {
    fn is_silent(&self) -> bool {
        self.reads.load(Ordering::Relaxed) >= self.silence.after_reads
    }

    fn keep(&self, reply: impl Send + 'static) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(reply));
    }

    fn attributes(&self, ino: u64) -> FileAttr {
        let (kind, size) = match ino {
            ROOT => (FileType::Directory, 0),
            _ => (FileType::RegularFile, self.file_bytes),
        };
        FileAttr {
            ino: INodeNo(ino),
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm: 0o755,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            flags: 0,
            blksize: 4096,
        }
    }
}

impl Filesystem for Files {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match name.to_str() {
            _ if self.is_silent() => self.keep(reply),
            Some("file") => reply.entry(&FOR_LONG, &self.attributes(FILE), Generation(0)),
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        if self.is_silent() {
            return self.keep(reply);
        }
        reply.attr(&FOR_LONG, &self.attributes(ino.0));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        if self.is_silent() {
            return self.keep(reply);
        }
        reply.opened(FileHandle(1), FopenFlags::empty());
    }

    fn flush(&self, by: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        let name = std::fs::read_to_string(format!("/proc/{}/comm", by.pid())).unwrap_or_default();
        if self.silence.when_bowwave_closes && name.starts_with("bowwave") {
            return self.keep(reply);
        }
        reply.ok();
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if self.is_silent() {
            return self.keep(reply);
        }
        self.reads.fetch_add(1, Ordering::Relaxed);
        reply.data(&vec![7; size as usize]);
    }
}
