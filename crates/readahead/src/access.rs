//! What a policy is told.

/// Index of a page within its file.
pub type Page = u64;

/// Nanoseconds since any fixed moment; the body's clock, real or virtual.
pub type Nanos = u64;

/// Bytes in a page.
pub const PAGE_BYTES: u64 = 4096;

/// The window that a stock kernel gives a device by itself, in KiB (`VM_READAHEAD_PAGES`).
pub const STOCK_WINDOW_KB: u64 = 128;

/// Names a file (an inode) for as long as the body lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u64);

/// Names a volume that contains files, for instance a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VolumeId(pub u32);

/// Names a group of readers that share memory, for instance a memory cgroup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub u32);

/// Names one open file description, the owner of the kernel's own read-ahead state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpenFileId(pub u64);

/// Why the policy is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The page was not in the page cache; the program waits for it.
    Absent,
    /// The access touched a mark of the policy, or of the kernel's own read-ahead.
    Mark,
}

/// How the program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// `read(2)` and similar calls: `request` is the rest of the call.
    Read,
    /// A page fault in a mapping; the kernel reads around it by itself.
    Mmap,
}

/// The program's advice (`posix_fadvise`), if the body sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Hint {
    /// Nothing said.
    #[default]
    Normal,
    /// It will read forward.
    Sequential,
    /// Leave it alone.
    Random,
}

/// One access that matters: its page was absent, or carried a mark.
///
/// `T` says why the policy is asked; a policy inside the kernel hears of more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access<T = Trigger> {
    /// The file read.
    pub file: FileId,
    /// The volume it lies on.
    pub volume: VolumeId,
    /// The open file it is read through.
    pub open_file: OpenFileId,
    /// The page touched.
    pub page: Page,
    /// Pages left in this request, from `page` on; at least 1.
    pub request: u32,
    /// The page touched before this one through the same open file, if known. The kernel tells where a read ended: if
    /// that is the end of a page, live accesses give the page behind. Of a mark that was touched by a read that is over
    /// when it is reported (before Linux 6.12), this is the last page of that read.
    pub previous: Option<Page>,
    /// Why the policy is asked.
    pub trigger: T,
    /// Read or mapped.
    pub via: Via,
    /// The program's own advice.
    pub hint: Hint,
    /// Size of the file in pages, rounded up.
    pub file_pages: u64,
    /// Pages the kernel reads ahead at most for this open file (`ra_pages`).
    pub kernel_window: u32,
    /// When it happened.
    pub now: Nanos,
}

impl Access {
    /// Whether the read that has touched this mark is over.
    pub fn is_over(&self) -> bool {
        let last = self.end() - 1;
        self.trigger == Trigger::Mark && self.request > 1 && self.previous == Some(last)
    }
}

impl<T> Access<T> {
    /// First page after the request, clipped to the file.
    pub fn end(&self) -> Page {
        (self.page + u64::from(self.request.max(1))).min(self.file_pages.max(self.page + 1))
    }
}
